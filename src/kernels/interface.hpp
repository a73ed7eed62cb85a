// The numbers by which the host and the shaders know each other's things. tests/kernels compares them with the shaders.
#pragma once

namespace glgemm::kernels {

/// The storage buffers of common.glsl. A program has each at the binding with its number, or with few buffers at binding_of().
enum Binding : unsigned {
  binding_a,
  binding_b,
  binding_c,
  binding_d,
  binding_bias,
  binding_items,
  binding_partial,
  binding_scales,
  binding_zeros,
  binding_offsets,
  storage_buffers
};

/// The locations of the uniforms.
enum Location : int {
  at_x0,
  at_y0,
  at_z0,
  at_size,
  at_a,
  at_b,
  at_c,
  at_alpha,
  at_beta,
  at_flags,
  at_d,
  at_bias,
  at_activation,
  at_low,
  at_high,
  at_panels,
  at_parts,
  at_sums,
  at_codes,
  at_offsets,
  at_offsets_of_c,
  // In depthwise.comp alone:
  at_image_size,
  at_output_size,
  at_filter_size,
  at_strides,
  at_dilation,
  at_padding,
  at_image,
  at_filter,
  at_task,
  uniforms
};

/// The bits of the uniform `flags`.
enum Flag { conjugate_a = 1, conjugate_b = 2, read_c = 4, first_k = 8, last_k = 16, add_d = 32, add_bias = 64, packs_b = 128 };

}  // namespace glgemm::kernels
