#version 430 core
#extension GL_GOOGLE_include_directive : require
// texture: copies between a level of a texture, or a layer of it, and images in a buffer whose channels are innermost. Each invocation moves
// one texel: the buffer has the first channels of it.
//
// Grid      invocations over the columns (x) and rows (y) of what is copied
// Buffers   0: what is written to the texture; or 2: what is read from it; 1 is not read; image unit 0: the texture that is written
// Uniforms  size: columns, rows, channels; y0: the texture's first row; a_at, c_at: the buffer's first element; texels: the unit of the
//           texture that is read; c_at.yz: its layer, and its level from the texture's base level on
// Macros    TEXELS: a texel's format if it is written, as in rgba8; a sampler reads texels of all formats. WRITES: 1 if the texture is
//           written; ARRAY: 1 if it is an array, and read; WORKGROUP_X, WORKGROUP_Y: powers of two up to 32;
//           TYPE_A, TYPE_C: the elements of the buffer, F32, F16 or BF16, TYPE_A with WRITES. The other macros, buffers and uniforms: the files that are included

#if WRITES
#define A_READS ELEMENTS
#else
#define A_READS NOTHING
#endif
#include "common.glsl"
#include "types.glsl"
#include "layers.glsl"
#include "quantization.glsl"
#include "operand_a.glsl"
#include "operand_c.glsl"

layout(local_size_x = WORKGROUP_X, local_size_y = WORKGROUP_Y) in;

#if WRITES
layout(TEXELS, binding = 0) writeonly uniform highp image2D Texels;
#elif ARRAY
layout(location = 30) uniform highp sampler2DArray texels;
#define PLACE(at) ivec3(at, c_at.y)
#else
layout(location = 30) uniform highp sampler2D texels;
#define PLACE(at) at
#endif

void main() {
  ivec2 at = ivec2(gl_GlobalInvocationID.xy), texel_at = at + ivec2(0, y0);
  if (at.x >= size.x || at.y >= size.y) return;
  int channels = size.z, element = (at.y * size.x + at.x) * channels;
#if WRITES
  float x[4] = float[4](0.0, 0.0, 0.0, 1.0);
  for (int c = 0; c < 4; ++c) if (c < channels) x[c] = load_a(a_at.x + element + c);
  imageStore(Texels, texel_at, vec4(x[0], x[1], x[2], x[3]));
#else
  element += c_at.x;
  vec4 texel = texelFetch(texels, PLACE(texel_at), c_at.z);
#if NARROW_C
  if ((c_at.x & 1) == 0 && (channels & 1) == 0) {  // nobody else writes to these words
    C[element >> 1] = to_16_bits(texel.x) | to_16_bits(texel.y) << 16;
    if (channels > 2) C[(element >> 1) + 1] = to_16_bits(texel.z) | to_16_bits(texel.w) << 16;
    return;
  }
#endif
  float x[4] = elements_of(texel);
  for (int c = 0; c < 4; ++c) if (c < channels) store_c(element + c, x[c]);
#endif
}
