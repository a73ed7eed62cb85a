// Quantised operands: from codes to numbers. One operand at most is quantised, A with QUANTIZED 1 and B with 2. It has codes in place of
// elements, and an element's index is that of its code.
//
//   value = scale of its group * (code - zero of its group) + offset of its group
//
// Where codes, scales and offsets lie together in blocks, the layouts are ggml's. Blocks have bytes that are no multiple of a word:
// OpenGL reads words, and shifts bring out what lies in them. A part of this file for each layout decodes
//
//   an element      dequantize(index)
//   four codes      raw_codes(index) reads four successive ones along k, from a multiple of four on, and vector_of_codes(raw, index) makes
//                   numbers of them: of q4_0 and q8_0 (decodes_fours() in kernels.cpp)
//   a chunk         the words of CHUNK codes of a row, which gemv reads once and keeps in registers. It defines CHUNK: 64 for blocks of 64
//                   codes and more, else 32
//
// A chunk is quads of 4 codes; code e of a quad begins at bit 8 e of a word, or 4 bits further. Codes of a chunk need not be successive: they
// lie among `reach` successive ones. Code e of quad q of the chunk with which p begins is that of chunk_begin(p) + code_at(q, e).
//
// With offsets, numbers_of() gives what dequantize() gives. Otherwise it gives code - zero, which is exact; scaled() multiplies the sum of
// group_quads successive quads (see docs/checking.md).
//
// Macros    FORMATS: constants Q8_0, Q4_0, ..., the formats of include/glgemm/quantization_table.h, and SCALES_BYTE: where in a block the
//           operand's scales begin; FORMAT: the operand's; BLOCK_CODES, BLOCK_BYTES: the codes and the bytes of a block, 0 or 1 where scales
//           lie apart;
//           of NBITS, CODE_BITS: 4 or 8; GROUP: the codes that share a scale, a power of two from 16 on; ZEROS: 1 if each group has a zero of
//           its own; CHUNK_CODES: the codes of a chunk, 0 if the format's chunks are not decoded; of what lies apart, SCALES: the type of the scales; of PER_ROW and PER_TENSOR, CODES: the type of a code
// Uniform   codes_at: the byte of the binding at which the window's codes begin; the first scale; the first byte of the zeros; the elements
//           of the first row that lie before the window

// The words of codes that one read of A's lines takes: 4 from an image. From a storage buffer 2 where 4 blocks of 32 codes in a turn are a
// multiple of 8 bytes, and 1 where rows would have to be very long for a turn of whole vectors.
#if QUANTIZED == 1 && A_READS == LINES && (WIDE == 2 || BLOCK_CODES <= 1 || BLOCK_BYTES % 16 == 0)
#define CODES_AT_ONCE 4
#define CODES_READ uvec4
#elif QUANTIZED == 1 && A_READS == LINES && BLOCK_CODES == 32 && BLOCK_BYTES % 2 == 0
#define CODES_AT_ONCE 2
#define CODES_READ uvec2
#else
#define CODES_AT_ONCE 1
#endif

#if QUANTIZED
FORMATS
layout(location = 18) uniform ivec4 codes_at;

// The operand's file defines these: word i of the binding, its vector v, and the elements from row to row.
uint word_of_codes(int i);
#if CODES_AT_ONCE > 1
CODES_READ codes_of(int v);
#endif
int row_length();

// The byte at `at`, and the half that begins at the even byte `at`.
uint byte_at(int at) { return bitfieldExtract(word_of_codes(at >> 2), (at & 3) * 8, 8); }
float half_at(int at) { return from_half((word_of_codes(at >> 2) >> ((at & 2) * 8)) & 0xffffu); }
// The lower or the upper 4 bits of the byte at `at`.
uint nibble_at(int at, bool upper) { return upper ? byte_at(at) >> 4 : byte_at(at) & 15u; }

// Where the scales of the block lie that begins at that byte.
int scales_at(int block) { return block + SCALES_BYTE; }

// Whether groups have offsets, whether the upper bits of codes lie apart, and whether codes are elements of a type.
const bool has_offsets = FORMAT == Q4_1 || FORMAT == Q5_1 || FORMAT == Q4_K || FORMAT == Q5_K;
const bool has_high_bits = FORMAT == Q5_0 || FORMAT == Q5_1 || FORMAT == Q5_K || FORMAT == Q6_K;
const bool has_elements = FORMAT == PER_ROW || FORMAT == PER_TENSOR;
// Where in a block the codes begin, and their upper bits; and the code without sign that stands for 0, where codes are E2M1 for twice the
// number.
const int codes_byte = FORMAT == MXFP4 ? 1 : FORMAT == Q4_1 || FORMAT == NVFP4 ? 4 : FORMAT == Q5_0 ? 6 : FORMAT == Q5_1 ? 8 : FORMAT == Q4_K ? 16 :
                       FORMAT == Q5_K ? 48 : FORMAT == Q6_K ? 0 : 2;
const int high_byte = FORMAT == Q5_0 ? 2 : FORMAT == Q5_1 ? 4 : FORMAT == Q5_K ? 16 : 128;
const bool is_e2m1 = FORMAT == MXFP4 || FORMAT == NVFP4;
const int zero_code = FORMAT == Q8_0 || FORMAT == IQ4_NL || has_elements && CODES == I8 ? 128 : FORMAT == Q4_0 ? 8 : FORMAT == Q5_0 ? 16 : FORMAT == Q6_K ? 32 :
                      is_e2m1 ? 12 : FORMAT == NBITS ? 1 << (CODE_BITS - 1) : 0;

// Twice the number for which a code of E2M1 stands: 0, 1, 2, 3, 4, 6, 8, 12, and the same with a sign.
int twice_e2m1(uint q) {
  uint m = q & 7u, twice = m < 4u ? m : (m & 1u) == 0u ? 1u << (m >> 1) : 3u << ((m >> 1) - 1u);
  return (q & 8u) != 0u ? -int(twice) : int(twice);
}
// The number for which a code of IQ4_NL stands, plus 128: that of -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113.
uint iq4_nl_plus_128(uint q) {
  uint low = (q & 4u) != 0u ? 0x766a5d4fu : 0x3f2d1801u, high = (q & 4u) != 0u ? 0xf1d9c5b5u : 0xa6998d81u;
  return bitfieldExtract((q & 8u) != 0u ? high : low, int(q & 3u) * 8, 8);
}

#ifdef CHUNK
const int reach = FORMAT == Q6_K ? 128 : CHUNK;
const int quads = CHUNK / 4, group_quads = FORMAT == Q6_K || FORMAT == NVFP4 || FORMAT == NBITS && GROUP == 16 ? 4 : 8;
// Whether codes of 8 bits fill words, or nibbles. Further bits of codes lie apart.
const bool has_bytes = FORMAT == Q8_0 || has_elements || FORMAT == NBITS && CODE_BITS == 8;
const bool has_pairs = FORMAT == NBITS && CODE_BITS == 4;  // a byte has two successive codes

// What holds for all chunks of a row. Rows begin with a block or a group, so what a chunk adds is the same for all of them.
struct Row {
  int begin;    // its first byte in the binding; where codes are whole words its first word, or its first CODES_READ
  int group;    // NBITS: the first group
  int zero;     // NBITS: the bit at which the zero of that group lies
  float scale;  // PER_ROW, PER_TENSOR
};
struct Chunk {
  uvec4 codes[2], high[2];  // the codes' words, and their further bits
  float scales[4];          // by groups
  float others[4];          // offsets; without offsets, of NBITS zeros; of MXFP4 a second factor of the scale
};
// Whether chunks can be read: by whole words, where neither blocks nor rows begin in the middle of one.
bool has_chunks() { return BLOCK_CODES > 1 && BLOCK_BYTES % 4 != 0 || ((has_elements ? codes_at.x | row_length() : codes_at.x) & 3) == 0; }
float half_of(uint word, bool upper) { return from_half(upper ? word >> 16 : word & 0xffffu); }
// The word between the middles of these, and one of the two that a condition asks for: a function computes both, and NVK's compiler makes
// a twentieth more instructions of a chunk with `?:`, which computes one.
uint middle(uint low, uint next) { return low >> 16 | next << 16; }
uint choose(bool first, uint x, uint y) { return first ? x : y; }
// The row's words from that one on; read by vectors, from a multiple of 4.
uvec4 words_from(Row row, int word) {
#if CODES_AT_ONCE == 4
  return codes_of(row.begin + (word >> 2));
#else
  word += row.begin;
  return uvec4(word_of_codes(word), word_of_codes(word + 1), word_of_codes(word + 2), word_of_codes(word + 3));
#endif
}
// Where rows begin if codes are whole words.
int begin_of(int at) { return at >> (CODES_AT_ONCE == 4 ? 4 : 2); }
// The binding's words from that one on; out of whole vectors where those are read.
uint[5] five_words(int word) {
  uint words[5];
#if CODES_AT_ONCE == 4
  uvec4 first = codes_of(word >> 2), next = codes_of((word >> 2) + 1);
  uint all[8] = uint[8](first.x, first.y, first.z, first.w, next.x, next.y, next.z, next.w), later[6];
  for (int i = 0; i < 6; ++i) later[i] = (word & 2) != 0 ? all[i + 2] : all[i];
  for (int i = 0; i < 5; ++i) words[i] = (word & 1) != 0 ? later[i + 1] : later[i];
#else
  for (int i = 0; i < 5; ++i) words[i] = word_of_codes(word + i);
#endif
  return words;
}
// The bit with which a quad begins where codes are nibbles.
int nibble_bit(int q) { return has_pairs ? 4 * (q & 1) : FORMAT == NVFP4 ? 2 * (q & 2) : 8 * (q & quads / 2) / quads; }
// Twice the numbers of four codes of E2M1, which lie in the lower halves of bytes, plus 12.
uint twice_e2m1_plus_12(uint bits) {
  // A code's 3 lower bits stand for twice the number. The sign says whether that is added to 12 or taken from it.
  uint code = bits & 0x07070707u, first = bits >> 2 & bits & 0x01010101u, second = bits >> 2 & bits >> 1 & 0x01010101u;
  uint minus = bits >> 3 & 0x01010101u, twice = code + first + 2u * (second + (first & second));
  return twice + 0x0c0c0c0cu - 2u * (twice & 255u * minus);
}
#endif

// ---- Blocks of 32 codes, each a chunk. Of nibbles the lower ones of all bytes come before the upper ones.
#if BLOCK_CODES == 32

// The scale of MXFP4, 2^(e - 128), in two factors, neither of them subnormal: drivers may take subnormal numbers for 0.
vec2 power_of_two(uint e) { return uintBitsToFloat(uvec2((((e + 1u) >> 1) + 63u) << 23, ((e >> 1) + 63u) << 23)); }

float dequantize(int index) {
  int block = codes_at.x + (index >> 5) * BLOCK_BYTES, i = index & 31;
  if (FORMAT == Q8_0) RETURN(float, half_at(scales_at(block)) * float(bitfieldExtract(int(byte_at(block + codes_byte + i)), 0, 8)));
  uint q = nibble_at(block + codes_byte + (i & 15), i > 15);
  if (has_high_bits) q += 16u * ((byte_at(block + high_byte + (i >> 3)) >> (i & 7)) & 1u);
  if (FORMAT == MXFP4) {
    vec2 scale = power_of_two(byte_at(scales_at(block)));
    RETURN(float, scale.x * float(twice_e2m1(q)) * scale.y);
  }
  if (FORMAT == IQ4_NL) q = iq4_nl_plus_128(q);
  if (has_offsets) RETURN(float, EXACT(half_at(scales_at(block)) * float(q)) + half_at(scales_at(block) + 2));
  RETURN(float, half_at(scales_at(block)) * float(int(q) - zero_code));
}

// The same word twice, or the two between whose halves the codes lie; and the word of which the scale is a half.
uvec3 raw_codes(int index) {
  int block = codes_at.x + (index >> 5) * BLOCK_BYTES, at = block + codes_byte + (index & (FORMAT == Q4_0 ? 15 : 31));
  return uvec3(word_of_codes(at >> 2), word_of_codes((at + 3) >> 2), word_of_codes(block >> 2));
}
vec4 vector_of_codes(uvec3 codes, int index) {
  int half_word = (codes_at.x >> 1) + (index >> 5);
  // Blocks have an odd number of halves: every other one begins in the middle of a word.
  uint bits = (half_word & 1) != 0 ? codes.x : codes.x >> 16 | codes.y << 16;
  float scale = from_16_bits(codes.z, half_word, false);
  if (FORMAT == Q4_0) {
    bits = bits >> ((index & 16) >> 2) & 0x0f0f0f0fu;
    vec4 q = vec4(bitfieldExtract(bits, 0, 8), bitfieldExtract(bits, 8, 8), bitfieldExtract(bits, 16, 8), bitfieldExtract(bits, 24, 8));
    RETURN(vec4, EXACT(q * scale) - EXACT(float(zero_code) * scale));  // exact, as each of its parts is
  }
  int all = int(bits);
  vec4 q = vec4(bitfieldExtract(all, 0, 8), bitfieldExtract(all, 8, 8), bitfieldExtract(all, 16, 8), bitfieldExtract(all, 24, 8));
  RETURN(vec4, q * scale);
}

#ifdef CHUNK
const int block_words = (BLOCK_BYTES + BLOCK_BYTES % 4 + 3) / 4;

Row row_of_codes(int index) { return Row(codes_at.x + (index >> 5) * BLOCK_BYTES, 0, 0, 0.0); }
int chunk_begin(int p) { return p; }
int code_at(int q, int e) { return 4 * q + e; }

// Chunk `number` of the turn that begins with p.
Chunk load_chunk(Row row, int p, int number) {
  Chunk chunk;
  int at = row.begin + (p >> 5) * BLOCK_BYTES;
  uint words[block_words];
#if CODES_AT_ONCE > 1 && BLOCK_BYTES % 2 == 0  // `number` of 4 blocks is a constant
  // With vectors of 16 bytes the turn may begin in the middle of one. A block begins at most `furthest` words behind the vector's begin.
  const int per_vector = CODES_AT_ONCE, middle_words = BLOCK_BYTES % per_vector == 0 ? 0 : 2;
  const int furthest = max(max(BLOCK_BYTES / 4 % per_vector, BLOCK_BYTES / 2 % per_vector), 3 * BLOCK_BYTES / 4 % per_vector);
  const int vectors = (furthest + middle_words + block_words + per_vector - 1) / per_vector;
  bool later = (at & 8) != 0 && per_vector == 4;
  int vector = at / (4 * per_vector) + number * BLOCK_BYTES / (4 * per_vector);
  at = number * BLOCK_BYTES;
  int from = (at >> 2) % per_vector;
  uint all[per_vector * vectors + 2];
  for (int i = 0; i < vectors; ++i) {
    CODES_READ read = codes_of(vector + i);
    all[per_vector * i] = read.x, all[per_vector * i + 1] = read.y;
#if CODES_AT_ONCE == 4
    all[4 * i + 2] = read.z, all[4 * i + 3] = read.w;
#endif
  }
  for (int i = 0; i < block_words; ++i) words[i] = later ? all[from + i + 2] : all[from + i];
#elif CODES_AT_ONCE == 4  // of MXFP4
  uint five[5] = five_words(at >> 2);
  for (int i = 0; i < block_words; ++i) words[i] = five[min(i, 4)];
#else
  for (int i = 0; i < block_words; ++i) words[i] = word_of_codes((at >> 2) + i);
#endif
  if (has_offsets) {
    chunk.scales[0] = half_of(words[0], false);
    chunk.others[0] = half_of(words[0], true);
    if (has_high_bits) chunk.high[0].x = words[1];
    chunk.codes[0] = uvec4(words[block_words - 4], words[block_words - 3], words[block_words - 2], words[block_words - 1]);
    return chunk;
  }
  if (FORMAT == MXFP4) {
    int shift = (at & 3) * 8;
    vec2 scale = power_of_two(words[0] >> shift & 255u);
    chunk.scales[0] = scale.x;
    chunk.others[0] = scale.y;
    uint codes[4];
    for (int i = 0; i < 4; ++i) codes[i] = choose(shift == 24, words[i + 1], words[i] >> (shift + 8 & 31) | words[i + 1] << 24 - shift);
    chunk.codes[0] = uvec4(codes[0], codes[1], codes[2], codes[3]);
    return chunk;
  }
  // The scale is a half of the first word.
  bool whole = (at & 2) != 0;
  chunk.scales[0] = half_of(words[0], whole);
  uint codes[block_words - 1];
  for (int i = 0; i < block_words - 1; ++i) codes[i] = choose(whole, words[i + 1], middle(words[i], words[i + 1]));
  const int first = has_high_bits ? 1 : 0, second = FORMAT == Q8_0 ? 4 : 0;
  chunk.high[0].x = codes[0];
  chunk.codes[0] = uvec4(codes[first], codes[first + 1], codes[first + 2], codes[first + 3]);
  chunk.codes[1] = uvec4(codes[second], codes[second + 1], codes[second + 2], codes[second + 3]);
  return chunk;
}

// The word that holds the codes of quad q, a constant, put together of the words that have parts of them.
uint quad_of(Chunk chunk, int q) {
  uint word = word_of(chunk.codes[q / 4 % 2], q);
  if (FORMAT == Q8_0) return word ^ 0x80808080u;
  word = word_of(chunk.codes[0], q);
  uint bits = word >> nibble_bit(q);
  if (FORMAT == MXFP4) return twice_e2m1_plus_12(bits);
  if (FORMAT == IQ4_NL)
    return iq4_nl_plus_128(bits) | iq4_nl_plus_128(bits >> 8) << 8 | iq4_nl_plus_128(bits >> 16) << 16 | iq4_nl_plus_128(bits >> 24) << 24;
  // Successive bits of `high` become bit 4 of successive bytes.
  return has_high_bits ? bits & 0x0f0f0f0fu | ((chunk.high[0].x >> 4 * q & 15u) * 0x00204081u & 0x01010101u) << 4 : word;
}
#endif

// ---- Blocks of 64 codes: NVFP4. Each of four groups has a byte as scale, and 8 bytes of codes, the lower nibbles first.
#elif BLOCK_CODES == 64

// Half of a scale, since codes are doubled. It is f8e4m3 without a sign, for which a half has the bits; and ggml takes 0x7f for 0.
float half_of_scale(uint bits) {
  RETURN(float, bits == 0x7fu ? 0.0 : from_half((bits & 0x7fu) << 7) * 128.0);
}

float dequantize(int index) {
  int block = codes_at.x + (index >> 6) * BLOCK_BYTES, group = index >> 4 & 3, i = index & 15;
  uint q = nibble_at(block + codes_byte + 8 * group + (i & 7), i > 7);
  RETURN(float, half_of_scale(byte_at(scales_at(block) + group)) * float(twice_e2m1(q)));
}

#ifdef CHUNK
Row row_of_codes(int index) { return Row((codes_at.x + (index >> 6) * BLOCK_BYTES) >> 2, 0, 0, 0.0); }
int chunk_begin(int p) { return p; }
int code_at(int q, int e) { return 4 * q + e; }

Chunk load_chunk(Row row, int p, int number) {
  Chunk chunk;
  int block = row.begin + (p >> 6) * (BLOCK_BYTES / 4);
  uint first[5] = five_words(block), second[5] = five_words(block + 4);
  chunk.codes[0] = uvec4(first[1], first[2], first[3], first[4]);
  chunk.codes[1] = uvec4(second[1], second[2], second[3], second[4]);
  for (int i = 0; i < 4; ++i) chunk.scales[i] = half_of_scale(bitfieldExtract(first[0], 8 * i, 8));
  return chunk;
}

uint quad_of(Chunk chunk, int q) {
  return twice_e2m1_plus_12(word_of(chunk.codes[q / 8], 2 * (q / 4) + (q & 1)) >> nibble_bit(q));
}
#endif

// ---- Blocks of 256 codes, in groups of 32 or 16 with scales of 6 or 8 bits
#elif BLOCK_CODES == 256

float dequantize(int index) {
  int block = codes_at.x + (index >> 8) * BLOCK_BYTES, i = index & 255, group = i >> 5, at = i & 31;
  if (FORMAT == Q6_K) {
    int half_block = group >> 2, part = group & 3;
    uint q = nibble_at(block + half_block * 64 + (part & 1) * 32 + at, part > 1);
    q += 16u * ((byte_at(block + high_byte + half_block * 32 + at) >> (2 * part)) & 3u);
    int scale = bitfieldExtract(int(byte_at(block + 192 + (i >> 4))), 0, 8);
    RETURN(float, half_at(scales_at(block)) * float(scale * (int(q) - zero_code)));
  }
  // The scale and the offset of a group have 6 bits; the last four groups have them in two parts.
  int parts = block + 4 + (group & 3);
  uint low = byte_at(parts), high = byte_at(parts + 4), both = byte_at(parts + 8);
  uint scale = group < 4 ? low & 63u : (both & 15u) + 16u * (low >> 6);
  uint offset = group < 4 ? high & 63u : (both >> 4) + 16u * (high >> 6);
  uint q = nibble_at(block + codes_byte + (group >> 1) * 32 + at, (group & 1) != 0);
  if (has_high_bits) q += 16u * ((byte_at(block + high_byte + at) >> group) & 1u);
  // Both products are exact.
  RETURN(float, EXACT(half_at(scales_at(block)) * float(scale * q)) - EXACT(half_at(scales_at(block) + 2) * float(offset)));
}

#ifdef CHUNK
Row row_of_codes(int index) {
  int at = codes_at.x + (index >> 8) * BLOCK_BYTES;
  return Row(FORMAT == Q6_K ? at : begin_of(at), 0, 0, 0.0);
}
int chunk_begin(int p) { return FORMAT == Q6_K ? (p & ~127) + ((p & 64) >> 2) : p; }
int code_at(int q, int e) { return FORMAT == Q6_K ? q / 4 * 32 + q % 4 * 4 + e : 4 * q + e; }

// 16 bytes that begin at the even byte `at`.
uvec4 read_across(int at) {
  uint words[5] = five_words(at >> 2), codes[4];
  for (int i = 0; i < 4; ++i) codes[i] = choose((at & 2) != 0, middle(words[i], words[i + 1]), words[i]);
  return uvec4(codes[0], codes[1], codes[2], codes[3]);
}

Chunk load_chunk(Row row, int p, int number) {
  Chunk chunk;
  if (FORMAT == Q6_K) {
    int block = row.begin + (p >> 8) * BLOCK_BYTES, half_block = p >> 7 & 1, from = (p & 64) >> 2;
    int at = block + half_block * 64 + from;
    chunk.codes[0] = read_across(at);
    chunk.codes[1] = read_across(at + 32);
    chunk.high[0] = read_across(block + high_byte + half_block * 32 + from);
    // Eight scales are a row of bytes; the chunk has every other one.
    uvec2 scales = read_across(block + 192 + half_block * 8).xy >> (from >> 1);
    float scale = half_at(scales_at(block));
    for (int i = 0; i < 4; ++i) chunk.scales[i] = scale * float(bitfieldExtract(int(word_of(scales, i / 2)), i % 2 * 16, 8));
    return chunk;
  }
  const int block_length = BLOCK_BYTES / 4;  // in words
  int block = (p >> 8) * block_length, pair = p >> 6 & 3;
  uvec4 head = words_from(row, block);
  for (int i = 0; i < 2; ++i) {
    chunk.codes[i] = words_from(row, block + codes_byte / 4 + pair * 8 + 4 * i);
    if (has_high_bits) chunk.high[i] = words_from(row, block + high_byte / 4 + 4 * i) >> 2 * pair;
  }
  // The scales and the offsets of four groups in bytes; see dequantize().
  uvec2 parts = pair < 2 ? head.yz & 0x3f3f3f3fu
                         : uvec2(head.w, head.w >> 4) & 0x0f0f0f0fu | head.yz >> 2 & 0x30303030u;
  parts >>= (pair & 1) * 16;
  for (int i = 0; i < 2; ++i) {
    chunk.scales[i] = half_of(head.x, false) * float(parts.x >> 8 * i & 255u);
    chunk.others[i] = -(half_of(head.x, true) * float(parts.y >> 8 * i & 255u));
  }
  return chunk;
}

uint quad_of(Chunk chunk, int q) {
  uint word = word_of(chunk.codes[q / 4 % 2], q);
  if (!has_high_bits) return word;
  uint nibbles = word >> nibble_bit(q) & 0x0f0f0f0fu;
  if (FORMAT == Q5_K) return nibbles | word_of(chunk.high[q / 4 % 2], q) << (4 - q / 8) & 0x10101010u;
  uint high = word_of(chunk.high[0], q), bits = q < 8 ? high << (4 - q / 4 * 2) : high >> (q / 4 * 2 - 4);
  return nibbles | bits & 0x30303030u;
}
#endif

// ---- Scales in arrays of their own
#elif BLOCK_CODES <= 1

#if SCALES == F32
layout(std430, binding = BINDING_SCALES) readonly buffer BufferScales { float Scales[]; };
float scale_at(int i) { return Scales[codes_at.y + i]; }
#else
layout(std430, binding = BINDING_SCALES) readonly buffer BufferScales { uint Scales[]; };
float scale_at(int i) { return from_16_bits(Scales[(codes_at.y + i) >> 1], codes_at.y + i, SCALES == BF16); }
#endif
#if ZEROS
layout(std430, binding = BINDING_ZEROS) readonly buffer BufferZeros { uint Zeros[]; };
// The zero that begins at this bit.
uint zero_at(int bit) { return bitfieldExtract(Zeros[bit >> 5], bit & 31, CODE_BITS); }
#else
uint zero_at(int bit) { return uint(zero_code); }
#endif
// Where the zero of the code's group begins. GPUs divide by many instructions, with a sign or for a remainder by more.
int bit_of_zero(int index) {
  const uint group = uint(GROUP), bits = uint(CODE_BITS);
  uint from_begin = uint(index + codes_at.w), row_length = uint(row_length()), row = from_begin / row_length;
  uint row_bits = (row_length / group * bits + 7u) & ~7u;
  return codes_at.z * 8 + int(row * row_bits + (from_begin - row * row_length) / group * bits);
}
int row_of(int index) { return FORMAT == PER_ROW ? (index + codes_at.w) / row_length() : 0; }

float dequantize(int index) {
  if (FORMAT == NBITS) {
    uint q = CODE_BITS == 4 ? nibble_at(codes_at.x + (index >> 1), (index & 1) != 0) : byte_at(codes_at.x + index);
    RETURN(float, scale_at(index / GROUP) * float(int(q) - int(zero_at(bit_of_zero(index)))));
  }
  int at = codes_at.x + index;
  float code = CODES == I8 ? float(bitfieldExtract(int(byte_at(at)), 0, 8)) : CODES == U8 ? float(byte_at(at)) :
               from_word(CODES, word_of_codes(at >> 2), at);
  RETURN(float, scale_at(row_of(index)) * code);
}

#ifdef CHUNK
Row row_of_codes(int index) {
  int begin = begin_of(codes_at.x + (FORMAT == NBITS ? index / 8 * CODE_BITS : index));
  if (FORMAT == NBITS) return Row(begin, index / GROUP, bit_of_zero(index), 0.0);
  return Row(begin, 0, 0, scale_at(row_of(index)));
}
int chunk_begin(int p) { return p; }
int code_at(int q, int e) { return has_pairs ? q / 2 * 8 + 2 * e + q % 2 : 4 * q + e; }

Chunk load_chunk(Row row, int p, int number) {
  Chunk chunk;
  const int code_vectors = has_bytes ? 2 : 1;
  for (int i = 0; i < code_vectors; ++i) chunk.codes[i] = words_from(row, (p >> 3) * code_vectors + 4 * i);
  for (int i = 0; i < quads / group_quads; ++i) {
    chunk.scales[i] = FORMAT == NBITS ? scale_at(row.group + p / GROUP + i) : row.scale;
    chunk.others[i] = float(zero_at(row.zero + (p / GROUP + i) * CODE_BITS));
  }
  return chunk;
}

uint quad_of(Chunk chunk, int q) {
  if (has_pairs) return word_of(chunk.codes[0], q >> 1);
  uint word = word_of(chunk.codes[q / 4 % 2], q);
  return has_elements && CODES == I8 ? word ^ 0x80808080u : word;
}
#endif

#else
#error blocks of so many codes need a part of this file, which decodes them
#endif

#ifdef CHUNK
// 0, which no compiler can see: NVIDIA's (NVK's) loads a mask again for each use, unless it cannot see that it is a constant; and one that
// all invocations have alike it moves to a register for each.
uint hidden;

// The numbers for which the codes of quad q stand, which quad_of(chunk, q) holds. Nibbles that need no further bits stay where they are.
vec4 numbers_of(Chunk chunk, int q, uint codes) {
  const bool fills_bytes = has_bytes || has_high_bits || is_e2m1 || FORMAT == IQ4_NL;
  const uint mask = fills_bytes ? 255u : 15u;
  int bit = fills_bytes ? 0 : nibble_bit(q);
  if (has_offsets) {
    // GPUs of some vendors have an instruction that makes a float of any byte of a word. 16 times the code is one, too.
    codes &= mask * 0x01010101u << bit;
    uvec4 bytes = uvec4(codes, codes >> 8, codes >> 16, codes >> 24) & 255u;
    float unit = 1.0 / float(1 << bit);
    return chunk.scales[q / group_quads] * unit * vec4(ivec4(bytes)) + chunk.others[q / group_quads];
  }
  if (has_elements && (CODES == F8E4M3 || CODES == F8E5M2))
    return vec4(from_word(CODES, codes, 0), from_word(CODES, codes, 1), from_word(CODES, codes, 2), from_word(CODES, codes, 3));
  // The bits of a code become a float where they are: beside the exponent that makes the lowest of them 1, they are a power of two and
  // the code. Then one subtraction does without that power and the zero.
  float zero = FORMAT == NBITS ? chunk.others[q / group_quads] : float(zero_code);
  int high = bit + 8;
  uvec4 parts = uvec2(codes, codes >> 16).xxyy & (uvec2(mask << bit, mask << high) | hidden).xyxy;
  vec2 zeros = vec2(1 << (23 - bit), 1 << (23 - high)) + zero;
  return uintBitsToFloat(parts | uvec2(150 - bit << 23, 150 - high << 23).xyxy) - zeros.xyxy;
}

// The sum of a group's products with numbers_of(), scaled.
float scaled(Chunk chunk, int group, float sum) {
  return FORMAT == MXFP4 ? sum * chunk.scales[group] * chunk.others[group] : sum * chunk.scales[group];
}
#endif
#endif
