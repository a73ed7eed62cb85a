// Quantised A by chunks: the words of CHUNK codes of a row are read once, and decoded in registers. What a chunk is depends on the format,
// and on nothing else. HAS_CHUNKS is 1 for the formats that are here (decodes_chunks() in kernels.cpp); gemv decodes the others code by code.
//
// A chunk is QUADS quads of 4 codes; code e of a quad begins at bit 8 e of a word, or 4 bits further. Codes of a chunk need not be
// successive: they lie among REACH successive ones. SPAN successive ones have SPAN / CHUNK chunks. Code e of quad q of the chunk with which p begins is that
// of chunk_begin(p) + CODE_AT(q, e).
//
// With offsets, numbers_of() gives what dequantize() gives. Otherwise it gives code - zero, which is exact; scaled() multiplies the sum of
// GROUP_QUADS successive quads (see docs/checking.md).
//
// An invocation takes TURN_CHUNKS chunks in a turn. Where blocks are read by vectors and are no multiple of a word, it takes 4:
// 4 blocks are a multiple of 8 bytes, so that compilers know where in a vector each of them lies.
#ifndef HAS_CHUNKS
#define HAS_CHUNKS 0
#endif
#if QUANTIZED == 1 && HAS_CHUNKS

// A block of 32 codes is a chunk.
#define CHUNK_IS_BLOCK (BLOCK_CODES == 32)
#if CHUNK_IS_BLOCK && CODES_AT_ONCE > 1 && BLOCK_BYTES % 2 == 0
#define TURN_CHUNKS 4
#else
#define TURN_CHUNKS 1
#endif

#if BLOCK_CODES == 256 && HAS_OFFSETS
#define BLOCK_LENGTH (BLOCK_BYTES / 4)  // in words
#define CHUNK 64
#define REACH 64
#define CODE_AT(q, e) (4 * (q) + (e))
#define GROUP_QUADS 8
#elif FORMAT == Q6_K
#define CHUNK 64
#define REACH 128
#define CODE_AT(q, e) ((q) / 4 * 32 + (q) % 4 * 4 + (e))
#define GROUP_QUADS 4
#else
#define CHUNK 32
#define REACH 32
#if FORMAT == NBITS && CODE_BITS == 4
#define CODE_AT(q, e) ((q) / 2 * 8 + 2 * (e) + (q) % 2)
#else
#define CODE_AT(q, e) (4 * (q) + (e))
#endif
#if FORMAT == NBITS && GROUP == 16
#define GROUP_QUADS 4
#else
#define GROUP_QUADS 8
#endif
#endif
#define SPAN (REACH * TURN_CHUNKS)
#define QUADS (CHUNK / 4)
#define GROUPS (QUADS / GROUP_QUADS)

// Whether codes of 8 bits fill words, or nibbles. Further bits of codes lie apart.
#define HAS_BYTES (FORMAT == Q8_0 || HAS_ELEMENTS || FORMAT == NBITS && CODE_BITS == 8)
#if HAS_BYTES || CHUNK == 64
#define CODE_VECTORS 2
#else
#define CODE_VECTORS 1
#endif

// What holds for all chunks of a row. Rows begin with a block or a group, so what a chunk adds is the same for all of them.
struct Row {
  int begin;    // its first byte in the binding; where codes are whole words its first word, or with WIDE its first 16 bytes
  int group;    // NBITS: the first group
  int zero;     // NBITS: the bit at which the zero of that group lies
  float scale;  // PER_ROW, PER_TENSOR
};
struct Chunk {
  uvec4 codes[CODE_VECTORS];
  uvec4 high[CODE_VECTORS];  // further bits
  float scales[GROUPS];
  float others[GROUPS];  // offsets; without offsets, of NBITS zeros; of MXFP4 a second factor of the scale
};

#define WORDS_BIT (CODES_AT_ONCE == 4 ? 4 : 2)
// The row whose first code has this index in the window.
Row row_of_codes(int index) {
  Row row = Row(codes_at.x, 0, 0, 0.0);
#if CHUNK_IS_BLOCK
  row.begin += (index >> 5) * BLOCK_BYTES;
#elif FORMAT == Q6_K
  row.begin += (index >> 8) * BLOCK_BYTES;
#elif BLOCK_CODES == 256
  row.begin = row.begin + (index >> 8) * BLOCK_LENGTH * 4 >> WORDS_BIT;
#elif FORMAT == NBITS
  row.begin = row.begin + index / 8 * CODE_BITS >> WORDS_BIT;
  row.group = index / GROUP;
#else
  row.begin = row.begin + index >> WORDS_BIT;
#endif
#if FORMAT == NBITS && ZEROS
  row.zero = bit_of_zero(index);
#elif FORMAT == PER_ROW
  row.scale = scale_at((index + codes_at.w) / row_length());
#elif FORMAT == PER_TENSOR
  row.scale = scale_at(0);
#endif
  return row;
}

#if FORMAT == Q6_K
int chunk_begin(int p) { return (p & ~127) + ((p & 64) >> 2); }
#else
int chunk_begin(int p) { return p; }
#endif

// Whether chunks can be read: of most formats they are whole words, where the first one is.
bool has_chunks() {
#if !SCALES_APART && BLOCK_BYTES % 4 != 0
  return true;
#elif HAS_ELEMENTS
  return ((codes_at.x | row_length()) & 3) == 0;
#else
  return (codes_at.x & 3) == 0;
#endif
}

// Declares `words`, the `count` words of the binding from number `word` on; with WIDE 2 they are taken out of whole vectors.
#if WIDE == 2
#define READ_WORDS(count, words, word)                                                   \
  uint words[count];                                                                     \
  {                                                                                      \
    uint all[(count) + 9], later[(count) + 1];                                           \
    for (int i = 0; i < (count) + 3; i += 4) {                                           \
      uvec4 vector = codes_of(((word) + i) >> 2);                                        \
      all[i] = vector.x, all[i + 1] = vector.y, all[i + 2] = vector.z, all[i + 3] = vector.w; \
    }                                                                                    \
    for (int i = 0; i <= (count); ++i) later[i] = ((word) & 2) != 0 ? all[i + 2] : all[i]; \
    for (int i = 0; i < (count); ++i) words[i] = ((word) & 1) != 0 ? later[i + 1] : later[i]; \
  }
#else
#define READ_WORDS(count, words, word) \
  uint words[count];                   \
  for (int i = 0; i < (count); ++i) words[i] = word_of_codes((word) + i);
#endif

#if !CHUNK_IS_BLOCK && FORMAT != Q6_K
// The row's words from that one on, with WIDE from a multiple of 4.
uvec4 words_from(Row row, int word) {
#if CODES_AT_ONCE == 4
  return codes_of(row.begin + (word >> 2));
#else
  word += row.begin;
  return uvec4(word_of_codes(word), word_of_codes(word + 1), word_of_codes(word + 2), word_of_codes(word + 3));
#endif
}
#endif
float half_of(uint word, bool upper) { return from_half(upper ? word >> 16 : word & 0xffffu); }
// The word between the middles of these, and one of the two that a condition asks for.
uint middle(uint low, uint next) { return low >> 16 | next << 16; }
uint choose(bool first, uint x, uint y) { return first ? x : y; }

#if CHUNK_IS_BLOCK
#define BLOCK_WORDS ((BLOCK_BYTES + BLOCK_BYTES % 4 + 3) / 4)
// Chunk `number` of the turn that begins with p.
Chunk load_chunk(Row row, int p, int number) {
  Chunk chunk;
  int at = row.begin + (p >> 5) * BLOCK_BYTES;
#if TURN_CHUNKS > 1
  // With vectors of 16 bytes the turn may begin in the middle of one.
  const int per_vector = CODES_AT_ONCE, vectors = (BLOCK_WORDS + CODES_AT_ONCE + 1) / CODES_AT_ONCE;
  bool later = (at & 8) != 0 && per_vector == 4;
  int vector = at / (4 * per_vector) + number * BLOCK_BYTES / (4 * per_vector);
  at = number * BLOCK_BYTES;
  int from = (at >> 2) % per_vector;
  uint all[per_vector * (vectors + 2)], words[BLOCK_WORDS];
  for (int i = 0; i < vectors; ++i) {
    CODES_READ read = codes_of(vector + i);
    all[per_vector * i] = read.x, all[per_vector * i + 1] = read.y;
#if CODES_AT_ONCE == 4
    all[4 * i + 2] = read.z, all[4 * i + 3] = read.w;
#endif
  }
  for (int i = 0; i < BLOCK_WORDS; ++i) words[i] = later ? all[from + i + 2] : all[from + i];
#else
  READ_WORDS(BLOCK_WORDS, words, at >> 2)
#endif
#if HAS_OFFSETS
  chunk.scales[0] = half_of(words[0], false);
  chunk.others[0] = half_of(words[0], true);
#if HAS_HIGH_BITS
  chunk.high[0].x = words[1];
#endif
  chunk.codes[0] = uvec4(words[BLOCK_WORDS - 4], words[BLOCK_WORDS - 3], words[BLOCK_WORDS - 2], words[BLOCK_WORDS - 1]);
#elif FORMAT == MXFP4
  int shift = (at & 3) * 8;
  uint e = words[0] >> shift & 255u;
  chunk.scales[0] = uintBitsToFloat((((e + 1u) >> 1) + 63u) << 23);
  chunk.others[0] = uintBitsToFloat(((e >> 1) + 63u) << 23);
#define WORD(i) choose(shift == 24, words[i + 1], words[i] >> (shift + 8 & 31) | words[i + 1] << 24 - shift)
  chunk.codes[0] = uvec4(WORD(0), WORD(1), WORD(2), WORD(3));
#else
  // The scale is a half of the first word.
  bool whole = (at & 2) != 0;
  chunk.scales[0] = half_of(words[0], whole);
  uint codes[BLOCK_WORDS - 1];
  for (int i = 0; i < BLOCK_WORDS - 1; ++i) {
    uint both = middle(words[i], words[i + 1]);
    codes[i] = whole ? words[i + 1] : both;
  }
  const int first = HAS_HIGH_BITS ? 1 : 0;
  if (first > 0) chunk.high[0].x = codes[0];
  chunk.codes[0] = uvec4(codes[first], codes[first + 1], codes[first + 2], codes[first + 3]);
#if CODE_VECTORS == 2
  chunk.codes[1] = uvec4(codes[4], codes[5], codes[6], codes[7]);
#endif
#endif
  return chunk;
}
#else
#if FORMAT == Q6_K
// 16 bytes that begin at the even byte `at`.
uvec4 read_across(int at) {
  READ_WORDS(5, words, at >> 2)
#define WORD(i) choose((at & 2) != 0, middle(words[i], words[i + 1]), words[i])
  return uvec4(WORD(0), WORD(1), WORD(2), WORD(3));
}
#endif

Chunk load_chunk(Row row, int p, int number) {
  Chunk chunk;
#if BLOCK_CODES == 256 && HAS_OFFSETS
  int block = (p >> 8) * BLOCK_LENGTH, pair = p >> 6 & 3;
  uvec4 head = words_from(row, block);
  for (int i = 0; i < 2; ++i) {
    chunk.codes[i] = words_from(row, block + codes_byte / 4 + pair * 8 + 4 * i);
#if HAS_HIGH_BITS
    chunk.high[i] = words_from(row, block + high_byte / 4 + 4 * i) >> 2 * pair;
#endif
  }
  // The scales and the offsets of four groups in bytes; see dequantize().
  uvec2 parts = pair < 2 ? head.yz & 0x3f3f3f3fu
                         : uvec2(head.w, head.w >> 4) & 0x0f0f0f0fu | head.yz >> 2 & 0x30303030u;
  parts >>= (pair & 1) * 16;
  for (int i = 0; i < 2; ++i) {
    chunk.scales[i] = half_of(head.x, false) * float(parts.x >> 8 * i & 255u);
    chunk.others[i] = -(half_of(head.x, true) * float(parts.y >> 8 * i & 255u));
  }
#elif FORMAT == Q6_K
  int block = row.begin + (p >> 8) * BLOCK_BYTES, half_block = p >> 7 & 1, from = (p & 64) >> 2;
  int at = block + half_block * 64 + from;
  chunk.codes[0] = read_across(at);
  chunk.codes[1] = read_across(at + 32);
  chunk.high[0] = read_across(block + high_byte + half_block * 32 + from);
  // Eight scales are a row of bytes; the chunk has every other one.
  at = block + 192 + half_block * 8;
  READ_WORDS(3, words, at >> 2)
  uvec2 both = uvec2(middle(words[0], words[1]), middle(words[1], words[2]));
  uvec2 scales = ((at & 2) != 0 ? both : uvec2(words[0], words[1])) >> (from >> 1);
  float scale = half_at(block + 208);
  for (int i = 0; i < 4; ++i) chunk.scales[i] = scale * float(bitfieldExtract(int(word_of(scales, i / 2)), i % 2 * 16, 8));
#else
  for (int i = 0; i < CODE_VECTORS; ++i) chunk.codes[i] = words_from(row, (p >> 3) * CODE_VECTORS + 4 * i);
  for (int i = 0; i < GROUPS; ++i) {
#if FORMAT == NBITS
    chunk.scales[i] = scale_at(row.group + p / GROUP + i);
#if ZEROS
    int bit = row.zero + (p / GROUP + i) * CODE_BITS;
    chunk.others[i] = float(bitfieldExtract(Zeros[bit >> 5], bit & 31, CODE_BITS));
#endif
#else
    chunk.scales[i] = row.scale;
#endif
  }
#endif
  return chunk;
}
#endif

// The bit with which a quad begins. Nibbles that need no further bits stay where they are.
#if HAS_BYTES
#define NIBBLE_BIT(q) 0
#elif FORMAT == NBITS
#define NIBBLE_BIT(q) (4 * ((q) & 1))
#else
#define NIBBLE_BIT(q) (8 * ((q) & QUADS / 2) / QUADS)
#endif
#if HAS_BYTES || HAS_HIGH_BITS || FORMAT == MXFP4
#define CODE_MASK 255u
#define CODE_BIT(q) 0
#else
#define CODE_MASK 15u
#define CODE_BIT(q) NIBBLE_BIT(q)
#endif

// The word that holds the codes of quad q, a constant, put together of the words that have parts of them.
uint quad_of(Chunk chunk, int q) {
#if FORMAT == NBITS && CODE_BITS == 4
  uint word = word_of(chunk.codes[0], q >> 1);
#else
  uint word = word_of(chunk.codes[q / 4 % CODE_VECTORS], q);
#endif
#if HAS_BYTES && !(HAS_ELEMENTS && CODES == I8 || FORMAT == Q8_0)
  return word;
#elif HAS_BYTES
  return word ^ 0x80808080u;
#elif FORMAT == MXFP4
  // A code's 3 lower bits stand for twice the number: 0, 1, 2, 3, 4, 6, 8, 12. The sign says whether that is added to 12 or taken from it.
  uint bits = word >> NIBBLE_BIT(q), code = bits & 0x07070707u, first = bits >> 2 & bits & 0x01010101u,
       second = bits >> 2 & bits >> 1 & 0x01010101u, minus = bits >> 3 & 0x01010101u;
  uint twice = code + first + 2u * (second + (first & second));
  return twice + 0x0c0c0c0cu - 2u * (twice & 255u * minus);
#elif !HAS_HIGH_BITS
  return word;
#else
  // The lower nibbles of all words come before the upper ones.
  uint nibbles = word >> NIBBLE_BIT(q) & 0x0f0f0f0fu;
#if CHUNK_IS_BLOCK
  uint high = chunk.high[0].x;
  // Successive bits of `high` become bit 4 of successive bytes.
  return nibbles | ((high >> 4 * q & 15u) * 0x00204081u & 0x01010101u) << 4;
#elif FORMAT == Q5_K
  uint high = word_of(chunk.high[q / 4 % 2], q);
  return nibbles | high << (4 - q / 8) & 0x10101010u;
#elif FORMAT == Q6_K
  uint high = word_of(chunk.high[0], q);
  uint bits = q < 8 ? high << (4 - q / 4 * 2) : high >> (q / 4 * 2 - 4);
  return nibbles | bits & 0x30303030u;
#endif
#endif
}

// The code without sign that stands for 0.
float zero_of(Chunk chunk, int q) {
#if FORMAT == NBITS && ZEROS
  return chunk.others[q / GROUP_QUADS];
#else
  return float(zero_code);
#endif
}

// 0, which no compiler can see: NVIDIA's (NVK's) loads a mask again for each use, unless it cannot see that it is a constant; and one that
// all invocations have alike it moves to a register for each.
uint hidden;

// The numbers for which the codes of quad q stand, which QUAD_OF(chunk, q) holds.
vec4 numbers_of(Chunk chunk, int q, uint codes) {
#if HAS_OFFSETS
  // GPUs of some vendors have an instruction that makes a float of any byte of a word. 16 times the code is one, too.
  codes &= CODE_MASK * 0x01010101u << CODE_BIT(q);
  uvec4 bytes = uvec4(codes, codes >> 8, codes >> 16, codes >> 24) & 255u;
  float unit = 1.0 / float(1 << CODE_BIT(q));
  return chunk.scales[q / GROUP_QUADS] * unit * vec4(ivec4(bytes)) + chunk.others[q / GROUP_QUADS];
#elif HAS_ELEMENTS && (CODES == F8E4M3 || CODES == F8E5M2)
  return vec4(from_word(CODES, codes, 0), from_word(CODES, codes, 1), from_word(CODES, codes, 2), from_word(CODES, codes, 3));
#else
  // The bits of a code become a float where they are: beside the exponent that makes the lowest of them 1, they are a power of two and
  // the code. Then one subtraction does without that power and the zero.
  int low = CODE_BIT(q), high = low + 8;
  uvec4 parts = uvec2(codes, codes >> 16).xxyy & (uvec2(CODE_MASK << low, CODE_MASK << high) | hidden).xyxy;
  vec2 zeros = vec2(1 << (23 - low), 1 << (23 - high)) + zero_of(chunk, q);
  return uintBitsToFloat(parts | uvec2(150 - low << 23, 150 - high << 23).xyxy) - zeros.xyxy;
#endif
}

// The sum of a group's products with numbers_of(), scaled.
float scaled(Chunk chunk, int group, float sum) {
#if FORMAT == MXFP4
  return sum * chunk.scales[group] * chunk.others[group];
#else
  return sum * chunk.scales[group];
#endif
}
#endif
