// Quantised operands: from codes to numbers. One operand at most is quantised, A with QUANTIZED 1 and B with 2. It has codes in place of
// elements, and an element's index is that of its code.
//
//   value = scale of its group * (code - zero of its group) + offset of its group
//
// Where codes, scales and offsets lie together in blocks, the layouts are ggml's. Blocks have bytes that are no multiple of a word:
// OpenGL reads words, and shifts bring out what lies in them.
//
// Macros    FORMAT: the format (numbers below); BLOCK_CODES, BLOCK_BYTES: the codes and the bytes of a block, 0 or 1 where scales lie apart;
//           HAS_CHUNKS: 1 if chunks.glsl has the format; of NBITS, CODE_BITS: 4 or 8; GROUP: the codes that share a scale; ZEROS: 1 if each group has
//           a zero of its own; of what lies apart, SCALES: the type of the scales; of PER_ROW and PER_TENSOR, CODES: the type of a code
// Uniform   codes_at: the byte of the binding at which the window's codes begin; the first scale; the first byte of the zeros; the elements
//           of the first row that lie before the window

// The formats, as include/glgemm/quantization_table.h numbers them.
#define UNQUANTIZED 0
#define Q8_0 1
#define Q4_0 2
#define Q4_1 3
#define Q5_0 4
#define Q5_1 5
#define Q4_K 6
#define Q5_K 7
#define Q6_K 8
#define MXFP4 9
#define NBITS 10
#define PER_ROW 11
#define PER_TENSOR 12

#ifndef FORMAT
#define FORMAT UNQUANTIZED
#endif
#ifndef CODE_BITS
#define CODE_BITS 4
#endif
#ifndef GROUP
#define GROUP 32
#endif
#ifndef ZEROS
#define ZEROS 0
#endif
#ifndef SCALES
#define SCALES F32
#endif
#ifndef CODES
#define CODES I8
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
#if QUANTIZED < 0 || QUANTIZED > 2 || QUANTIZED > 0 && (SUM != F32 || QUANTIZED == 1 && TYPE_A != F32 || QUANTIZED == 2 && TYPE_B != F32)
#error "quantization: QUANTIZED must be 0, 1 or 2, and the type of that operand F32"
#endif
#if (QUANTIZED > 0) != (FORMAT != UNQUANTIZED)
#error "quantization: FORMAT must be one of those above where an operand is quantised"
#endif
#if (CODE_BITS != 4 && CODE_BITS != 8) || GROUP < 16 || (GROUP & (GROUP - 1)) != 0 || (ZEROS != 0 && ZEROS != 1)
#error "quantization: CODE_BITS must be 4 or 8, GROUP a power of two from 16 on, ZEROS 0 or 1"
#endif
#if (SCALES != F32 && SCALES != F16 && SCALES != BF16) || !IS_8_BITS(CODES)
#error "quantization: SCALES must be F32, F16 or BF16, and CODES a type of 8 bits"
#endif

// Whether scales lie in arrays of their own, and whether codes are elements of a type.
#define SCALES_APART (BLOCK_CODES <= 1)
#define HAS_ELEMENTS (FORMAT == PER_ROW || FORMAT == PER_TENSOR)
// Whether groups have offsets, and whether the upper bits of codes lie apart.
#define HAS_OFFSETS (FORMAT == Q4_1 || FORMAT == Q5_1 || FORMAT == Q4_K || FORMAT == Q5_K)
#define HAS_HIGH_BITS (FORMAT == Q5_0 || FORMAT == Q5_1 || FORMAT == Q5_K || FORMAT == Q6_K)
// Where in a block the codes begin, and their upper bits; and the code without sign that stands for 0, of MXFP4 for twice the number.
const int codes_byte = FORMAT == MXFP4 ? 1 : FORMAT == Q4_1 ? 4 : FORMAT == Q5_0 ? 6 : FORMAT == Q5_1 ? 8 : FORMAT == Q4_K ? 16 :
                       FORMAT == Q5_K ? 48 : FORMAT == Q6_K ? 0 : 2;
const int high_byte = FORMAT == Q5_0 ? 2 : FORMAT == Q5_1 ? 4 : FORMAT == Q5_K ? 16 : 128;
const int zero_code = FORMAT == Q8_0 || HAS_ELEMENTS && CODES == I8 ? 128 : FORMAT == Q4_0 ? 8 : FORMAT == Q5_0 ? 16 : FORMAT == Q6_K ? 32 :
                      FORMAT == MXFP4 ? 12 : FORMAT == NBITS ? 1 << (CODE_BITS - 1) : 0;

// The words of codes that one read of A's lines takes: 4 from an image. From a storage buffer 2 where 4 blocks of 32 codes in a turn are a
// multiple of 8 bytes, and 1 where rows would have to be very long for a turn of whole vectors.
#if QUANTIZED != 1 || A_READS != LINES
#define CODES_AT_ONCE 1
#elif WIDE == 2 || BLOCK_CODES <= 1 || BLOCK_BYTES % 16 == 0
#define CODES_AT_ONCE 4
#define CODES_READ uvec4
#elif BLOCK_CODES == 32 && BLOCK_BYTES % 2 == 0
#define CODES_AT_ONCE 2
#define CODES_READ uvec2
#else
#define CODES_AT_ONCE 1
#endif

#if QUANTIZED
layout(location = 18) uniform ivec4 codes_at;

// The operand's file defines these: word i of the binding, and the elements from row to row.
uint word_of_codes(int i);
int row_length();

// The byte at `at`, and the half that begins at the even byte `at`.
uint byte_at(int at) { return bitfieldExtract(word_of_codes(at >> 2), (at & 3) * 8, 8); }
float half_at(int at) { return from_half((word_of_codes(at >> 2) >> ((at & 2) * 8)) & 0xffffu); }
// The lower or the upper 4 bits of the byte at `at`.
uint nibble_at(int at, bool upper) { return upper ? byte_at(at) >> 4 : byte_at(at) & 15u; }

#if SCALES_APART
#if SCALES == F32
layout(std430, binding = BINDING_SCALES) readonly buffer BufferScales { float Scales[]; };
float scale_at(int i) { return Scales[codes_at.y + i]; }
#else
layout(std430, binding = BINDING_SCALES) readonly buffer BufferScales { uint Scales[]; };
float scale_at(int i) { return from_16_bits(Scales[(codes_at.y + i) >> 1], codes_at.y + i, SCALES == BF16); }
#endif
#if ZEROS
layout(std430, binding = BINDING_ZEROS) readonly buffer BufferZeros { uint Zeros[]; };
// Where the zero of the code's group begins. GPUs divide by many instructions, with a sign or for a remainder by more.
int bit_of_zero(int index) {
  const uint group = uint(GROUP), bits = uint(CODE_BITS);
  uint from_begin = uint(index + codes_at.w), row_length = uint(row_length()), row = from_begin / row_length;
  uint row_bits = (row_length / group * bits + 7u) & ~7u;
  return codes_at.z * 8 + int(row * row_bits + (from_begin - row * row_length) / group * bits);
}
#endif
#endif

#if QUANTIZED == 1 && A_READS == VECTORS || QUANTIZED == 2 && B_READS == VECTORS
// Four successive codes along k, from a multiple of four on, as they are read: the same word twice, or the two between whose halves the
// codes lie; and the word of which the scale is a half.
uvec3 raw_codes(int index) {
  int block = codes_at.x + (index >> 5) * BLOCK_BYTES, at = block + codes_byte + (index & (FORMAT == Q4_0 ? 15 : 31));
  return uvec3(word_of_codes(at >> 2), word_of_codes((at + 3) >> 2), word_of_codes(block >> 2));
}

// The numbers that they stand for. Blocks have an odd number of halves: every other one begins in the middle of a word.
vec4 vector_of_codes(uvec3 codes, int index) {
  int half_word = (codes_at.x >> 1) + (index >> 5);
  uint bits = (half_word & 1) != 0 ? codes.x : codes.x >> 16 | codes.y << 16;
  float scale = from_16_bits(codes.z, half_word, false);
#if FORMAT == Q4_0
  bits = bits >> ((index & 16) >> 2) & 0x0f0f0f0fu;
  vec4 q = vec4(bitfieldExtract(bits, 0, 8), bitfieldExtract(bits, 8, 8), bitfieldExtract(bits, 16, 8), bitfieldExtract(bits, 24, 8));
  RETURN(vec4, EXACT(q * scale) - EXACT(float(zero_code) * scale));  // exact, as each of its parts is
#elif FORMAT == Q8_0
  int all = int(bits);
  vec4 q = vec4(bitfieldExtract(all, 0, 8), bitfieldExtract(all, 8, 8), bitfieldExtract(all, 16, 8), bitfieldExtract(all, 24, 8));
  RETURN(vec4, q * scale);
#else
#error "quantization: four codes of this FORMAT cannot be read at a time"
#endif
}
#endif

// The number that code `index` of the operand stands for.
#if FORMAT == NBITS
float dequantize(int index) {
#if ZEROS
  int bit = bit_of_zero(index);
  int zero = int(bitfieldExtract(Zeros[bit >> 5], bit & 31, CODE_BITS));
#else
  const int zero = zero_code;
#endif
#if CODE_BITS == 4
  int q = int(nibble_at(codes_at.x + (index >> 1), (index & 1) != 0));
#else
  int q = int(byte_at(codes_at.x + index));
#endif
  RETURN(float, scale_at(index / GROUP) * float(q - zero));
}
#elif HAS_ELEMENTS
float dequantize(int index) {
#if FORMAT == PER_ROW
  int row = (index + codes_at.w) / row_length();
#else
  const int row = 0;
#endif
  int at = codes_at.x + index;
#if CODES == I8
  float code = float(bitfieldExtract(int(byte_at(at)), 0, 8));
#elif CODES == U8
  float code = float(byte_at(at));
#else
  float code = from_word(CODES, word_of_codes(at >> 2), at);
#endif
  RETURN(float, scale_at(row) * code);
}
#else  // in blocks
float dequantize(int index) {
#if FORMAT == Q8_0
  int block = codes_at.x + (index >> 5) * BLOCK_BYTES, q = int(byte_at(block + codes_byte + (index & 31)));
  RETURN(float, half_at(block) * float(bitfieldExtract(q, 0, 8)));
#elif FORMAT == Q4_0 || FORMAT == Q5_0 || HAS_OFFSETS && BLOCK_CODES == 32
  int block = codes_at.x + (index >> 5) * BLOCK_BYTES, i = index & 31;
  uint q = nibble_at(block + codes_byte + (i & 15), i > 15);
#if HAS_HIGH_BITS
  q += 16u * ((byte_at(block + high_byte + (i >> 3)) >> (i & 7)) & 1u);
#endif
#if HAS_OFFSETS
  RETURN(float, EXACT(half_at(block) * float(q)) + half_at(block + 2));
#else
  RETURN(float, half_at(block) * float(int(q) - zero_code));
#endif
#elif FORMAT == Q4_K || FORMAT == Q5_K
  int block = codes_at.x + (index >> 8) * BLOCK_BYTES, i = index & 255, group = i >> 5;
  // The scale and the offset of a group have 6 bits; the last four groups have them in two parts.
  int at = block + 4 + (group & 3);
  uint low = byte_at(at), high = byte_at(at + 4), both = byte_at(at + 8);
  uint scale = group < 4 ? low & 63u : (both & 15u) + 16u * (low >> 6);
  uint offset = group < 4 ? high & 63u : (both >> 4) + 16u * (high >> 6);
  uint q = nibble_at(block + codes_byte + (group >> 1) * 32 + (i & 31), (group & 1) != 0);
#if FORMAT == Q5_K
  q += 16u * ((byte_at(block + high_byte + (i & 31)) >> group) & 1u);
#endif
  // Both products are exact.
  RETURN(float, EXACT(half_at(block) * float(scale * q)) - EXACT(half_at(block + 2) * float(offset)));
#elif FORMAT == Q6_K
  int block = codes_at.x + (index >> 8) * BLOCK_BYTES, i = index & 255, half_block = i >> 7, part = (i & 127) >> 5, at = i & 31;
  uint q = nibble_at(block + half_block * 64 + (part & 1) * 32 + at, part > 1);
  q += 16u * ((byte_at(block + high_byte + half_block * 32 + at) >> (2 * part)) & 3u);
  int scale = bitfieldExtract(int(byte_at(block + 192 + (i >> 4))), 0, 8);
  RETURN(float, half_at(block + 208) * float(scale * (int(q) - 32)));
#elif FORMAT == MXFP4
  int block = codes_at.x + (index >> 5) * BLOCK_BYTES, i = index & 31;
  uint q = nibble_at(block + codes_byte + (i & 15), i > 15), e = byte_at(block), m = q & 7u;
  // Twice the number: 0, 1, 2, 3, 4, 6, 8, 12.
  uint twice = m < 4u ? m : (m & 1u) == 0u ? 1u << (m >> 1) : 3u << ((m >> 1) - 1u);
  // 2^(e - 128) in two factors, neither of them subnormal: drivers may take subnormal numbers for 0.
  float first = uintBitsToFloat((((e + 1u) >> 1) + 63u) << 23), second = uintBitsToFloat(((e >> 1) + 63u) << 23);
  RETURN(float, first * float((q & 8u) != 0u ? -int(twice) : int(twice)) * second);
#else
#error "quantization: FORMAT has no decoding"
#endif
}
#endif
#endif
