// Textures of the application's.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "gl/context.hpp"

namespace glgemm::gl {

/// A format of texels that shaders can read and write, and texture.comp knows.
struct TexelFormat {
  unsigned name;  ///< GL_RGBA8, say
  const char* text;
  int channels;
  bool normalised;      ///< texels are integers that stand for 0 to 1
  bool in_es;           ///< images of OpenGL ES 3.1 may have it
  bool filtered_in_es;  ///< OpenGL ES lets it be filtered linearly
};
/// In the order of texture.comp's TEXELS.
inline constexpr int texel_formats = 6;
const TexelFormat& texel_format(int number) noexcept;

/// A 2D texture of its own, of one level, that shaders read and write. `number`: see texel_format(). Its texels are undefined.
class OwnTexture {
 public:
  OwnTexture(const Api& api, int number, int width, int height);
  ~OwnTexture();
  OwnTexture(const OwnTexture&) = delete;
  OwnTexture& operator=(const OwnTexture&) = delete;
  unsigned name() const noexcept { return name_; }

 private:
  const Api& api_;
  unsigned name_ = 0;
};

/// A level of a texture.
struct TextureLevel {
  int width = 0, height = 0, layers = 0;
  unsigned format = 0;
  bool is_immutable = false;
  /// The texture's parameters of those names, which decide whether shaders are given the level.
  int base_level = 0, max_level = 0, min_filter = 0, mag_filter = 0;
};
/// None if the name is none of a 2D texture, or of a 2D array. A texture without that level has 0 for its sizes.
std::optional<TextureLevel> texture_level(const Api& api, unsigned texture, bool is_array, int level);

/// While it lives, shaders are given a level of a texture whatever the other levels are and wherever the texture's own range of
/// levels ends: an image of a level that OpenGL counts as missing reads 0 and takes no writes, without an error. The parameters
/// that must be others for that are put back at the end.
class LevelGuard {
 public:
  /// `number`: see texel_format().
  LevelGuard(const Api& api, unsigned texture, bool is_array, int level, const TextureLevel& found, int number);
  ~LevelGuard();
  LevelGuard(const LevelGuard&) = delete;
  LevelGuard& operator=(const LevelGuard&) = delete;
  /// Whether OpenGL let the parameters be set. It does not where the texture has a bindless handle.
  bool holds() const noexcept { return holds_; }

 private:
  struct Parameter {
    unsigned name;
    int was, needed;
  };
  void set(int Parameter::*value);

  const Api& api_;
  const unsigned texture_;
  const bool is_array_;
  std::array<Parameter, 4> changed_;
  std::size_t count_ = 0;
  bool holds_ = true;
};

/// Binds a layer of a level to image unit 0. `number`: see texel_format().
void bind_texture_image(const Api& api, unsigned texture, int level, int layer, int number, bool to_write);

/// Has the dispatches that follow see what shaders wrote to textures and to storage buffers.
void barrier_before_texture_copy(const Api& api);
/// Has all that follows see what a dispatch wrote to a texture.
void barrier_after_texture_write(const Api& api);

}  // namespace glgemm::gl
