// Textures of the application's.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>

#include "gl/state.hpp"

namespace glgemm::gl {

/// A format of texels that shaders can write.
struct TexelFormat {
  unsigned name;  ///< GL_RGBA8, say
  int channels;
  kernels::Texels texels;
  bool in_es;  ///< images of OpenGL ES 3.1 may have it
};
/// In the order of GLGEMM_TEXELS.
const TexelFormat& texel_format(int number) noexcept;
/// The number of GL_RGBA32F, which holds what each of the others does.
int most_exact_format() noexcept;
/// The name of an internal format: "GL_RGBA8".
std::string format_text(unsigned format);

/// A texture of its own, 2D or an array of two layers, of one level, that shaders read and write. `number`: see texel_format().
/// Its texels are undefined.
class OwnTexture {
 public:
  OwnTexture(const Api& api, int number, bool is_array, int width, int height);
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
  /// The channels that shaders see as floats, from red on; 0 where the texels are integers, depths or without red.
  int channels = 0;
  bool is_immutable = false;
  /// The texture's parameters of those names, which decide whether shaders are given the level.
  int base_level = 0, max_level = 0, min_filter = 0, mag_filter = 0;
  std::array<int, 4> swizzle{};
};
/// None if the name is none of a 2D texture, or of a 2D array. A texture without that level has 0 for its sizes.
std::optional<TextureLevel> texture_level(const Api& api, unsigned texture, bool is_array, int level);

/// How numbers come into a level whose format shaders cannot write.
std::string instead_of_writing(const Api& api, const TextureLevel& level);

/// While it lives, shaders are given a level of a texture whatever the other levels are and wherever the texture's own range of
/// levels ends, and each channel as it is stored: a level that OpenGL counts as missing reads 0 and takes no writes, without an
/// error. The parameters that must be others for that are put back at the end.
class LevelGuard {
 public:
  LevelGuard(const Api& api, unsigned texture, bool is_array, int level, const TextureLevel& found, bool to_write);
  ~LevelGuard();
  LevelGuard(const LevelGuard&) = delete;
  LevelGuard& operator=(const LevelGuard&) = delete;
  /// Whether OpenGL let the parameters be set. It does not where the texture has a bindless handle.
  bool holds() const noexcept { return holds_; }
  /// The level as shaders count it, from the texture's base level on.
  int lod() const noexcept { return lod_; }

 private:
  struct Parameter {
    unsigned name;
    int was, needed;
  };
  void set(int Parameter::*value);

  const Api& api_;
  const unsigned texture_;
  const bool is_array_;
  std::array<Parameter, 6> changed_;
  std::size_t count_ = 0;
  bool holds_ = true;
  int lod_ = 0;
};

/// While it lives, shaders fetch a texture's texels at the active unit, whatever filters the texture or the application's sampler
/// has there.
class FetchedTexture {
 public:
  FetchedTexture(const Api& api, unsigned texture, bool is_array);
  ~FetchedTexture();
  FetchedTexture(const FetchedTexture&) = delete;
  FetchedTexture& operator=(const FetchedTexture&) = delete;
  int unit() const noexcept { return static_cast<int>(unit_); }

 private:
  const Api& api_;
  const StateGuard guard_;
  const unsigned unit_;
  unsigned sampler_ = 0;
};

/// Binds a layer of a level to image unit 0, to be written. `number`: see texel_format().
void bind_texture_image(const Api& api, unsigned texture, int level, int layer, int number);

/// Has the dispatches that follow see what shaders wrote to textures and to storage buffers.
void barrier_before_texture_copy(const Api& api);
/// Has all that follows see what a dispatch wrote to a texture.
void barrier_after_texture_write(const Api& api);

}  // namespace glgemm::gl
