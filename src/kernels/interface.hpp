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
/// depthwise.comp's.
#define GLGEMM_UNIFORMS(ROW)                                                                                                             \
  ROW(at_x0, x0) ROW(at_y0, y0) ROW(at_z0, z0) ROW(at_size, size)                                                                        \
  ROW(at_a, a_at) ROW(at_b, b_at) ROW(at_c, c_at) ROW(at_alpha, alpha)                                                                   \
  ROW(at_beta, beta) ROW(at_flags, flags) ROW(at_d, d_at) ROW(at_bias, bias_at)                                                          \
  ROW(at_activation, activation) ROW(at_low, act_low) ROW(at_high, act_high) ROW(at_panels, panels_at)                                   \
  ROW(at_parts, parts) ROW(at_sums, sums_at) ROW(at_codes, codes_at) ROW(at_offsets, offsets_at)                                         \
  ROW(at_offsets_of_c, offsets_of_c_at) ROW(at_image_size, image_size) ROW(at_output_size, output_size) ROW(at_filter_size, filter_size) \
  ROW(at_strides, strides) ROW(at_dilation, dilation) ROW(at_padding, padding) ROW(at_image, image_at)                                   \
  ROW(at_filter, filter_at) ROW(at_task, task)

/// The bits of the uniform `flags`, ROW(the host's name, the shader's, the bit).
#define GLGEMM_FLAGS(ROW)                                                                                           \
  ROW(conjugate_a, CONJUGATE_A, 1) ROW(conjugate_b, CONJUGATE_B, 2) ROW(read_c, READ_C, 4) ROW(first_k, FIRST_K, 8) \
  ROW(last_k, LAST_K, 16) ROW(add_d, ADD_D, 32) ROW(add_bias, ADD_BIAS, 64) ROW(packs_b, PACKS_B, 128)
// clang-format on

#define GLGEMM_ROW(name, shaders) name,
enum Binding : unsigned { GLGEMM_BINDINGS(GLGEMM_ROW) storage_buffers };
enum Location : int { GLGEMM_UNIFORMS(GLGEMM_ROW) uniforms };
#undef GLGEMM_ROW
#define GLGEMM_ROW(name, shaders, bit) name = bit,
enum Flag { GLGEMM_FLAGS(GLGEMM_ROW) };
#undef GLGEMM_ROW

}  // namespace glgemm::kernels
