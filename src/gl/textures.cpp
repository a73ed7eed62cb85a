#include "gl/textures.hpp"

#include <fmt/core.h>

#include <utility>

#include "gl/api.hpp"

namespace glgemm::gl {

const TexelFormat& texel_format(int number) noexcept {
  using enum kernels::Texels;
#define GLGEMM_ROW(name, in_glsl, channels, texels, in_es) {GL_##name, channels, texels, in_es},
  static constexpr TexelFormat formats[] = {GLGEMM_TEXELS(GLGEMM_ROW)};
#undef GLGEMM_ROW
  return formats[number];
}

int most_exact_format() noexcept {
  int number = 0;
  while (texel_format(number).name != GL_RGBA32F) ++number;
  return number;
}

std::string format_text(unsigned format) {
  static constexpr std::pair<GLenum, const char*> names[] = {
#define GLGEMM_ROW(name, ...) {GL_##name, "GL_" #name},
#define GLGEMM_OTHERS(ROW)                                                                                                       \
  ROW(RED)                                                                                                                       \
  ROW(RG)                                                                                                                        \
  ROW(RGB) ROW(RGBA) ROW(R3_G3_B2) ROW(RGB4) ROW(RGB5) ROW(RGB565) ROW(RGB8) ROW(RGB8_SNORM) ROW(RGB10) ROW(RGB12) ROW(RGB16)    \
      ROW(RGB16_SNORM) ROW(RGBA2) ROW(RGBA4) ROW(RGB5_A1) ROW(RGBA12) ROW(SRGB) ROW(SRGB8) ROW(SRGB_ALPHA) ROW(SRGB8_ALPHA8)     \
          ROW(RGB16F) ROW(RGB32F) ROW(RGB9_E5) ROW(RGB10_A2UI) ROW(R8I) ROW(R8UI) ROW(R16I) ROW(R16UI) ROW(R32I) ROW(R32UI)      \
              ROW(RG8I) ROW(RG8UI) ROW(RG16I) ROW(RG16UI) ROW(RG32I) ROW(RG32UI) ROW(RGB8I) ROW(RGB8UI) ROW(RGB16I) ROW(RGB16UI) \
                  ROW(RGB32I) ROW(RGB32UI) ROW(RGBA8I) ROW(RGBA8UI) ROW(RGBA16I) ROW(RGBA16UI) ROW(RGBA32I) ROW(RGBA32UI)        \
                      ROW(DEPTH_COMPONENT) ROW(DEPTH_COMPONENT16) ROW(DEPTH_COMPONENT24) ROW(DEPTH_COMPONENT32)                  \
                          ROW(DEPTH_COMPONENT32F) ROW(DEPTH_STENCIL) ROW(DEPTH24_STENCIL8) ROW(DEPTH32F_STENCIL8)                \
                              ROW(STENCIL_INDEX8)
      GLGEMM_TEXELS(GLGEMM_ROW) GLGEMM_OTHERS(GLGEMM_ROW)
#undef GLGEMM_ROW
  };
  for (const auto& [name, text] : names)
    if (name == format) return text;
  return fmt::format("{:#x}", format);  // a compressed one, or an extension's
}

namespace {

GLenum target_of(bool is_array) {
  return is_array ? GL_TEXTURE_2D_ARRAY : GL_TEXTURE_2D;
}
Bindings binding_of(bool is_array) {
  return is_array ? texture_array_binding : texture_binding;
}

}  // namespace

OwnTexture::OwnTexture(const Api& api, int number, bool is_array, int width, int height) : api_(api) {
  const StateGuard guard(api, binding_of(is_array));
  const GLenum target = target_of(is_array);
  api.GenTextures(1, &name_);
  api.BindTexture(target, name_);
  if (is_array)
    api.TexStorage3D(target, 1, texel_format(number).name, width, height, 2);
  else
    api.TexStorage2D(target, 1, texel_format(number).name, width, height);
  // OpenGL ES filters no 32-bit texels: with another filter, shaders would not be given them.
  api.TexParameteri(target, GL_TEXTURE_MIN_FILTER, GL_NEAREST);
  api.TexParameteri(target, GL_TEXTURE_MAG_FILTER, GL_NEAREST);
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
  constexpr GLenum types[] = {GL_TEXTURE_RED_TYPE, GL_TEXTURE_GREEN_TYPE, GL_TEXTURE_BLUE_TYPE, GL_TEXTURE_ALPHA_TYPE};
  for (int i = 0; i < 4; ++i)
    if (const GLint type = ask(types[i]); type == GL_FLOAT || type == GL_UNSIGNED_NORMALIZED || type == GL_SIGNED_NORMALIZED)
      result.channels = i + 1;
    else if (i == 0)
      break;
  for (GLenum i = 0; i < 4; ++i) api.GetTexParameteriv(target, GL_TEXTURE_SWIZZLE_R + i, &result.swizzle[i]);
  api.GetTexParameteriv(target, GL_TEXTURE_IMMUTABLE_FORMAT, &value);
  result.is_immutable = value != 0;
  api.GetTexParameteriv(target, GL_TEXTURE_BASE_LEVEL, &result.base_level);
  api.GetTexParameteriv(target, GL_TEXTURE_MAX_LEVEL, &result.max_level);
  api.GetTexParameteriv(target, GL_TEXTURE_MIN_FILTER, &result.min_filter);
  api.GetTexParameteriv(target, GL_TEXTURE_MAG_FILTER, &result.mag_filter);
  return result;
}

std::string instead_of_writing(const Api& api, const TextureLevel& level) {
  const bool has_views = !api.es && level.is_immutable && level.format == GL_SRGB8_ALPHA8;
  return std::string(has_views ? "make a GL_RGBA8 view of it (glTextureView), which takes numbers as they are stored; or " : "") +
         "write to a GL_RGBA8 or GL_RGBA16F texture of glTexStorage2D and copy it by glBlitFramebuffer";
}

LevelGuard::LevelGuard(const Api& api, unsigned texture, bool is_array, int level, const TextureLevel& found, bool to_write)
    : api_(api), texture_(texture), is_array_(is_array) {
  const auto change = [&](GLenum name, int was, int needed) {
    if (was != needed) changed_[count_++] = {name, was, needed};
  };
  const bool has_mipmaps = to_write && found.min_filter != GL_NEAREST && found.min_filter != GL_LINEAR;
  // Immutable storage has all its levels. In other textures a lone level is complete, and so is the first where no filter asks
  // for those behind it.
  const bool alone = !found.is_immutable && (has_mipmaps || level != found.base_level || level > found.max_level);
  if (alone || level < found.base_level) change(GL_TEXTURE_BASE_LEVEL, found.base_level, level);
  if (alone || level > found.max_level) change(GL_TEXTURE_MAX_LEVEL, found.max_level, level);
  lod_ = alone || level < found.base_level ? 0 : level - found.base_level;
  if (!to_write)  // images know no swizzle
    for (std::size_t i = 0; i < 4; ++i)
      change(GL_TEXTURE_SWIZZLE_R + static_cast<GLenum>(i), found.swizzle[i], GL_RED + static_cast<int>(i));
  else if (api.es && (found.format == GL_RGBA32F || found.format == GL_R32F)) {
    change(GL_TEXTURE_MIN_FILTER, found.min_filter, GL_NEAREST);  // with a filter that OpenGL ES does not know it is incomplete
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

FetchedTexture::FetchedTexture(const Api& api, unsigned texture, bool is_array)
    : api_(api), guard_(api, binding_of(is_array) | sampler_binding), unit_(active_unit(api)) {
  api.BindTexture(target_of(is_array), texture);
  api.GenSamplers(1, &sampler_);
  for (const auto name : {GL_TEXTURE_MIN_FILTER, GL_TEXTURE_MAG_FILTER})
    api.SamplerParameteri(sampler_, static_cast<GLenum>(name), GL_NEAREST);
  api.BindSampler(unit_, sampler_);
}

FetchedTexture::~FetchedTexture() {
  api_.DeleteSamplers(1, &sampler_);
}

void bind_texture_image(const Api& api, unsigned texture, int level, int layer, int number) {
  api.BindImageTexture(0, texture, level, GL_FALSE, layer, GL_WRITE_ONLY, texel_format(number).name);
}

void barrier_before_texture_copy(const Api& api) {
  api.MemoryBarrier(GL_SHADER_IMAGE_ACCESS_BARRIER_BIT | GL_TEXTURE_FETCH_BARRIER_BIT | GL_SHADER_STORAGE_BARRIER_BIT);
}

void barrier_after_texture_write(const Api& api) {
  api.MemoryBarrier(GL_TEXTURE_FETCH_BARRIER_BIT | GL_SHADER_IMAGE_ACCESS_BARRIER_BIT | GL_FRAMEBUFFER_BARRIER_BIT |
                    GL_TEXTURE_UPDATE_BARRIER_BIT | GL_PIXEL_BUFFER_BARRIER_BIT);
}

}  // namespace glgemm::gl
