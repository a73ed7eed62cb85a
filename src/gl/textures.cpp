#include "gl/textures.hpp"

#include <array>

#include "gl/api.hpp"
#include "gl/state.hpp"

namespace glgemm::gl {

const TexelFormat& texel_format(int number) noexcept {
  static constexpr std::array<TexelFormat, texel_formats> formats{{{GL_RGBA8, "GL_RGBA8", 4, true},
                                                                   {GL_RGBA16F, "GL_RGBA16F", 4, true},
                                                                   {GL_RGBA32F, "GL_RGBA32F", 4, true},
                                                                   {GL_R8, "GL_R8", 1, false},
                                                                   {GL_R16F, "GL_R16F", 1, false},
                                                                   {GL_R32F, "GL_R32F", 1, true}}};
  return formats[static_cast<std::size_t>(number)];
}

std::optional<TextureLevel> texture_level(const Api& api, unsigned texture, bool is_array, int level) {
  if (texture == 0 || api.IsTexture(texture) == GL_FALSE) return std::nullopt;
  const GLenum target = is_array ? GL_TEXTURE_2D_ARRAY : GL_TEXTURE_2D;
  GLint value = 0;
  if (api.GetTextureParameteriv) {  // of OpenGL 4.5
    api.GetTextureParameteriv(texture, GL_TEXTURE_TARGET, &value);
    if (static_cast<GLenum>(value) != target) return std::nullopt;
  }
  const StateGuard guard(api, is_array ? texture_array_binding : texture_binding);
  api.BindTexture(target, texture);
  api.GetIntegerv(is_array ? GL_TEXTURE_BINDING_2D_ARRAY : GL_TEXTURE_BINDING_2D, &value);
  if (static_cast<GLuint>(value) != texture) return std::nullopt;
  TextureLevel result;
  const auto ask = [&](GLenum name) {
    value = 0;
    api.GetTexLevelParameteriv(target, level, name, &value);
    return value;
  };
  result.width = ask(GL_TEXTURE_WIDTH);
  result.height = ask(GL_TEXTURE_HEIGHT);
  result.layers = is_array ? ask(GL_TEXTURE_DEPTH) : 1;
  result.format = static_cast<unsigned>(ask(GL_TEXTURE_INTERNAL_FORMAT));
  api.GetTexParameteriv(target, GL_TEXTURE_IMMUTABLE_FORMAT, &value);
  result.is_immutable = value != 0;
  return result;
}

void bind_texture_image(const Api& api, unsigned texture, int level, int layer, int number, bool to_write) {
  api.BindImageTexture(0, texture, level, GL_FALSE, layer, to_write ? GL_WRITE_ONLY : GL_READ_ONLY, texel_format(number).name);
}

void barrier_before_texture_copy(const Api& api) {
  api.MemoryBarrier(GL_SHADER_IMAGE_ACCESS_BARRIER_BIT | GL_SHADER_STORAGE_BARRIER_BIT);
}

void barrier_after_texture_write(const Api& api) {
  api.MemoryBarrier(GL_TEXTURE_FETCH_BARRIER_BIT | GL_SHADER_IMAGE_ACCESS_BARRIER_BIT | GL_FRAMEBUFFER_BARRIER_BIT |
                    GL_TEXTURE_UPDATE_BARRIER_BIT | GL_PIXEL_BUFFER_BARRIER_BIT);
}

}  // namespace glgemm::gl
