// B: op(B) is k x n. Its type or format, where its elements lie, and how they are loaded.
//
// B_READS   as A_READS: NOTHING, ELEMENTS or VECTORS. Elements of 32 bits and less have load_b() with VECTORS, too
// B_IMAGE   1: VECTORS come from image unit 0; 0: from the storage buffer
// INDEXED_B 1: a table says where rows and columns lie

// Where column `column` of op(B) of item z begins. op(B)(p, column) is row_of_b(p) further.
#if INDEXED_B
int row_of_b(int p) { return Offsets[offsets_at.z + p]; }
int column_of_b(int j) { return Offsets[offsets_at.w + j]; }
#else
int row_of_b(int p) { return p * b_at.y; }
int column_of_b(int j) { return j * b_at.z; }
#endif
int b_column(int z, int column) { return b_at.x + column_of_b(column) + OFFSET(z, b, b_at); }

#if B_READS < VECTORS
#define RAW_B VECTOR
#elif QUANTIZED == 2
#define RAW_B uvec3
#elif WORD_SHIFT_B == 1
#define RAW_B uvec2
#elif WORD_SHIFT_B == 2
#define RAW_B uint
#else
#define RAW_B uvec4
#endif

#if B_READS == VECTORS && B_IMAGE
layout(rgba32ui, binding = 0) readonly uniform highp uimageBuffer B;
#elif B_READS == VECTORS && QUANTIZED != 2
layout(std430, binding = BINDING_B) readonly buffer BufferB { RAW_B B[]; };
#elif B_READS != NOTHING && (WORD_SHIFT_B > 0 || QUANTIZED == 2)
layout(std430, binding = BINDING_B) readonly buffer BufferB { uint B[]; };
#elif B_READS != NOTHING
layout(std430, binding = BINDING_B) readonly buffer BufferB { ACC B[]; };
#endif

#if QUANTIZED == 2 && B_READS != NOTHING
int row_length() { return b_at.z; }
uint word_of_codes(int i) { return B[i]; }
ACC load_b(int at) { return dequantize(at); }
#if B_READS == VECTORS
RAW_B raw_b(int v) { return raw_codes(v * PER_VECTOR); }
VECTOR vector_b(RAW_B raw, int at) { return vector_of_codes(raw, at); }
#endif
#elif B_READS == VECTORS
RAW_B raw_b(int v) {
#if B_IMAGE
  RAW_B raw;
  take_raw(imageLoad(B, v >> WORD_SHIFT_B), v, raw);
  return raw;
#else
  return B[v];
#endif
}
VECTOR vector_b(RAW_B raw, int at) { return vector_of_raw(TYPE_B, raw); }
#if WORD_SHIFT_B > 0
ACC load_b(int at) { return from_word(TYPE_B, word_of(raw_b(at >> 2), at >> WORD_SHIFT_B), at); }
#elif PER_VECTOR == 4
ACC load_b(int at) { return vector_of_bits(uvec4(word_of(raw_b(at >> 2), at))).x; }
#endif
#elif B_READS == ELEMENTS && WORD_SHIFT_B > 0
ACC load_b(int at) { return from_word(TYPE_B, B[at >> WORD_SHIFT_B], at); }
#elif B_READS == ELEMENTS
ACC load_b(int at) { return conjugate_if(CONJUGATE_B, B[at]); }
#endif
#if B_READS < VECTORS
VECTOR vector_b(VECTOR raw, int at) { return raw; }
#endif
