// A: op(A) is m x k. Its type or format, where its elements lie, and how they are loaded.
//
// A_READS   says how, and the includer defines it:
//           NOTHING   A is not read from where it lies
//           ELEMENTS  load_a(at) is the element at `at`
//           VECTORS   raw_a(v) reads PER_VECTOR elements, the first is number PER_VECTOR * v; vector_a(raw, at) decodes them, `at` is the first
//           LINES     bits_a(at) reads 16 bytes, of which element `at` is the first, and part_of_a(bits, n) decodes the n-th PER_VECTOR
//                     elements of them. Codes are read so by chunks, and one by one by load_a()
// WIDE      1: VECTORS and LINES come from a storage buffer, 2: from image unit 1. They begin at multiples of 16 bytes
// INDEXED_A 1: a table says where rows and columns lie
// WORD_SHIFT_A  a buffer is made of words of 1 << WORD_SHIFT_A elements; 0 of elements that are no smaller than a word

// Where row `row` of op(A) of item z begins. op(A)(row, p) is column_of_a(p) further.
#if INDEXED_A
int row_of_a(int i) { return Offsets[offsets_at.x + i]; }
int column_of_a(int p) { return Offsets[offsets_at.y + p]; }
#else
int row_of_a(int i) { return i * a_at.y; }
int column_of_a(int p) { return p * a_at.z; }
#endif
int a_row(int z, int row) { return a_at.x + row_of_a(row) + OFFSET(z, a, a_at); }

#if A_READS < VECTORS
#define RAW_A VECTOR  // of elements that are decoded
#elif QUANTIZED == 1
#define RAW_A uvec3
#elif WORD_SHIFT_A == 1 && A_READS == VECTORS
#define RAW_A uvec2
#elif WORD_SHIFT_A == 2 && A_READS == VECTORS
#define RAW_A uint
#else
#define RAW_A uvec4
#endif

#if A_READS >= VECTORS && WIDE == 2
layout(rgba32ui, binding = 1) readonly uniform highp uimageBuffer A;
#elif A_READS == LINES && CODES_AT_ONCE > 1
layout(std430, binding = BINDING_A) readonly buffer BufferA { CODES_READ A[]; };
#elif A_READS >= VECTORS && QUANTIZED != 1
layout(std430, binding = BINDING_A) readonly buffer BufferA { RAW_A A[]; };
#elif A_READS != NOTHING && (WORD_SHIFT_A > 0 || QUANTIZED == 1)
layout(std430, binding = BINDING_A) readonly buffer BufferA { uint A[]; };
#elif A_READS != NOTHING
layout(std430, binding = BINDING_A) readonly buffer BufferA { ACC A[]; };
#endif

#if QUANTIZED == 1 && A_READS != NOTHING
int row_length() { return a_at.y; }
#if A_READS == LINES && WIDE == 2
uvec4 codes_of(int v) { return imageLoad(A, v); }
uint word_of_codes(int i) { return word_of(codes_of(i >> 2), i); }
#elif A_READS == LINES && CODES_AT_ONCE > 1
CODES_READ codes_of(int v) { return A[v]; }
uint word_of_codes(int i) { return word_of(A[i >> CODES_AT_ONCE / 2], i); }
#else
uint word_of_codes(int i) { return A[i]; }
#endif
ACC load_a(int at) { return dequantize(at); }
#if A_READS == VECTORS
RAW_A raw_a(int v) { return raw_codes(v * PER_VECTOR); }
VECTOR vector_a(RAW_A raw, int at) { return vector_of_codes(raw, at); }
#endif
#elif A_READS == LINES
// The elements in 16 bytes. Images are read so on the CPU alone; llvmpipe takes 1.5 times as long with an unsigned quotient there.
const int line_a = PER_VECTOR << WORD_SHIFT_A;
#if WIDE == 2
uvec4 bits_a(int at) { return imageLoad(A, at / line_a); }
#else
uvec4 bits_a(int at) { return A[uint(at) / uint(line_a)]; }
#endif
VECTOR part_of_a(uvec4 bits, int n) {
#if WORD_SHIFT_A == 1
  return vector_of_raw(TYPE_A, pair_of(bits, n));
#elif WORD_SHIFT_A == 2
  return vector_of_raw(TYPE_A, word_of(bits, n));
#else
  return vector_of_bits(bits);
#endif
}
#elif A_READS == VECTORS
RAW_A raw_a(int v) {
#if WIDE == 2
  RAW_A raw;
  take_raw(imageLoad(A, v >> WORD_SHIFT_A), v, raw);
  return raw;
#else
  return A[v];
#endif
}
VECTOR vector_a(RAW_A raw, int at) { return vector_of_raw(TYPE_A, raw); }
#elif A_READS == ELEMENTS && WORD_SHIFT_A > 0
ACC load_a(int at) { return from_word(TYPE_A, A[at >> WORD_SHIFT_A], at); }
#elif A_READS == ELEMENTS
ACC load_a(int at) { return conjugate_if(CONJUGATE_A, A[at]); }
#endif
#if A_READS < VECTORS
VECTOR vector_a(VECTOR raw, int at) { return raw; }
#endif
