#version 430 core
#extension GL_GOOGLE_include_directive : require
// texture: copies between a level of a texture, or a layer of it, and images in a buffer whose channels are innermost. Each invocation moves
// one texel: the buffer has the first channels of it.
//
// Grid      invocations over the columns (x) and rows (y) of what is copied
// Buffers   0: what is written to the texture; or 2: what is read from it; 1 is not read; image unit 0: the texture
// Uniforms  size: columns, rows, channels; y0: the texture's first row; a_at, c_at: the buffer's first element
// Macros    TEXELS: a texel's format, below; WRITES: 1 if the texture is written; WORKGROUP_X, WORKGROUP_Y: powers of two up to 32;
//           TYPE_A, TYPE_C: the elements of the buffer, F32, F16 or BF16, TYPE_A with WRITES. The other macros, buffers and uniforms: the files that are included

#include "defaults.glsl"

#include "common.glsl"
#include "types.glsl"
#include "operand_c.glsl"

layout(local_size_x = WORKGROUP_X, local_size_y = WORKGROUP_Y) in;

#if TEXELS == 0
#define FORMAT_OF_TEXELS rgba8
#elif TEXELS == 1
#define FORMAT_OF_TEXELS rgba16f
#elif TEXELS == 2
#define FORMAT_OF_TEXELS rgba32f
#elif TEXELS == 3
#define FORMAT_OF_TEXELS r8
#elif TEXELS == 4
#define FORMAT_OF_TEXELS r16f
#else
#define FORMAT_OF_TEXELS r32f
#endif
#if WRITES
layout(FORMAT_OF_TEXELS, binding = 0) writeonly uniform highp image2D Texels;
#if TYPE_A == F32
layout(std430, binding = BINDING_A) readonly buffer BufferA { float A[]; };
float load(int at) { return A[at]; }
#else
layout(std430, binding = BINDING_A) readonly buffer BufferA { uint A[]; };
float load(int at) { return from_16_bits(A[at >> 1], at, TYPE_A == BF16); }
#endif
#else
layout(FORMAT_OF_TEXELS, binding = 0) readonly uniform highp image2D Texels;
#endif

void main() {
  ivec2 at = ivec2(gl_GlobalInvocationID.xy), texel_at = at + ivec2(0, y0);
  if (at.x >= size.x || at.y >= size.y) return;
  int channels = size.z, element = (at.y * size.x + at.x) * channels;
#if WRITES
  element += a_at.x;
  vec4 texel = vec4(load(element), 0.0, 0.0, 1.0);
  if (channels > 1) texel.y = load(element + 1);
  if (channels > 2) texel.z = load(element + 2);
  if (channels > 3) texel.w = load(element + 3);
  imageStore(Texels, texel_at, texel);
#else
  element += c_at.x;
  vec4 texel = imageLoad(Texels, texel_at);
#if NARROW_C
  if ((c_at.x & 1) == 0 && (channels & 1) == 0) {  // nobody else writes to these words
    C[element >> 1] = to_16_bits(texel.x) | to_16_bits(texel.y) << 16;
    if (channels > 2) C[(element >> 1) + 1] = to_16_bits(texel.z) | to_16_bits(texel.w) << 16;
    return;
  }
#endif
  store_c(element, texel.x);
  if (channels > 1) store_c(element + 1, texel.y);
  if (channels > 2) store_c(element + 2, texel.z);
  if (channels > 3) store_c(element + 3, texel.w);
#endif
}
