// What every kernel of C = act(alpha op(A) op(B) + beta C + D + bias) shares: element types, placement, the epilogue. Products and their
// sums are in sums.glsl, the activations in activation.glsl, and the end of an element in finish.glsl.
//
// Shapes    op(A) is m x k, op(B) is k x n, C is m x n
// Grid      workgroups over the columns (x) and rows (y) of the piece of C from x0 and y0 on, and over its layers (z) from z0 on; a layer is
//           an item of a batch, or with PARTS a part of k of an item. Some kernels have another grid, and say so
// Buffers   0: A, 1: B, 2: C, 3: D (the residual), 4: bias, 5: the items of a batch, 6: partial sums, 7 and 8: the scales and the zeros
//           of a quantised operand, where they lie apart; each a window of the operand; 9: the offsets of indexed operands
//           1 instead of B, or image unit 0: panels, what pack.comp made of A and B
//           BINDING_A, ..., BINDING_OFFSETS: other numbers of the storage buffers, for devices that have fewer
// Macros    TYPE_A, TYPE_B: the element types of A and B; TYPE_C: that of C, D and the bias (codes below)
//           QUANTIZED: 1 if A, or 2 if B, has codes in place of elements, see quantization.glsl; its type is then F32
//           INDEXED_A, INDEXED_B, INDEXED_C: 1 if tables say where the elements of the operand lie (with INDEXED_C those of D too);
//           pack.comp has A alone
//           EPILOGUE: 1 if D, a bias or an activation may apply; RESIDUAL, BIAS: 0 if D, or a bias, may not
//           ITEMS: 1 if each item has offsets and scalars of its own
//           PANELS: 0 if A and B are read as they lie, 1 if panels are read from a storage buffer, 2 if from an image
//           WIDE: A, or with READS_B_WIDE defined A and B, are read 16 bytes at a time, for which their lines begin and end at
//           multiples of that: 1 from their buffers, 2 A from image unit 1 and B from image unit 0
//           HALVES_BY_INTEGERS: 1 if halves are decoded by integers, for drivers that do not compile unpackHalf2x16
//           PARTS: 1 if sums over parts of k go to the buffer of partial sums instead of to C, for reduce.comp to finish
//           PRECISION: 0: standard; 1: reproducible, sums are made in the order of k, each operation rounded; 2 and 3: sums have twice the
//           digits of f32, 2 as two floats, 3 as doubles. With 1 to 3 PARTS is 1, and a dispatch sums whole blocks of k
//           SEALED: 1 if these hold even on drivers that fuse or reorder what is `precise`

#define F32 0
#define F64 1
#define F16 2
#define BF16 3
#define I32 4
#define U32 5
#define I8 6
#define C64 7
#define C128 8
#define F8E4M3 9
#define F8E5M2 10
#define U8 11

#ifndef TYPE_A
#define TYPE_A F32
#endif
#ifndef TYPE_B
#define TYPE_B F32
#endif
#ifndef TYPE_C
#define TYPE_C F32
#endif
#ifndef EPILOGUE
#define EPILOGUE 0
#endif
#ifndef RESIDUAL
#define RESIDUAL 1
#endif
#ifndef BIAS
#define BIAS 1
#endif
#ifndef ITEMS
#define ITEMS 0
#endif
#ifndef PANELS
#define PANELS 0
#endif
#ifndef PARTS
#define PARTS 0
#endif
#ifndef PRECISION
#define PRECISION 0
#endif
#ifndef SEALED
#define SEALED 0
#endif
#ifndef WIDE
#define WIDE 0
#endif
#ifndef QUANTIZED
#define QUANTIZED 0
#endif
#ifndef BLOCK_CODES
#define BLOCK_CODES 0
#endif
#ifndef BLOCK_BYTES
#define BLOCK_BYTES 0
#endif
#ifndef HAS_CHUNKS
#define HAS_CHUNKS 0
#endif
#ifndef INDEXED_A
#define INDEXED_A 0
#endif
#ifndef INDEXED_B
#define INDEXED_B 0
#endif
#ifndef INDEXED_C
#define INDEXED_C 0
#endif
#ifndef HALVES_BY_INTEGERS
#define HALVES_BY_INTEGERS 0
#endif
#ifndef BINDING_A
#define BINDING_A 0
#endif
#ifndef BINDING_B
#define BINDING_B 1
#endif
#ifndef BINDING_C
#define BINDING_C 2
#endif
#ifndef BINDING_D
#define BINDING_D 3
#endif
#ifndef BINDING_BIAS
#define BINDING_BIAS 4
#endif
#ifndef BINDING_ITEMS
#define BINDING_ITEMS 5
#endif
#ifndef BINDING_PARTIAL
#define BINDING_PARTIAL 6
#endif
#ifndef BINDING_SCALES
#define BINDING_SCALES 7
#endif
#ifndef BINDING_ZEROS
#define BINDING_ZEROS 8
#endif
#ifndef BINDING_OFFSETS
#define BINDING_OFFSETS 9
#endif

#ifdef GL_ES
#extension GL_EXT_texture_buffer : enable  // images of buffers, which OpenGL ES 3.1 itself lacks
#endif
// OpenGL ES needs these precisions; OpenGL ignores them.
precision highp float;
precision highp int;

// Pair i & 1 of four words, and word i & 1 of two or i & 3 of four. No component is chosen by an index that is no constant: NVIDIA's compiler
// makes a branch for each component of that, and refuses it of doubles.
uvec2 pair_of(uvec4 words, int i) { return (i & 1) != 0 ? words.zw : words.xy; }
uint word_of(uint word, int i) { return word; }
uint word_of(uvec2 words, int i) { return (i & 1) != 0 ? words.y : words.x; }
uint word_of(uvec4 words, int i) { return word_of(pair_of(words, i >> 1), i); }

// A buffer of A is made of elements, or of words of 1 << WORD_SHIFT_A elements of 16 or 8 bits; B likewise.
#define IS_16_BITS(type) (type == F16 || type == BF16)
#define IS_8_BITS(type) (type == F8E4M3 || type == F8E5M2 || type == I8 || type == U8)
#if IS_16_BITS(TYPE_A)
#define WORD_SHIFT_A 1
#elif IS_8_BITS(TYPE_A)
#define WORD_SHIFT_A 2
#else
#define WORD_SHIFT_A 0
#endif
#if IS_16_BITS(TYPE_B)
#define WORD_SHIFT_B 1
#elif IS_8_BITS(TYPE_B)
#define WORD_SHIFT_B 2
#else
#define WORD_SHIFT_B 0
#endif

// Sums are made in the type SUM, in GLSL ACC.
#define SUMS_IN_F32(type) (type == F32 || IS_16_BITS(type) || type == F8E4M3 || type == F8E5M2)
#define SUMS_IN_I32(type) (type == I32 || type == I8)
#define SUMS_IN_U32(type) (type == U32 || type == U8)
#if SUMS_IN_F32(TYPE_A) && SUMS_IN_F32(TYPE_B)
#define SUM F32
#elif SUMS_IN_U32(TYPE_A) && SUMS_IN_U32(TYPE_B)
#define SUM U32
// i8 with u8, where panels have i8 as the type of the sums.
#elif SUMS_IN_I32(TYPE_A) && SUMS_IN_I32(TYPE_B) || SUMS_IN_I32(TYPE_A) && TYPE_B == U8 || TYPE_A == U8 && SUMS_IN_I32(TYPE_B)
#define SUM I32
#elif TYPE_A == TYPE_B
#define SUM TYPE_A
#else
#error "gemm: products of TYPE_A and TYPE_B have no type of sums"
#endif
#if SUM == F32
#define ACC float
#elif SUM == F64
#define ACC double
#elif SUM == I32
#define ACC int
#elif SUM == U32
#define ACC uint
#elif SUM == C64
#define ACC vec2
#elif SUM == C128
#define ACC dvec2
#else
#error "gemm: TYPE_A and TYPE_B must be some of those above"
#endif
#define IS_COMPLEX (SUM == C64 || SUM == C128)
#define ZERO ACC(0)
#if PRECISION < 0 || PRECISION > 3 || (PRECISION > 1 && SUM != F32)
#error "gemm: PRECISION must be 0 to 3, and 0 or 1 unless sums are floats"
#endif
#if PRECISION > 0 && !(PARTS || defined PACKS || defined REDUCES)
#error "gemm: with PRECISION, reduce.comp finishes C"
#endif
// With PRECISION drivers must compute what is written: nothing fused, nothing in another order. Only `precise` says so, and only of a
// variable: a function's result has to pass through one. For drivers that take that lightly, EXACT(x) is the result of one operation, and
// with SEALED no compiler can know that it is.
#if PRECISION
#define PRECISE precise
#define RETURN(type, value) { precise type result = EXACT(value); return result; }
#else
#define PRECISE
#define RETURN(type, value) return value
#endif
// A sum that is not complete yet. Of two floats the first is the rounded sum, the second about what roundings took from it.
#if PRECISION == 2
#define RUNNING vec2
#elif PRECISION == 3
#define RUNNING double
#else
#define RUNNING ACC
#endif
#if WORD_SHIFT_A > 0 || QUANTIZED == 1
#define WORD_A uint
#else
#define WORD_A ACC
#endif
#if WORD_SHIFT_B > 0 || QUANTIZED == 2
#define WORD_B uint
#else
#define WORD_B ACC
#endif
#if QUANTIZED < 0 || QUANTIZED > 2 || QUANTIZED > 0 && (SUM != F32 || QUANTIZED == 1 && TYPE_A != F32 || QUANTIZED == 2 && TYPE_B != F32)
#error "gemm: QUANTIZED must be 0, 1 or 2, and the type of that operand F32"
#endif
// C is stored as it is summed, or where that is F32 in 16 bits.
#define NARROW_C (TYPE_C != SUM)
#if NARROW_C
#define WORD_C uint
#else
#define WORD_C ACC
#endif
#if NARROW_C && !(SUM == F32 && IS_16_BITS(TYPE_C))
#error "gemm: C must be of the type of the sums, or where that is F32 of 16 bits"
#endif

// What a kernel reads and writes itself. One that reads A as it lies although it has PANELS defines A_AS_IT_LIES; pack.comp defines
// PACKS and reduce.comp REDUCES. One whose sums are whole when it finishes C defines WHOLE_SUMS: it has no partial sums.
#if defined PACKS
#define READS_A 1
#define READS_B 0
#define WRITES_C 0
#elif defined REDUCES
#define READS_A 0
#define READS_B 0
#define WRITES_C 1
#else
#if PANELS == 0 || defined A_AS_IT_LIES
#define READS_A 1
#else
#define READS_A 0
#endif
#define READS_B (PANELS == 0)
#define WRITES_C (PARTS == 0)
#endif

// With WIDE, a kernel that reads A alone so takes 4 words of codes at a time. From a storage buffer it takes 2 where it takes 4 blocks of
// 32 codes in a turn, which are a multiple of 8 bytes, and 1 where rows would have to be very long for a turn of whole vectors.
#if WIDE == 0 || QUANTIZED != 1 || defined READS_B_WIDE
#define CODES_IN_VECTORS 0
#elif WIDE == 2 || BLOCK_CODES <= 1 || BLOCK_BYTES % 16 == 0
#define CODES_IN_VECTORS 4
#elif BLOCK_CODES == 32 && BLOCK_BYTES % 2 == 0
#define CODES_IN_VECTORS 2
#else
#define CODES_IN_VECTORS 0
#endif
// With WIDE, one read of A takes 16 bytes. A kernel that reads B by vectors too (READS_B_WIDE) reads the elements of one vector instead:
// 4 elements of 16 bits have 8 bytes, and 4 elements of 8 bits have 4. The kernel decodes them when it needs them.
#if QUANTIZED == 1 && defined READS_B_WIDE
#define WIDE_A CodesRead
#elif CODES_IN_VECTORS == 2
#define WIDE_A uvec2
#elif (defined READS_B_WIDE || defined READS_QUADS) && WORD_SHIFT_A == 1
#define WIDE_A uvec2
#elif (defined READS_B_WIDE || defined READS_QUADS) && WORD_SHIFT_A == 2
#define WIDE_A uint
#else
#define WIDE_A uvec4
#endif
#if QUANTIZED == 2
#define WIDE_B CodesRead
#elif WORD_SHIFT_B == 1
#define WIDE_B uvec2
#elif WORD_SHIFT_B == 2
#define WIDE_B uint
#else
#define WIDE_B uvec4
#endif
#if WIDE == 2 && QUANTIZED > 0 && defined READS_B_WIDE
#error "gemm: with WIDE 2 codes are read by a kernel that reads A alone so"
#endif
#if WIDE == 2 && defined READS_B_WIDE && (WORD_SHIFT_A > 0 || WORD_SHIFT_B > 0)
#error "gemm: with WIDE 2 A and B are images of 16 bytes, and no kernel reads elements of 8 or 16 bits of both so"
#endif

#if READS_A
#if WIDE == 1 && (QUANTIZED != 1 || CODES_IN_VECTORS > 0)
layout(std430, binding = BINDING_A) readonly buffer BufferA { WIDE_A A[]; };
#define VECTOR_A(at) A[at]
#define BITS_A(index) A[uint(index) / uint(PER_16_BYTES)]
#elif WIDE == 2
layout(rgba32ui, binding = 1) readonly uniform highp uimageBuffer A;
// Only drivers that compute on the CPU read A as an image. llvmpipe takes 1.5 times as long with an unsigned quotient here.
#define VECTOR_A(at) imageLoad(A, at)
#define BITS_A(index) imageLoad(A, (index) / PER_16_BYTES)
#elif WIDE < 0 || WIDE > 2
#error "gemm: WIDE must be 0, 1 or 2"
#else
layout(std430, binding = BINDING_A) readonly buffer BufferA { WORD_A A[]; };
#endif
#endif
// A kernel that defines TAKES_QUADS_OF_B reads a vector's elements of a column of B at a time where B_ALONG_K is 1. One that defines
// READS_QUADS reads as many elements of A and of B as a vector has, with WIDE; B then is in its buffer.
#if READS_B && defined TAKES_QUADS_OF_B
#define READS_QUADS_OF_B B_ALONG_K
#elif READS_B && defined READS_QUADS && WIDE > 0
#define READS_QUADS_OF_B 1
#else
#define READS_QUADS_OF_B 0
#endif
#if READS_B
#if WIDE == 1 && defined READS_B_WIDE && QUANTIZED != 2 || READS_QUADS_OF_B && (WIDE != 2 || defined READS_QUADS)
layout(std430, binding = BINDING_B) readonly buffer BufferB { WIDE_B B[]; };
#define VECTOR_B(at) B[at]
#elif WIDE == 2 && (defined READS_B_WIDE || READS_QUADS_OF_B)
layout(rgba32ui, binding = 0) readonly uniform highp uimageBuffer B;
#if WORD_SHIFT_B == 1
#define VECTOR_B(at) pair_of(imageLoad(B, (at) >> 1), at)
#elif WORD_SHIFT_B == 2
#define VECTOR_B(at) word_of(imageLoad(B, (at) >> 2), at)
#else
#define VECTOR_B(at) imageLoad(B, at)
#endif
#else
layout(std430, binding = BINDING_B) readonly buffer BufferB { WORD_B B[]; };
#endif
#endif
#if PANELS == 1
layout(std430, binding = BINDING_B) readonly buffer BufferPanels { uvec4 Panels[]; };
#define PANEL_BITS(index) Panels[index]
#elif PANELS == 2
layout(rgba32ui, binding = 0) readonly uniform highp uimageBuffer Panels;
#define PANEL_BITS(index) imageLoad(Panels, index)
#elif PANELS != 0
#error "gemm: PANELS must be 0, 1 or 2"
#endif
#if WRITES_C
layout(std430, binding = BINDING_C) buffer BufferC { WORD_C C[]; };
#endif

layout(location = 0) uniform int x0;      // first column of C of this dispatch
layout(location = 1) uniform int y0;      // first row of C of this dispatch
layout(location = 2) uniform int z0;      // first layer of this dispatch
layout(location = 3) uniform ivec4 size;  // m, n, k of the piece; the items of the batch
// Element (i, j) of item z of an operand lies at at.x + i * at.y + j * at.z + z * at.w; of an indexed one, the sum of two offsets takes
// the place of the two products.
layout(location = 4) uniform ivec4 a_at;
layout(location = 5) uniform ivec4 b_at;
layout(location = 6) uniform ivec4 c_at;
#if INDEXED_A || INDEXED_B || INDEXED_C
layout(std430, binding = BINDING_OFFSETS) readonly buffer BufferOffsets { int Offsets[]; };
// The first offsets of op(A)'s rows and columns, of op(B)'s rows and columns; and of C's.
layout(location = 19) uniform ivec4 offsets_at;
layout(location = 20) uniform ivec3 offsets_of_c_at;  // the last is not used
#endif

// How far row i, or column j, of an operand lies from its first one.
#if INDEXED_A
int row_of_a(int i) { return Offsets[offsets_at.x + i]; }
int column_of_a(int p) { return Offsets[offsets_at.y + p]; }
#else
int row_of_a(int i) { return i * a_at.y; }
int column_of_a(int p) { return p * a_at.z; }
#endif
#if INDEXED_B
int row_of_b(int p) { return Offsets[offsets_at.z + p]; }
int column_of_b(int j) { return Offsets[offsets_at.w + j]; }
#else
int row_of_b(int p) { return p * b_at.y; }
int column_of_b(int j) { return j * b_at.z; }
#endif
layout(location = 7) uniform ACC alpha;
layout(location = 8) uniform ACC beta;
layout(location = 9) uniform int flags;

#if SEALED
// The same number, by way of its bits: size.z is never negative, but nothing says so.
#define SEAL_FLOATS(type) type exact(type x) { return uintBitsToFloat(floatBitsToUint(x) ^ uint(size.z >> 31)); }
SEAL_FLOATS(float)
SEAL_FLOATS(vec2)
SEAL_FLOATS(vec4)
#if SUM == F64 || SUM == C128 || PRECISION == 3
double exact(double x) { return packDouble2x32(unpackDouble2x32(x) ^ uint(size.z >> 31)); }
dvec2 exact(dvec2 x) { return dvec2(exact(x.x), exact(x.y)); }
dvec4 exact(dvec4 x) { return dvec4(exact(x.xy), exact(x.zw)); }
#endif
#define EXACT(x) exact(x)
#define ADD_TO(to, x) to = exact(to + exact(x))
#else
#define EXACT(x) x
#define ADD_TO(to, x) to += x
#endif

// A vector: PER_VECTOR elements in 16 bytes. ELEMENT_OF(x, e) is element e of x, and e a constant; element(x, e) selects it, where e is none.
// SCALE(x, e, y) and scale(x, y) are element e of x, or x, times each element of y.
#if SUM == C64
#define VECTOR vec4
#define PER_VECTOR 2
vec4 scale(vec2 x, vec4 y) { RETURN(vec4, EXACT(x.x * y) + EXACT(x.y * vec4(-y.y, y.x, -y.w, y.z))); }
#define ELEMENT_OF(x, e) vec2((x)[2 * (e)], (x)[2 * (e) + 1])
vec2 element(vec4 x, int e) { return e == 0 ? x.xy : x.zw; }
#define SCALE(x, e, y) scale(ELEMENT_OF(x, e), y)
#define VECTOR_OF(get) vec4(get(0), get(1))
#elif SUM == C128
#define VECTOR dvec2
#define PER_VECTOR 1
dvec2 scale(dvec2 x, dvec2 y) { RETURN(dvec2, EXACT(x.x * y) + EXACT(x.y * dvec2(-y.y, y.x))); }
#define ELEMENT_OF(x, e) (x)
dvec2 element(dvec2 x, int e) { return x; }
#define SCALE(x, e, y) scale(x, y)
#define VECTOR_OF(get) get(0)
#else
#if SUM == F64
#define VECTOR dvec2
#define PER_VECTOR 2
#define SELECTED(v, e) ((e) < 1 ? (v).x : (v).y)
#define VECTOR_OF(get) dvec2(get(0), get(1))
#else
#if SUM == U32
#define VECTOR uvec4
#elif SUM == I32
#define VECTOR ivec4
#else
#define VECTOR vec4
#endif
#define PER_VECTOR 4
#define SELECTED(v, e) ((e) < 2 ? (e) < 1 ? (v).x : (v).y : (e) < 3 ? (v).z : (v).w)
#define VECTOR_OF(get) VECTOR(get(0), get(1), get(2), get(3))
#endif
VECTOR scale(ACC x, VECTOR y) { RETURN(VECTOR, x * y); }
#define ELEMENT_OF(x, e) (x)[e]
ACC element(VECTOR x, int e) { return SELECTED(x, e); }
#define SCALE(x, e, y) (x)[e] * (y)
#endif

VECTOR vector_of_bits(uvec4 bits) {
#if SUM == F64 || SUM == C128
  return dvec2(packDouble2x32(bits.xy), packDouble2x32(bits.zw));
#elif SUM == U32
  return bits;
#elif SUM == I32
  return ivec4(bits);
#else
  return uintBitsToFloat(bits);
#endif
}

#if PANELS > 0 || defined PACKS
layout(location = 15) uniform ivec4 panels_at;  // the first vector of A's and of B's panels; the vectors from item to item of each
#ifdef PACKS
layout(std430, binding = BINDING_PARTIAL) writeonly buffer BufferPacked { VECTOR Packed[]; };
#else
VECTOR panel(int index) { return vector_of_bits(PANEL_BITS(index)); }
#endif
#endif

#if PARTS || defined REDUCES
layout(location = 16) uniform ivec3 parts;  // the items of the piece, the length of a part of k, the parts
#endif
// Layer l of a dispatch is a part of k of an item: first come the items of the first part.
#if PARTS
#define ITEM(l) ((l) % parts.x)
#define BEGIN_K(l) ((l) / parts.x * parts.y)
#define END_K(l) min(size.z, BEGIN_K(l) + parts.y)
#else
#define ITEM(l) (l)
#define BEGIN_K(l) 0
#define END_K(l) size.z
#endif

#define CONJUGATE_A 1
#define CONJUGATE_B 2
#define READ_C 4     // beta is not 0
#define FIRST_K 8    // the first window of k: beta C and D come in
#define LAST_K 16    // the last window of k: bias and activation apply
#define ADD_D 32
#define ADD_BIAS 64
#define PACKS_B 128

bool has(int flag) { return (flags & flag) != 0; }

#if ITEMS
struct Item {
  int a, b, c, d;  // added to the placement
  ACC alpha, beta;
};
layout(std430, binding = BINDING_ITEMS) readonly buffer BufferItems { Item items[]; };
#define ALPHA(z) items[z].alpha
#define BETA(z) items[z].beta
#define OFFSET(z, operand, at) items[z].operand
#else
#define ALPHA(z) alpha
#define BETA(z) beta
#define OFFSET(z, operand, at) (z) * at.w
#endif

#include "sums.glsl"

ACC conjugate_if(int flag, ACC value) {
#if IS_COMPLEX
  if (has(flag)) value.y = -value.y;
#endif
  return value;
}

// The half of these 16 bits as a float.
float from_half(uint bits) {
#if HALVES_BY_INTEGERS
  uint magnitude = bits & 0x7fffu;
  // What is added to the exponent makes it a float's. Infinity and NaN get the largest exponent.
  uint exponent = magnitude < 0x7c00u ? 0x38000000u : 0x70000000u;
  PRECISE float value = magnitude < 0x400u ? EXACT(float(magnitude) * 5.9604644775390625e-8) : uintBitsToFloat((magnitude << 13) + exponent);
  return uintBitsToFloat(floatBitsToUint(value) | (bits & 0x8000u) << 16);
#else
  return unpackHalf2x16(bits).x;
#endif
}

// The 16 bits of element `index`, of the word that holds it, as a float.
float from_16_bits(uint word, int index, bool brain) {
  uint bits = (word >> ((index & 1) * 16)) & 0xffffu;
  return brain ? uintBitsToFloat(bits << 16) : from_half(bits);
}

// Element `index` of a type of 16 or 8 bits, of the word that holds it. The type is a constant, and compilers keep its case alone.
#if SUM == F32
float from_word(int type, uint word, int index) {
  if (type == F16 || type == BF16) return from_16_bits(word, index, type == BF16);
  uint bits = bitfieldExtract(word, (index & 3) * 8, 8);
  if (type == F8E5M2) return from_half(bits << 8);  // the upper bits of a half
  // F8E4M3. Shifted into a half, the exponent is 8 too small. All bits set are NaN.
  PRECISE float value = EXACT(from_half((bits & 0x80u) << 8 | (bits & 0x7fu) << 7) * 256.0);
  return (bits & 0x7fu) == 0x7fu ? uintBitsToFloat(0x7fc00000u) : value;
}
#elif SUM == I32 || SUM == U32
ACC from_word(int type, uint word, int index) {
  int at = (index & 3) * 8;
  return type == I8 ? ACC(bitfieldExtract(int(word), at, 8)) : ACC(bitfieldExtract(word, at, 8));
}
#endif

#if WIDE && defined READS_B_WIDE || READS_QUADS_OF_B
// The vector of those bits.
VECTOR vector_of_read(int type, uvec4 bits) { return vector_of_bits(bits); }
#if SUM == F32 || SUM == I32 || SUM == U32
VECTOR vector_of_read(int type, uvec2 words) {
  return VECTOR(from_word(type, words.x, 0), from_word(type, words.x, 1), from_word(type, words.y, 0), from_word(type, words.y, 1));
}
VECTOR vector_of_read(int type, uint word) {
  return VECTOR(from_word(type, word, 0), from_word(type, word, 1), from_word(type, word, 2), from_word(type, word, 3));
}
#endif
#endif

#include "quantization.glsl"

#if READS_A
#if WIDE && QUANTIZED != 1
// The elements in 16 bytes, and element e of those, a constant. BITS_A(index) are those that begin with element `index`.
#if WORD_SHIFT_A > 0
#define PER_16_BYTES (4 << WORD_SHIFT_A)
#else
#define PER_16_BYTES PER_VECTOR
#endif
#if WORD_SHIFT_A > 0
#define ELEMENT_OF_A(bits, e) from_word(TYPE_A, (bits)[(e) >> WORD_SHIFT_A], e)
#else
#define ELEMENT_OF_A(bits, e) conjugate_if(CONJUGATE_A, ELEMENT_OF(vector_of_bits(bits), e))
#endif
#else
ACC load_a(int index) {
#if QUANTIZED == 1
  return dequantize(index);
#elif WORD_SHIFT_A > 0
  return from_word(TYPE_A, A[index >> WORD_SHIFT_A], index);
#else
  return conjugate_if(CONJUGATE_A, A[index]);
#endif
}
#endif
// Where row `row` of op(A) of item z begins. op(A)(row, p) is column_of_a(p) further.
int a_row(int z, int row) { return a_at.x + row_of_a(row) + OFFSET(z, a, a_at); }
#endif

#if READS_B
#if !(WIDE && defined READS_B_WIDE) && !(READS_QUADS_OF_B && PER_VECTOR < 4)
ACC load_b(int index) {
#if QUANTIZED == 2
  return dequantize(index);
#elif READS_QUADS_OF_B && WORD_SHIFT_B > 0
  return from_word(TYPE_B, word_of(VECTOR_B(index >> 2), index >> WORD_SHIFT_B), index);
#elif READS_QUADS_OF_B
  return vector_of_bits(uvec4(word_of(VECTOR_B(index >> 2), index))).x;
#elif WORD_SHIFT_B > 0
  return from_word(TYPE_B, B[index >> WORD_SHIFT_B], index);
#else
  return conjugate_if(CONJUGATE_B, B[index]);
#endif
}
#endif
// Where column `column` of op(B) of item z begins. op(B)(p, column) is row_of_b(p) further.
int b_column(int z, int column) { return b_at.x + column_of_b(column) + OFFSET(z, b, b_at); }
#endif

#include "activation.glsl"
#include "finish.glsl"
