#version 430 core
#extension GL_GOOGLE_include_directive : require
// blocked: C = act(alpha op(A) op(B) + beta C + D + bias) from blocks in shared memory and tiles in registers. For GPUs.
//
// op(A) is m x k, op(B) is k x n, C is m x n. A workgroup computes a block of BM x BN elements of C: in steps of BK along k it brings
// BM x BK of op(A) and BK x BN of op(B) into shared memory, both k-major, in texels of 16 bytes; from there each invocation adds
// BK products to each of TM x TN sums in its registers. Those lie PER_TEXEL rows by PER_TEXEL columns together, one such square for
// each pair of texels read, and the squares lie as far apart as the workgroup has texels side by side, so that neighbours read
// neighbouring texels.
//
// PANELS 0  reads A and B as they lie: along k if A_ALONG_K (for B: B_ALONG_K) says so, else along the rows (columns). Rows and columns
//           beyond the edge repeat the last one and are not stored. Texel r of a step holds the rows r, r + BM / PER_TEXEL, ... of the
//           block: neighbours then load, and store in C, neighbouring elements. With WIDE a texel's elements are read at a time, and
//           texel r holds PER_TEXEL successive rows
// PANELS 1, 2  reads what pack.comp made: A in panels of BM rows, B in panels of BN columns, k-major, with zeros beyond the edge; k is
//              then a multiple of BK. Texel r holds PER_TEXEL successive rows
//
// Grid      workgroups over the columns (x) and rows (y) of the piece of C from x0 and y0 on, and over its layers (z) from z0 on; parts
//           of k begin at multiples of BK
// Shared    16 * (1 + DOUBLE_BUFFER) * BK * ((BM + BN) / PER_TEXEL + 2 * PAD) bytes
// Loops     1 + BK / STEP_K turns for each BK of k, begun ones counted; at the end up to 2 * TM * TN turns
// Macros    BM, BN: a power of two from 16 to 256; BK: 8, 16 or 32; TM, TN: 4, 8 or 16; STEP_K: a power of two up to 16 and BK, the
//           products of a sum that are written out; WORKGROUP: (BM / TM) * (BN / TN), from 16 to 1024
//           PAD: 1 if a texel lies unused after those of one p in shared memory; DOUBLE_BUFFER: 1 if steps take turns in two pieces of
//           shared memory, with one barrier each instead of two. At most 16 texels of a step of either operand, and 1024 bytes of sums,
//           are an invocation's
//           IMAGES: when the host gives A and B as images (WIDE 2): 0 never, 1 always, 2 where it expects that to be faster
//           Buffers, uniforms and the other macros: gemm.glsl

#ifndef BM
#define BM 64
#endif
#ifndef BN
#define BN 64
#endif
#ifndef BK
#define BK 16
#endif
#ifndef TM
#define TM 8
#endif
#ifndef TN
#define TN 8
#endif
#ifndef STEP_K
#define STEP_K 4
#endif
#ifndef WORKGROUP
#define WORKGROUP 64
#endif
#ifndef PAD
#define PAD 1
#endif
#ifndef DOUBLE_BUFFER
#define DOUBLE_BUFFER 0
#endif
#ifndef IMAGES
#define IMAGES 2
#endif
#ifndef A_ALONG_K
#define A_ALONG_K 1
#endif
#ifndef B_ALONG_K
#define B_ALONG_K 0
#endif
#if BM < 16 || BM > 256 || (BM & (BM - 1)) != 0 || BN < 16 || BN > 256 || (BN & (BN - 1)) != 0
#error "blocked: BM and BN must be powers of two from 16 to 256"
#endif
#if BK != 8 && BK != 16 && BK != 32
#error "blocked: BK must be 8, 16 or 32"
#endif
#if (TM != 4 && TM != 8 && TM != 16) || (TN != 4 && TN != 8 && TN != 16)
#error "blocked: TM and TN must be 4, 8 or 16"
#endif
#if STEP_K < 1 || STEP_K > 16 || STEP_K > BK || (STEP_K & (STEP_K - 1)) != 0
#error "blocked: STEP_K must be a power of two up to 16 and BK"
#endif
#if WORKGROUP != (BM / TM) * (BN / TN) || WORKGROUP < 16 || WORKGROUP > 1024
#error "blocked: WORKGROUP must be (BM / TM) * (BN / TN), from 16 to 1024"
#endif
#if (PAD != 0 && PAD != 1) || (DOUBLE_BUFFER != 0 && DOUBLE_BUFFER != 1)
#error "blocked: PAD and DOUBLE_BUFFER must be 0 or 1"
#endif
#if IMAGES < 0 || IMAGES > 2
#error "blocked: IMAGES must be 0, 1 or 2"
#endif

#define READS_B_WIDE
#include "gemm.glsl"

#if WIDE && (PANELS || IS_COMPLEX)
#error "blocked: with WIDE elements are read as they lie, and no complex ones"
#endif
#if BM * BK > 16 * PER_TEXEL * WORKGROUP || BN * BK > 16 * PER_TEXEL * WORKGROUP
#error "blocked: BM * BK and BN * BK must be at most 16 texels for each invocation"
#endif
#if TM * TN > 64 * PER_TEXEL
#error "blocked: TM * TN must be at most 64 texels"
#endif

#define ROWS TM
#define TEXELS (TN / PER_TEXEL)
#define STEPS STEP_K
#include "unroll.glsl"

// What an invocation loads of a step: FOR_LOADS_A(M) is M(0) ... for its texels of A; the same for B.
#define LOADS_A (BM * BK / PER_TEXEL / WORKGROUP)
#define LOADS_B (BN * BK / PER_TEXEL / WORKGROUP)
#if LOADS_A <= 1
#define FOR_LOADS_A(M) ROWS_1(M)
#elif LOADS_A == 2
#define FOR_LOADS_A(M) ROWS_2(M)
#elif LOADS_A == 4
#define FOR_LOADS_A(M) ROWS_4(M)
#elif LOADS_A == 8
#define FOR_LOADS_A(M) ROWS_8(M)
#else
#define FOR_LOADS_A(M) ROWS_16(M)
#endif
#if LOADS_B <= 1
#define FOR_LOADS_B(M) ROWS_1(M)
#elif LOADS_B == 2
#define FOR_LOADS_B(M) ROWS_2(M)
#elif LOADS_B == 4
#define FOR_LOADS_B(M) ROWS_4(M)
#elif LOADS_B == 8
#define FOR_LOADS_B(M) ROWS_8(M)
#else
#define FOR_LOADS_B(M) ROWS_16(M)
#endif

layout(local_size_x = WORKGROUP) in;

const int lanes_m = BM / TM, lanes_n = BN / TN;                      // the invocations over the rows and the columns
const int square = min(lanes_m, lanes_n);
const int texels_a = BM / PER_TEXEL, texels_b = BN / PER_TEXEL;      // of one p
const int pitch_a = texels_a + PAD, pitch_b = texels_b + PAD;        // from p to p + 1 in shared memory
const int strip = 8;

shared TEXEL As[(1 + DOUBLE_BUFFER) * BK * pitch_a];
shared TEXEL Bs[(1 + DOUBLE_BUFFER) * BK * pitch_b];

// The number that the bits 0, 2, 4, ... of x make.
int even_bits(int x) {
  x &= 0x155;
  x = (x | x >> 1) & 0x133;
  x = (x | x >> 2) & 0x10f;
  return (x | x >> 4) & 0x1f;
}

void main() {
  int layer = z0 + int(gl_WorkGroupID.z);
  int z = ITEM(layer);
  int lane = int(gl_LocalInvocationID.x);

  // Workgroups that run at the same time share what they read of A and B if together they cover a square rather than a row of blocks:
  // they go down strips of a few blocks of rows, column by column.
  int across = int(gl_NumWorkGroups.x), group = int(gl_WorkGroupID.y) * across + int(gl_WorkGroupID.x);
  int top = group / (strip * across) * strip;
  int height = min(strip, int(gl_NumWorkGroups.y) - top);
  group -= top * across;
  int row = y0 + (top + group % height) * BM;
  int column = x0 + group / height * BN;

  // So do the invocations of a subgroup, whatever its size, if their number's bits go to column and row in turn; pairs and pairs of
  // pairs that read the same texel also let GPUs read 16 bytes for each invocation in half the passes.
  int lane_n = even_bits(lane % (square * square)), lane_m = even_bits(lane % (square * square) >> 1);
  if (lanes_n > lanes_m)
    lane_n += lane / (square * square) * square;
  else
    lane_m += lane / (square * square) * square;

  PRECISE RUNNING_TEXEL sum[TM][TEXELS];
#define CLEAR(i, j) sum[i][j] = ZERO_TEXEL;
#define CLEAR_ROW(i) FOR_TEXELS(CLEAR, i)
  FOR_ROWS(CLEAR_ROW)

  int begin = BEGIN_K(layer), end = END_K(layer);
  // The first step takes what makes the others whole, so that nothing in the loop depends on where k ends.
  int first = (end - begin - 1) % BK + 1;
#if WIDE
#define NEXT BITS
#else
#define NEXT TEXEL
#endif
  NEXT next_a[max(LOADS_A, 1)], next_b[max(LOADS_B, 1)];
  // A small step may have fewer texels than the workgroup invocations.
#define MINE_A (LOADS_A > 0 || lane < texels_a * BK)
#define MINE_B (LOADS_B > 0 || lane < texels_b * BK)

#if PANELS
  int from_a = panels_at.x + z * panels_at.z + (row / BM * size.z + begin) * texels_a + lane;
  int from_b = panels_at.y + z * panels_at.w + (column / BN * size.z + begin) * texels_b + lane;
  int last_a = from_a + (end - begin - BK) * texels_a, last_b = from_b + (end - begin - BK) * texels_b;
#define TO(t, texels) ((t) * WORKGROUP + lane + ((t) * WORKGROUP + lane) / texels * PAD)
#define TO_A(t) TO(t, texels_a)
#define TO_B(t) TO(t, texels_b)
#define LOAD_A(t) next_a[t] = panel(min(from_a, last_a) + (t) * WORKGROUP);
#define LOAD_B(t) next_b[t] = panel(min(from_b, last_b) + (t) * WORKGROUP);
#define NEXT_A texels_a
#define NEXT_B texels_b
#define ELEMENT(texel, e, texels) ((texel) * PER_TEXEL + (e))
#else
  // An invocation's loads are those of number lane, lane + WORKGROUP, ...; they are numbered along p if neighbours along p are neighbours
  // in memory, else along r. With WIDE a load is PER_TEXEL elements along that; else one element, r texel by texel. All being powers of
  // two, what P and R say of a sum is the sum of what they say of each.
#if WIDE
#define SPAN PER_TEXEL
#define ELEMENT(texel, e, texels) ((texel) * PER_TEXEL + (e))
#else
#define SPAN 1
#define ELEMENT(texel, e, texels) ((texel) + (e) * texels)
#endif
#define P(number, along_k, texels) ((along_k) != 0 ? (number) % (BK / SPAN) * SPAN : (number) / texels)
#define R(number, along_k, texels) ((along_k) != 0 ? (number) / (BK / SPAN) : (number) % texels * SPAN)
  int p_a = P(lane, A_ALONG_K, texels_a), r_a = R(lane, A_ALONG_K, texels_a);
  int p_b = P(lane, B_ALONG_K, texels_b), r_b = R(lane, B_ALONG_K, texels_b);
#define P_A(t) P((t) * WORKGROUP, A_ALONG_K, texels_a)
#define P_B(t) P((t) * WORKGROUP, B_ALONG_K, texels_b)
#define R_A(t) R((t) * WORKGROUP, A_ALONG_K, texels_a)
#define R_B(t) R((t) * WORKGROUP, B_ALONG_K, texels_b)
  // Where the loads go, in texels; with WIDE in elements.
  int to_a = p_a * pitch_a * SPAN + r_a, to_b = p_b * pitch_b * SPAN + r_b;
#define TO_A(t) (to_a + P_A(t) * pitch_a * SPAN + R_A(t))
#define TO_B(t) (to_b + P_B(t) * pitch_b * SPAN + R_B(t))
  // Where they come from. Beyond an edge anything will do that can be read: sums of such rows and columns are not stored, and products
  // beyond the end of k are made zeros. Unsigned, since a sum may be more than an int holds.
  int from_a = a_row(z, row + r_a) + (begin + p_a) * a_at.z, from_b = b_column(z, column + r_b) + (begin + p_b) * b_at.y;
  uint last_a = uint(a_row(z, size.x - 1) + (end - 1) * a_at.z), last_b = uint(b_column(z, size.y - 1) + (end - 1) * b_at.y);
#define FROM_A(t) (from_a + R_A(t) * a_at.y + P_A(t) * a_at.z)
#define FROM_B(t) (from_b + R_B(t) * b_at.z + P_B(t) * b_at.y)
#if WIDE
#define LOAD_A(t) next_a[t] = TEXEL_A(int(min(uint(FROM_A(t)), last_a) / uint(PER_TEXEL)));
#define LOAD_B(t) next_b[t] = TEXEL_B(int(min(uint(FROM_B(t)), last_b) / uint(PER_TEXEL)));
#else
#define GET_A(e) load_a(int(min(uint(at + e * texels_a * a_at.y), last_a)))
#define GET_B(e) load_b(int(min(uint(at + e * texels_b * b_at.z), last_b)))
#define LOAD_A(t) { int at = FROM_A(t); next_a[t] = TEXEL_OF(GET_A); }
#define LOAD_B(t) { int at = FROM_B(t); next_b[t] = TEXEL_OF(GET_B); }
#endif
#define BEYOND_A(t) if (p_a + P_A(t) >= first) next_a[t] = NEXT(0);
#define BEYOND_B(t) if (p_b + P_B(t) >= first) next_b[t] = NEXT(0);
#define NEXT_A a_at.z
#define NEXT_B b_at.y
#endif
#define ROW(i) (row + ELEMENT((i) / PER_TEXEL * lanes_m + lane_m, (i) % PER_TEXEL, texels_a))
#define COLUMN(j, e) (column + ELEMENT((j) * lanes_n + lane_n, e, texels_b))

#if PANELS == 0 && WIDE
// Along p each element of a load goes to a texel of its own.
#define KEEP_ONE(s, e, value, to, pitch) s[int(uint(to) / uint(PER_TEXEL)) + e * pitch][uint(to) % uint(PER_TEXEL)] = value[e];
#if PER_TEXEL == 4
#define KEEP_EACH(s, value, to, pitch)                                                       \
  KEEP_ONE(s, 0, value, to, pitch) KEEP_ONE(s, 1, value, to, pitch)                          \
  KEEP_ONE(s, 2, value, to, pitch) KEEP_ONE(s, 3, value, to, pitch)
#else
#define KEEP_EACH(s, value, to, pitch) KEEP_ONE(s, 0, value, to, pitch) KEEP_ONE(s, 1, value, to, pitch)
#endif
#define KEEP(s, value, tile, to, pitch, along_k)                                             \
  {                                                                                          \
    int at = (tile) * (BK * pitch * PER_TEXEL) + to;                                         \
    TEXEL texel = value;                                                                     \
    if ((along_k) != 0) { KEEP_EACH(s, texel, at, pitch) } else s[uint(at) / uint(PER_TEXEL)] = texel; \
  }
#define KEEP_A(t) KEEP(As, texel_of_read(next_a[t]), tile, TO_A(t), pitch_a, A_ALONG_K)
#define KEEP_B(t) KEEP(Bs, texel_of_read(next_b[t]), tile, TO_B(t), pitch_b, B_ALONG_K)
#else
#define KEEP_A(t) As[tile * (BK * pitch_a) + TO_A(t)] = next_a[t];
#define KEEP_B(t) Bs[tile * (BK * pitch_b) + TO_B(t)] = next_b[t];
#endif
#define READ_A(i) if ((i) % PER_TEXEL == 0) a[(i) / PER_TEXEL] = As[at_a + (i) / PER_TEXEL * lanes_m];
#define READ_B(i, j) b[j] = Bs[at_b + (j) * lanes_n];
#define MULTIPLY(i, j) ADD_SCALED(sum[i][j], a[(i) / PER_TEXEL], (i) % PER_TEXEL, b[j]);
#define MULTIPLY_ROW(i) FOR_TEXELS(MULTIPLY, i)
#define MULTIPLY_STEP(i, j, s)                                         \
  {                                                                    \
    int at_a = read_a + (s) * pitch_a, at_b = read_b + (s) * pitch_b;  \
    TEXEL a[TM / PER_TEXEL], b[TEXELS];                                \
    FOR_ROWS(READ_A)                                                   \
    FOR_TEXELS(READ_B, 0)                                              \
    FOR_ROWS(MULTIPLY_ROW)                                             \
  }

#define LOAD                                   \
  if (MINE_A) { FOR_LOADS_A(LOAD_A) }          \
  if (MINE_B) { FOR_LOADS_B(LOAD_B) }
#define KEEP_STEP                              \
  if (MINE_A) { FOR_LOADS_A(KEEP_A) }          \
  if (MINE_B) { FOR_LOADS_B(KEEP_B) }          \
  memoryBarrierShared();                       \
  barrier();
  int tile = 0;
  if (begin < end) {
    LOAD
#if PANELS == 0
    FOR_LOADS_A(BEYOND_A)
    FOR_LOADS_B(BEYOND_B)
#endif
    from_a += first * NEXT_A;
    from_b += first * NEXT_B;
    KEEP_STEP
  }
  // Compilers cannot see that this is BK / STEP_K. They would write all turns out, and some of them move the loads behind the products then.
  int turns = max(BK / STEP_K, -size.z);
  for (int p = begin; p < end; p += BK) {
    // The loads come before the products and are waited for after them, so nothing between may depend on a condition. The last ones are
    // in vain.
    LOAD
    from_a += BK * NEXT_A;
    from_b += BK * NEXT_B;
    int read_a = tile * (BK * pitch_a) + lane_m, read_b = tile * (BK * pitch_b) + lane_n;
#if STEP_K == BK
    FOR_STEPS(MULTIPLY_STEP, 0, 0)
#else
    for (int turn = 0; turn < turns; ++turn) {
      FOR_STEPS(MULTIPLY_STEP, 0, 0)
      read_a += STEP_K * pitch_a;
      read_b += STEP_K * pitch_b;
    }
#endif
#if DOUBLE_BUFFER
    tile = 1 - tile;  // all have read what was here two steps ago: they came to the last barrier since
#else
    barrier();  // all have read
#endif
    KEEP_STEP
  }

#if HAS_PLAIN
  // The usual end of a block that lies inside, straight from the registers. finish() written out for each element would take some
  // compilers 10 s, a condition for each element 2 s.
  if (row + BM <= size.x && column + BN <= size.y && is_plain(z)) {
#define STORE_ONE(i, j, e) finish_plain(layer, ROW(i), COLUMN(j, e), element(sum[i][j], e));
#if PER_TEXEL == 4
#define STORE_TEXEL(i, j) STORE_ONE(i, j, 0) STORE_ONE(i, j, 1) STORE_ONE(i, j, 2) STORE_ONE(i, j, 3)
#elif PER_TEXEL == 2
#define STORE_TEXEL(i, j) STORE_ONE(i, j, 0) STORE_ONE(i, j, 1)
#else
#define STORE_TEXEL(i, j) STORE_ONE(i, j, 0)
#endif
#define STORE_ROW(i) FOR_TEXELS(STORE_TEXEL, i)
    FOR_ROWS(STORE_ROW)
    return;
  }
#endif

  // The sums pass by one place, so that finish() is compiled once and no register is indexed at run time: that would take all of them to
  // memory, in the loop above too.
#define ADVANCE(i, j) sum[(i)][j] = sum[((i) * TEXELS + j + 1) % (TM * TEXELS) / TEXELS][(j + 1) % TEXELS];
#define ADVANCE_ROW(i) FOR_TEXELS(ADVANCE, i)
  int elements = max(PER_TEXEL, -size.z);  // as above: else it is compiled PER_TEXEL times
  for (int q = 0; q < TM * TEXELS; ++q) {
    RUNNING_TEXEL texel = sum[0][0];
    FOR_ROWS(ADVANCE_ROW)
    int r = ROW(q / TEXELS);
    for (int e = 0; e < elements; ++e) {
      int c = COLUMN(q % TEXELS, e);
      if (r < size.x && c < size.y) finish(layer, r, c, element(texel, e));
    }
  }
}
