// Quantised A by chunks: the words of CHUNK codes of a row are read once, and decoded in registers. What a chunk is depends on the format,
// and on nothing else.
//
// A chunk is 8 quads of 4 codes; code e of a quad begins at bit 8 e of a word, or 4 bits further. Codes of a chunk need not be successive:
// they lie among SPAN successive ones, which have SPAN / CHUNK chunks. Code e of quad q of the chunk with which p begins is that of
// chunk_begin(p) + CODE_AT(q, e).
//
// Of formats with offsets, numbers_of() gives what dequantize() gives. Of others it gives code - zero, which is exact, and what is summed
// from GROUP_QUADS successive quads is multiplied by scale_of() (see docs/checking.md).
#if QUANTIZED == 1

#define CHUNK 32
#define HAS_OFFSETS (FORMAT == Q4_1 || FORMAT == Q5_1 || FORMAT == Q4_K || FORMAT == Q5_K)

#if FORMAT == Q4_K || FORMAT == Q5_K
#define SPAN 64
#define CODE_AT(q, e) (4 * (q) + (q) / 4 * 16 + (e))
#define GROUP_QUADS 4
#elif FORMAT == Q6_K
#define SPAN 128
#define CODE_AT(q, e) ((q) / 2 * 32 + (q) % 2 * 4 + (e))
#define GROUP_QUADS 2
#else
#define SPAN CHUNK
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
#define GROUPS (8 / GROUP_QUADS)

// Whether codes of 8 bits fill 8 words, or lower nibbles 4. Further bits of codes lie apart.
#define HAS_BYTES (FORMAT == Q8_0 || FORMAT >= PER_ROW || FORMAT == NBITS && CODE_BITS == 8)
#define HAS_HIGH_BITS (FORMAT == Q5_0 || FORMAT == Q5_1 || FORMAT == Q5_K || FORMAT == Q6_K)

// What holds for all chunks of a row. Its first code in the window is that with index `first`.
struct Row {
  int first;
  int zero;     // NBITS: the bit at which the zero of its group lies
  float scale;  // PER_ROW, PER_TENSOR
};
struct Chunk {
#if HAS_BYTES
  uvec4 codes[2];
#else
  uvec4 codes[1];
#endif
  uvec4 high;  // further bits
  float scales[GROUPS];
  float others[GROUPS];  // offsets; without offsets, of NBITS zeros; of MXFP4 a second factor of the scale
};

Row row_of_codes(int index) {
  Row row = Row(index, 0, 0.0);
#if FORMAT == NBITS && ZEROS
  int from_begin = index + codes_at.w, zeros_bits = (ROW_LENGTH / GROUP * CODE_BITS + 7) / 8 * 8;
  row.zero = codes_at.z * 8 + from_begin / ROW_LENGTH * zeros_bits + from_begin % ROW_LENGTH / GROUP * CODE_BITS;
#elif FORMAT == PER_ROW
  row.scale = scale_at((index + codes_at.w) / ROW_LENGTH);
#elif FORMAT == PER_TENSOR
  row.scale = scale_at(0);
#endif
  return row;
}

#if SPAN == 128
int chunk_begin(int p) { return (p & ~127) + ((p & 96) >> 2); }
#elif SPAN == 64
int chunk_begin(int p) { return (p & ~63) + ((p & 32) >> 1); }
#else
int chunk_begin(int p) { return p; }
#endif

// Whether chunks can be read: of most formats they are whole words, where the first one is.
bool has_chunks() {
#if FORMAT == Q8_0 || FORMAT == Q4_0 || FORMAT == Q5_0 || FORMAT == Q6_K || FORMAT == MXFP4
  return true;
#elif FORMAT >= PER_ROW
  return ((codes_at.x | ROW_LENGTH) & 3) == 0;
#else
  return (codes_at.x & 3) == 0;
#endif
}

uvec4 words_from(int word) { return uvec4(A[word], A[word + 1], A[word + 2], A[word + 3]); }
// The words that begin at byte `at` of the binding; `next` hold their last bytes, and `low` the first ones where those are other words.
uvec4 words_across(uvec4 low, uvec4 next, int at) {
#if FORMAT == MXFP4
  int shift = (at & 3) * 8;
  return shift == 0 ? next : low >> shift | next << (32 - shift & 31);
#else
  return (at & 2) != 0 ? low >> 16 | next << 16 : next;
#endif
}
// The same, read; the first byte is in `low`, the word before where next_of(at) begins.
int next_of(int at) { return (at + 3) >> 2; }
uvec4 read_across(uint low, int at) {
  uvec4 next = words_from(next_of(at));
  return words_across(uvec4(low, next.xyz), next, at);
}
uvec2 read_pair(int at) {
  uvec2 next = uvec2(A[next_of(at)], A[next_of(at) + 1]);
  return words_across(uvec4(A[at >> 2], next.x, 0, 0), next.xyxy, at).xy;
}
float half_of(uint word, bool upper) { return from_half(upper ? word >> 16 : word & 0xffffu); }

Chunk load_chunk(Row row, int p) {
  Chunk chunk;
  int index = row.first + p;
#if FORMAT == Q8_0 || FORMAT == Q4_0 || FORMAT == Q5_0
  int block = codes_at.x + (index >> 5) * (FORMAT == Q4_0 ? 18 : FORMAT == Q5_0 ? 22 : 34), at = block + 2;
  uint low = A[block >> 2];
  chunk.scales[0] = half_of(low, (block & 2) != 0);
#if FORMAT == Q5_0
  uint bits = low;
  low = A[next_of(at)];
  chunk.high.x = words_across(uvec4(bits), uvec4(low), at).x;
  at += 4;
#endif
  chunk.codes[0] = read_across(low, at);
#if FORMAT == Q8_0
  chunk.codes[1] = read_across(A[next_of(at) + 3], at + 16);
#endif
#elif FORMAT == Q4_1 || FORMAT == Q5_1
  int block = (codes_at.x >> 2) + (index >> 5) * (FORMAT == Q4_1 ? 5 : 6);
  uint halves = A[block];
  chunk.scales[0] = half_of(halves, false);
  chunk.others[0] = half_of(halves, true);
#if FORMAT == Q4_1
  chunk.codes[0] = words_from(block + 1);
#else
  chunk.high.x = A[block + 1];
  chunk.codes[0] = words_from(block + 2);
#endif
#elif FORMAT == Q4_K || FORMAT == Q5_K
  int block = (codes_at.x >> 2) + (index >> 8) * (FORMAT == Q4_K ? 36 : 44), pair = index >> 6 & 3, from = (index & 32) >> 3;
  uvec4 head = words_from(block);
  chunk.codes[0] = words_from(block + (FORMAT == Q4_K ? 4 : 12) + pair * 8 + from);
#if FORMAT == Q5_K
  chunk.high = words_from(block + 4 + from) >> 2 * pair;
#endif
  // The scales and the offsets of four groups in bytes; see dequantize().
  uvec2 parts = pair < 2 ? head.yz & 0x3f3f3f3fu
                         : uvec2(head.w, head.w >> 4) & 0x0f0f0f0fu | head.yz >> 2 & 0x30303030u;
  parts >>= (pair & 1) * 16;
  for (int i = 0; i < 2; ++i) {
    chunk.scales[i] = half_of(head.x, false) * float(parts.x >> 8 * i & 255u);
    chunk.others[i] = -(half_of(head.x, true) * float(parts.y >> 8 * i & 255u));
  }
#elif FORMAT == Q6_K
  int block = codes_at.x + (index >> 8) * 210, half_block = index >> 7 & 1, from = (index & 96) >> 2;
  int at = block + half_block * 64 + from;
  chunk.codes[0] = uvec4(read_pair(at), read_pair(at + 32));
  chunk.high.xy = read_pair(block + 128 + half_block * 32 + from);
  uvec2 scales = read_pair(block + 192 + half_block * 8) >> (from & 16) / 2;
  float scale = half_at(block + 208);
  for (int i = 0; i < 4; ++i) chunk.scales[i] = scale * float(bitfieldExtract(int(scales[i / 2]), i % 2 * 16, 8));
#elif FORMAT == MXFP4
  int block = codes_at.x + (index >> 5) * 17;
  uint low = A[block >> 2], e = low >> (block & 3) * 8 & 255u;
  chunk.codes[0] = read_across(low, block + 1);
  chunk.scales[0] = uintBitsToFloat((((e + 1u) >> 1) + 63u) << 23);
  chunk.others[0] = uintBitsToFloat(((e >> 1) + 63u) << 23);
#else
  int word = (codes_at.x + (FORMAT == NBITS ? index / 8 * CODE_BITS : index)) >> 2;
  chunk.codes[0] = words_from(word);
#if HAS_BYTES
  chunk.codes[1] = words_from(word + 4);
#endif
  for (int i = 0; i < GROUPS; ++i) {
#if FORMAT == NBITS
    chunk.scales[i] = scale_at(index / GROUP + i);
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

// The word that holds the codes of quad q.
uint quad_of(Chunk chunk, int q) {
#if HAS_HIGH_BITS
  uint nibbles = chunk.codes[0][q & 3] >> (q & 4) & 0x0f0f0f0fu;
#endif
#if HAS_BYTES
#if FORMAT == Q8_0 || FORMAT >= PER_ROW && CODES == I8
  return chunk.codes[q / 4][q % 4] ^ 0x80808080u;
#else
  return chunk.codes[q / 4][q % 4];
#endif
#elif FORMAT == Q5_0 || FORMAT == Q5_1
  // Successive bits of `high` become bit 4 of successive bytes.
  return nibbles | ((chunk.high.x >> 4 * q & 15u) * 0x00204081u & 0x01010101u) << 4;
#elif FORMAT == Q5_K
  return nibbles | chunk.high[q & 3] << (4 - q / 4) & 0x10101010u;
#elif FORMAT == Q6_K
  uint high = q < 4 ? chunk.high[q & 1] << (4 - (q & 2)) : chunk.high[q & 1] >> (q & 2);
  return nibbles | high & 0x30303030u;
#elif FORMAT == MXFP4
  // Of a code's 3 lower bits to twice the number: 0, 1, 2, 3, 4, 6, 8, 12. With the sign that is added to 12, or taken from it.
  uint bits = chunk.codes[0][q & 3] >> (q & 4), code = bits & 0x07070707u, first = bits >> 2 & bits & 0x01010101u,
       second = bits >> 2 & bits >> 1 & 0x01010101u, minus = bits >> 3 & 0x01010101u;
  uint twice = code + first + 2u * (second + (first & second));
  return twice + 0x0c0c0c0cu - 2u * (twice & 255u * minus);
#elif FORMAT == NBITS
  return chunk.codes[0][q >> 1];
#else
  return chunk.codes[0][q & 3];
#endif
}

// What a code without sign is when it stands for 0.
#if FORMAT == Q8_0 || FORMAT >= PER_ROW && CODES == I8 || FORMAT == NBITS && CODE_BITS == 8 && !ZEROS
#define ZERO_OF(chunk, q) 128.0
#elif FORMAT == Q4_0 || FORMAT == NBITS && !ZEROS
#define ZERO_OF(chunk, q) 8.0
#elif FORMAT == Q5_0
#define ZERO_OF(chunk, q) 16.0
#elif FORMAT == Q6_K
#define ZERO_OF(chunk, q) 32.0
#elif FORMAT == MXFP4
#define ZERO_OF(chunk, q) 12.0
#elif FORMAT == NBITS
#define ZERO_OF(chunk, q) chunk.others[(q) / GROUP_QUADS]
#else
#define ZERO_OF(chunk, q) 0.0
#endif
// The bit with which a quad begins. Nibbles that need no further bits stay where they are.
#if HAS_BYTES || HAS_HIGH_BITS || FORMAT == MXFP4
#define CODE_MASK 255u
#define CODE_BIT(q) 0
#else
#define CODE_MASK 15u
#if FORMAT == NBITS
#define CODE_BIT(q) (4 * ((q) & 1))
#else
#define CODE_BIT(q) ((q) & 4)
#endif
#endif

// The bits of a code become a float where they are: beside the exponent that makes the lowest of them 1, they are a power of two and the
// code.
vec4 numbers_of(Chunk chunk, int q) {
  uint codes = quad_of(chunk, q);
#if FORMAT >= PER_ROW && (CODES == F8E4M3 || CODES == F8E5M2)
  return vec4(from_word(CODES, codes, 0), from_word(CODES, codes, 1), from_word(CODES, codes, 2), from_word(CODES, codes, 3));
#else
  int low = CODE_BIT(q), high = low + 8;
  // NVIDIA's compiler (NVK's) loads a mask again for each use, unless it cannot see that it is a constant.
  uint hidden = uint(min(size.z, 0));
  uvec4 parts = uvec2(codes, codes >> 16).xxyy & (uvec2(CODE_MASK << low, CODE_MASK << high) | hidden).xyxy;
  vec2 zeros = vec2(1 << (23 - low), 1 << (23 - high)) + ZERO_OF(chunk, q);
  vec4 numbers = uintBitsToFloat(parts | uvec2(150 - low << 23, 150 - high << 23).xyxy) - zeros.xyxy;
#if HAS_OFFSETS
  return chunk.scales[q / GROUP_QUADS] * numbers + chunk.others[q / GROUP_QUADS];
#else
  return numbers;
#endif
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
