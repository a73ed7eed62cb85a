// What every program shares: the numbers of the buffers, what is dispatched, and where operands begin.
//
// Grid      workgroups over the columns (x) and rows (y) of the piece of C from x0 and y0 on, and over its layers (z) from z0 on. Some
//           programs have another grid, and say so
// Buffers   0: A, 1: B, 2: C, 3: D (the residual), 4: bias, 5: the items of a batch, 6: partial sums, 7 and 8: the scales and the zeros
//           of a quantised operand, where they lie apart; each a window of the operand; 9: the offsets of indexed operands
//           1 instead of B, or image unit 0: panels, what pack.comp made of A and B
//           BINDING_A, ..., BINDING_OFFSETS: other numbers of the storage buffers, for devices that have fewer

#include "defaults.glsl"

#if BROADCAST > 1  // register and gemv; fma() then is one instruction
#extension GL_ARB_shader_ballot : require
#define FUSES
#endif
#ifdef GL_ES
#extension GL_EXT_texture_buffer : enable  // images of buffers, which OpenGL ES 3.1 itself lacks
#endif
// OpenGL ES needs these precisions; OpenGL ignores them.
precision highp float;
precision highp int;

layout(location = 0) uniform int x0;      // first column of C of this dispatch
layout(location = 1) uniform int y0;      // first row of C of this dispatch
layout(location = 2) uniform int z0;      // first layer of this dispatch
layout(location = 3) uniform ivec4 size;  // m, n, k of the piece; the items of the batch
// Element (i, j) of item z of an operand lies at at.x + i * at.y + j * at.z + z * at.w; of an indexed one, the sum of two offsets takes
// the place of the two products.
layout(location = 4) uniform ivec4 a_at;
layout(location = 5) uniform ivec4 b_at;
layout(location = 6) uniform ivec4 c_at;

// Pair i & 1 of four words, and word i & 1 of two or i & 3 of four. No component is chosen by an index that is no constant: NVIDIA's compiler
// makes a branch for each component of that, and refuses it of doubles.
uvec2 pair_of(uvec4 words, int i) { return (i & 1) != 0 ? words.zw : words.xy; }
uint word_of(uint word, int i) { return word; }
uint word_of(uvec2 words, int i) { return (i & 1) != 0 ? words.y : words.x; }
uint word_of(uvec4 words, int i) { return word_of(pair_of(words, i >> 1), i); }
// Part i of these words, where a part is all of them, two or one.
void take_raw(uvec4 words, int i, out uvec4 raw) { raw = words; }
void take_raw(uvec4 words, int i, out uvec2 raw) { raw = pair_of(words, i); }
void take_raw(uvec4 words, int i, out uint raw) { raw = word_of(words, i); }
