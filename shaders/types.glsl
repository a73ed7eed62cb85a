// The types of elements and of their sums: how an element is decoded, and how PER_VECTOR of them are a vector of 16 bytes.
//
// Macros    F32, F64, F16, ...: the types of include/glgemm/type_table.h
//           TYPE_A, TYPE_B: the element types of A and B; TYPE_C: the type of C, D and the bias; SUM: the type in which products are summed
//           HALVES_BY_INTEGERS: 1 if halves are decoded by integers, for drivers that do not compile unpackHalf2x16
//           PARTS: 1 if sums over parts of k go to the buffer of partial sums instead of to C, for reduce.comp to finish
//           PRECISION: 0: standard; 1: reproducible, sums are made in the order of k, each operation rounded; 2 and 3: sums have twice the
//           digits of f32, 2 as two floats, 3 as doubles. With 1 to 3 PARTS is 1, and a dispatch sums whole blocks of k
//           SEALED: 1 if these hold even on drivers that fuse or reorder what is `precise`

#ifndef GLGEMM  // see defaults.glsl
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
#endif

// How an operand is read: see operand_a.glsl.
#define NOTHING 0
#define ELEMENTS 1
#define VECTORS 2
#define LINES 3

// In GLSL the type of sums is ACC. PER_VECTOR of them are a VECTOR.
#if SUM == F32
#define ACC float
#define VECTOR vec4
#define PER_VECTOR 4
#elif SUM == F64
#define ACC double
#define VECTOR dvec2
#define PER_VECTOR 2
#elif SUM == I32
#define ACC int
#define VECTOR ivec4
#define PER_VECTOR 4
#elif SUM == U32
#define ACC uint
#define VECTOR uvec4
#define PER_VECTOR 4
#elif SUM == C64
#define ACC vec2
#define VECTOR vec4
#define PER_VECTOR 2
#elif SUM == C128
#define ACC dvec2
#define VECTOR dvec2
#define PER_VECTOR 1
#endif
#define IS_COMPLEX (SUM == C64 || SUM == C128)
#define SUMS_DOUBLES (SUM == F64 || SUM == C128 || PRECISION == 3)

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
// NVIDIA's compiler (580.159) keeps long loops as loops, and arrays of doubles that they index in memory: written out, a product is more than
// twice as fast, one of floats up to a sixth slower. And it gives wrong doubles where an array of them is `precise`. Others ignore the pragma.
#if SUMS_DOUBLES
#pragma optionNV(unroll all)
#endif
#if SUMS_DOUBLES && defined GL_NV_gpu_shader5
#define PRECISE_SUMS
#else
#define PRECISE_SUMS PRECISE
#endif
// The turns of a loop that calls finish(), which takes compilers long. NVIDIA's must not see that they are a constant, or the pragma writes the loop
// out; llvmpipe takes 1.17 times as long for doubles if it does not see that.
#ifdef GL_NV_gpu_shader5
#define ONE_BY_ONE(turns) max(turns, -size.z)
#else
#define ONE_BY_ONE(turns) turns
#endif
#if SEALED
// The same number, by way of its bits: size.z is never negative, but nothing says so.
float exact(float x) { return uintBitsToFloat(floatBitsToUint(x) ^ uint(size.z >> 31)); }
vec2 exact(vec2 x) { return uintBitsToFloat(floatBitsToUint(x) ^ uint(size.z >> 31)); }
vec4 exact(vec4 x) { return uintBitsToFloat(floatBitsToUint(x) ^ uint(size.z >> 31)); }
#if SUMS_DOUBLES
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

// A vector's elements as an array, for loops over them: a loop's variable must not choose a component.
ACC[PER_VECTOR] elements_of(VECTOR x) {
#if SUM == C64
  return ACC[PER_VECTOR](x.xy, x.zw);
#elif SUM == C128
  return ACC[PER_VECTOR](x);
#elif PER_VECTOR == 2
  return ACC[PER_VECTOR](x.x, x.y);
#else
  return ACC[PER_VECTOR](x.x, x.y, x.z, x.w);
#endif
}
VECTOR vector_of(ACC x[PER_VECTOR]) {
#if PER_VECTOR == 1
  return x[0];
#elif PER_VECTOR == 2
  return VECTOR(x[0], x[1]);
#else
  return VECTOR(x[0], x[1], x[2], x[3]);
#endif
}
// Element e of x, where e is chosen at run time.
#if SUM == C64
vec2 element(vec4 x, int e) { return e == 0 ? x.xy : x.zw; }
#elif SUM == C128
dvec2 element(dvec2 x, int e) { return x; }
#elif SUM == F64
double element(dvec2 x, int e) { return e < 1 ? x.x : x.y; }
#else
ACC element(VECTOR x, int e) { return e < 2 ? e < 1 ? x.x : x.y : e < 3 ? x.z : x.w; }
#endif
// x times each element of y.
#if SUM == C64
vec4 scale(vec2 x, vec4 y) { RETURN(vec4, EXACT(x.x * y) + EXACT(x.y * vec4(-y.y, y.x, -y.w, y.z))); }
#elif SUM == C128
dvec2 scale(dvec2 x, dvec2 y) { RETURN(dvec2, EXACT(x.x * y) + EXACT(x.y * dvec2(-y.y, y.x))); }
#else
VECTOR scale(ACC x, VECTOR y) { RETURN(VECTOR, x * y); }
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

// The vector of PER_VECTOR elements as they were read: of 32 bits and more, of 16, or of 8.
VECTOR vector_of_raw(int type, uvec4 bits) { return vector_of_bits(bits); }
#if SUM == F32 || SUM == I32 || SUM == U32
VECTOR vector_of_raw(int type, uvec2 words) {
  return VECTOR(from_word(type, words.x, 0), from_word(type, words.x, 1), from_word(type, words.y, 0), from_word(type, words.y, 1));
}
VECTOR vector_of_raw(int type, uint word) {
  return VECTOR(from_word(type, word, 0), from_word(type, word, 1), from_word(type, word, 2), from_word(type, word, 3));
}
#endif
