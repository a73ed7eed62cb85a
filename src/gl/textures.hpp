// Textures of the application's.
#pragma once

#include <cstdint>
#include <optional>

#include "gl/context.hpp"

namespace glgemm::gl {

/// A format of texels that shaders can read and write, and texture.comp knows.
struct TexelFormat {
  unsigned name;  ///< GL_RGBA8, say
  const char* text;
  int channels;
  bool in_es;  ///< images of OpenGL ES 3.1 may have it
};
/// In the order of texture.comp's TEXELS.
inline constexpr int texel_formats = 6;
const TexelFormat& texel_format(int number) noexcept;

/// A level of a texture.
struct TextureLevel {
  int width = 0, height = 0, layers = 0;
  unsigned format = 0;
  bool is_immutable = false;
};
/// None if the name is none of a 2D texture, or of a 2D array. Where OpenGL is older than 4.5, or is ES, and the texture is of
/// another kind, GL_INVALID_OPERATION stays behind.
std::optional<TextureLevel> texture_level(const Api& api, unsigned texture, bool is_array, int level);

/// Binds a layer of a level to image unit 0. `number` is that of texel_format().
void bind_texture_image(const Api& api, unsigned texture, int level, int layer, int number, bool to_write);

/// Has the dispatches that follow see what shaders wrote to textures and to storage buffers.
void barrier_before_texture_copy(const Api& api);
/// Has all that follows see what a dispatch wrote to a texture.
void barrier_after_texture_write(const Api& api);

}  // namespace glgemm::gl
