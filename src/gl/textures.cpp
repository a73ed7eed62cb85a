#include "gl/textures.hpp"

#include "gl/api.hpp"
#include "gl/state.hpp"

namespace glgemm::gl {

const TexelFormat& texel_format(int number) noexcept {
  static constexpr std::array<TexelFormat, texel_formats> formats{{{GL_RGBA8, "GL_RGBA8", 4, true, true, true},
                                                                   {GL_RGBA16F, "GL_RGBA16F", 4, false, true, true},
                                                                   {GL_RGBA32F, "GL_RGBA32F", 4, false, true, false},
                                                                   {GL_R8, "GL_R8", 1, true, false, true},
                                                                   {GL_R16F, "GL_R16F", 1, false, false, true},
                                                                   {GL_R32F, "GL_R32F", 1, false, true, false}}};
  return formats[static_cast<std::size_t>(number)];
}

namespace {

GLenum target_of(bool is_array) {
  return is_array ? GL_TEXTURE_2D_ARRAY : GL_TEXTURE_2D;
}
Bindings binding_of(bool is_array) {
  return is_array ? texture_array_binding : texture_binding;
}

}  // namespace

OwnTexture::OwnTexture(const Api& api, int number, int width, int height) : api_(api) {
  const StateGuard guard(api, texture_binding);
  api.GenTextures(1, &name_);
  api.BindTexture(GL_TEXTURE_2D, name_);
  api.TexStorage2D(GL_TEXTURE_2D, 1, texel_format(number).name, width, height);
  // OpenGL ES filters no 32-bit texels: with another filter, shaders would not be given them.
  api.TexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_NEAREST);
  api.TexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_NEAREST);
}

OwnTexture::~OwnTexture() {
  api_.DeleteTextures(1, &name_);
}

std::optional<TextureLevel> texture_level(const Api& api, unsigned texture, bool is_array, int level) {
  if (texture == 0 || api.IsTexture(texture) == GL_FALSE) return std::nullopt;
  const ErrorGuard errors(api);  // a texture of another kind cannot be bound, and a level may be past the last that there can be
  const GLenum target = target_of(is_array);
  GLint value = 0;
  const StateGuard guard(api, binding_of(is_array));
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
  api.GetTexParameteriv(target, GL_TEXTURE_BASE_LEVEL, &result.base_level);
  api.GetTexParameteriv(target, GL_TEXTURE_MAX_LEVEL, &result.max_level);
  api.GetTexParameteriv(target, GL_TEXTURE_MIN_FILTER, &result.min_filter);
  api.GetTexParameteriv(target, GL_TEXTURE_MAG_FILTER, &result.mag_filter);
  return result;
}

LevelGuard::LevelGuard(const Api& api, unsigned texture, bool is_array, int level, const TextureLevel& found, int number)
    : api_(api), texture_(texture), is_array_(is_array) {
  const auto change = [&](GLenum name, int was, int needed) {
    if (was != needed) changed_[count_++] = {name, was, needed};
  };
  const bool has_mipmaps = found.min_filter != GL_NEAREST && found.min_filter != GL_LINEAR;
  // Immutable storage has all its levels. In other textures a lone level is complete, and so is the first where no filter asks
  // for those behind it.
  const bool alone = !found.is_immutable && (has_mipmaps || level != found.base_level || level > found.max_level);
  if (alone || level < found.base_level) change(GL_TEXTURE_BASE_LEVEL, found.base_level, level);
  if (alone || level > found.max_level) change(GL_TEXTURE_MAX_LEVEL, found.max_level, level);
  if (api.es && !texel_format(number).filtered_in_es) {  // a texture whose filter OpenGL ES does not know is incomplete
    change(GL_TEXTURE_MIN_FILTER, found.min_filter, GL_NEAREST);
    change(GL_TEXTURE_MAG_FILTER, found.mag_filter, GL_NEAREST);
  }
  set(&Parameter::needed);
}

LevelGuard::~LevelGuard() {
  set(&Parameter::was);
}

void LevelGuard::set(int Parameter::*value) {
  if (count_ == 0) return;
  const ErrorGuard errors(api_);
  const StateGuard guard(api_, binding_of(is_array_));
  const GLenum target = target_of(is_array_);
  api_.BindTexture(target, texture_);
  for (std::size_t i = 0; i < count_; ++i) {
    GLint is = 0;
    api_.TexParameteri(target, changed_[i].name, changed_[i].*value);
    api_.GetTexParameteriv(target, changed_[i].name, &is);
    holds_ = holds_ && is == changed_[i].*value;
  }
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
