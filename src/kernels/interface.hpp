// The numbers by which the host and the shaders know each other's things. tests/kernels compares the uniforms and flags with the
// shaders.
#pragma once

namespace glgemm::kernels {

// clang-format off
/// The storage buffers of common.glsl, ROW(the host's name, the shader's behind BINDING_). A program has each at the binding with
/// its number, or with few buffers at binding_of().
#define GLGEMM_BINDINGS(ROW)                                                                      \
  ROW(binding_a, A) ROW(binding_b, B) ROW(binding_c, C) ROW(binding_d, D) ROW(binding_bias, BIAS) \
  ROW(binding_items, ITEMS) ROW(binding_partial, PARTIAL) ROW(binding_scales, SCALES) ROW(binding_zeros, ZEROS) ROW(binding_offsets, OFFSETS)

/// The uniforms in the order of their locations, ROW(the host's name, the shader's). Those from image_size on are
/// depthwise.comp's, the last but one is texture.comp's, the last, which is an array, mlp.comp's.
#define GLGEMM_UNIFORMS(ROW)                                                                                                             \
  ROW(at_x0, x0) ROW(at_y0, y0) ROW(at_z0, z0) ROW(at_size, size)                                                                        \
  ROW(at_a, a_at) ROW(at_b, b_at) ROW(at_c, c_at) ROW(at_alpha, alpha)                                                                   \
  ROW(at_beta, beta) ROW(at_flags, flags) ROW(at_d, d_at) ROW(at_bias, bias_at)                                                          \
  ROW(at_activation, activation) ROW(at_low, act_low) ROW(at_high, act_high) ROW(at_panels, panels_at)                                   \
  ROW(at_parts, parts) ROW(at_sums, sums_at) ROW(at_codes, codes_at) ROW(at_offsets, offsets_at)                                         \
  ROW(at_offsets_of_c, offsets_of_c_at) ROW(at_image_size, image_size) ROW(at_output_size, output_size) ROW(at_filter_size, filter_size) \
  ROW(at_strides, strides) ROW(at_dilation, dilation) ROW(at_padding, padding) ROW(at_image, image_at)                                   \
  ROW(at_filter, filter_at) ROW(at_task, task) ROW(at_texels, texels) ROW(at_layers, layers)

/// The bits of the uniform `flags`, ROW(the host's name, the shader's, the bit).
#define GLGEMM_FLAGS(ROW)                                                                                           \
  ROW(conjugate_a, CONJUGATE_A, 1) ROW(conjugate_b, CONJUGATE_B, 2) ROW(read_c, READ_C, 4) ROW(first_k, FIRST_K, 8) \
  ROW(last_k, LAST_K, 16) ROW(add_d, ADD_D, 32) ROW(add_bias, ADD_BIAS, 64) ROW(packs_b, PACKS_B, 128)

/// The formats of texels that shaders write, in the order of the parameter `texels` of texture.comp: ROW(OpenGL's name without GL_,
/// GLSL's, the channels, what they are, whether OpenGL ES 3.1 has images of it).
#define GLGEMM_TEXELS(ROW)                                                                                                       \
  ROW(RGBA8, rgba8, 4, zero_to_one, true) ROW(RGBA16F, rgba16f, 4, floats, true) ROW(RGBA32F, rgba32f, 4, floats, true)          \
  ROW(R8, r8, 1, zero_to_one, false) ROW(R16F, r16f, 1, floats, false) ROW(R32F, r32f, 1, floats, true)                          \
  ROW(RG8, rg8, 2, zero_to_one, false) ROW(RG16F, rg16f, 2, floats, false) ROW(RG32F, rg32f, 2, floats, false)                   \
  ROW(R16, r16, 1, zero_to_one, false) ROW(RG16, rg16, 2, zero_to_one, false) ROW(RGBA16, rgba16, 4, zero_to_one, false)         \
  ROW(R8_SNORM, r8_snorm, 1, zero_to_one, false) ROW(RG8_SNORM, rg8_snorm, 2, zero_to_one, false)                                \
  ROW(RGBA8_SNORM, rgba8_snorm, 4, zero_to_one, true) ROW(R16_SNORM, r16_snorm, 1, zero_to_one, false)                           \
  ROW(RG16_SNORM, rg16_snorm, 2, zero_to_one, false) ROW(RGBA16_SNORM, rgba16_snorm, 4, zero_to_one, false)                      \
  ROW(RGB10_A2, rgb10_a2, 4, zero_to_one, false) ROW(R11F_G11F_B10F, r11f_g11f_b10f, 3, short_floats, false)
// clang-format on

/// The bits of the flags that mlp.comp has of a layer.
enum LayerFlag { has_bias = 1, in_vectors = 2 };

/// What the numbers of texels may be: fractions, of which 0 and 1 are exact; any; those of five bits from 0 on.
enum class Texels { zero_to_one, floats, short_floats };
#define GLGEMM_ROW(name, ...) +1
inline constexpr int texel_formats = 0 GLGEMM_TEXELS(GLGEMM_ROW);
#undef GLGEMM_ROW

#define GLGEMM_ROW(name, shaders) name,
enum Binding : unsigned { GLGEMM_BINDINGS(GLGEMM_ROW) storage_buffers };
enum Location : int { GLGEMM_UNIFORMS(GLGEMM_ROW) uniforms };
#undef GLGEMM_ROW
#define GLGEMM_ROW(name, shaders, bit) name = bit,
enum Flag { GLGEMM_FLAGS(GLGEMM_ROW) };
#undef GLGEMM_ROW

}  // namespace glgemm::kernels
