#version 430 core
#extension GL_GOOGLE_include_directive : require
// blocked: C = act(alpha op(A) op(B) + beta C + D + bias) from blocks in shared memory and tiles in registers. For GPUs.
//
// A workgroup computes a block of BM x BN elements of C. In steps of BK along k it brings BM x BK elements of op(A) and BK x BN elements of
// op(B) into shared memory, both k-major, in vectors of 16 bytes. From there each invocation adds BK products to each of TM x TN sums in
// its registers. A vector of A and a vector of B make a square of PER_VECTOR x PER_VECTOR sums. An invocation's squares lie as far apart as
// the workgroup has vectors side by side, so that neighbours read neighbouring vectors.
//
// PANELS 0  reads A and B as they lie: along k if A_ALONG_K (for B: B_ALONG_K) says so, else along the rows (columns). Rows and columns
//           beyond the edge repeat the last one and are not stored. Vector r of a step holds the rows r, r + BM / PER_VECTOR, ... of the
//           block: neighbours then load, and store in C, neighbouring elements. With WIDE the elements of a vector are read at a time, and
//           vector r holds PER_VECTOR successive rows
// PANELS 1, 2  reads what pack.comp made: A in panels of BM rows, B in panels of BN columns, k-major, with zeros beyond the edge; k is
//              then a multiple of BK. Vector r holds PER_VECTOR successive rows
//
// Parts     of k begin at multiples of BK
// Shared    16 * (1 + DOUBLE_BUFFER) * BK * ((BM + BN) / PER_VECTOR + 2 * PAD) bytes
// Loops     1 + BK / STEP_K turns for each BK of k, begun ones counted; at the end up to 2 * TM * TN turns
// Macros    BM, BN: a power of two from 16 to 256; BK: 8, 16 or 32; TM, TN: 4, 8 or 16; STEP_K: a power of two up to 16 and BK, the
//           products of a sum that are written out; WORKGROUP: (BM / TM) * (BN / TN), from 16 to 1024
//           PAD: 1 if a vector lies unused after those of one p in shared memory; DOUBLE_BUFFER: 1 if steps take turns in two halves of
//           shared memory, with one barrier each instead of two. At most 16 vectors of a step of either operand, and 1024 bytes of sums,
//           are an invocation's
//           TURN: with WIDE, how elements along k come into vectors across it: 1: an invocation loads PER_VECTOR vectors of neighbouring
//           rows (columns), and stores the square that they make turned; 0: it stores a vector's elements one by one
//           IMAGES: when the host gives A and B as images (WIDE 2): 0 never, 1 always, 2 where it expects that to be faster
// Shapes, grid, buffers, uniforms and the other macros: gemm.glsl

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
#ifndef TURN
#define TURN 0
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
#if TURN != 0 && TURN != 1
#error "blocked: TURN must be 0 or 1"
#endif

#define READS_B_WIDE
#include "gemm.glsl"

#if WIDE && (PANELS || IS_COMPLEX)
#error "blocked: with WIDE elements are read as they lie, and no complex ones"
#endif
#if BM * BK > 16 * PER_VECTOR * WORKGROUP || BN * BK > 16 * PER_VECTOR * WORKGROUP
#error "blocked: BM * BK and BN * BK must be at most 16 vectors for each invocation"
#endif
#if TM * TN > 64 * PER_VECTOR
#error "blocked: TM * TN must be at most 64 vectors"
#endif

#define ROWS TM
#define VECTORS (TN / PER_VECTOR)
#define STEPS STEP_K
#include "unroll.glsl"

// The places of a step that an invocation brings, and the vectors that it loads for them: as many for each place if it turns them. A small
// step may have fewer places than the workgroup invocations. FOR_LOADS_A(M) is M(0) ... for the vectors of A; the same for B.
#if WIDE && A_ALONG_K && TURN
#define TURNS_A 1
#define TO_A_PLACE PER_VECTOR
#else
#define TURNS_A 0
#define TO_A_PLACE 1
#endif
#if WIDE && B_ALONG_K && TURN
#define TURNS_B 1
#define TO_B_PLACE PER_VECTOR
#else
#define TURNS_B 0
#define TO_B_PLACE 1
#endif
#define PLACES_A (BM * BK / PER_VECTOR / TO_A_PLACE)
#define PLACES_B (BN * BK / PER_VECTOR / TO_B_PLACE)
#define LOADS_A ((PLACES_A + WORKGROUP - 1) / WORKGROUP * TO_A_PLACE)
#define LOADS_B ((PLACES_B + WORKGROUP - 1) / WORKGROUP * TO_B_PLACE)
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
const int vectors_a = BM / PER_VECTOR, vectors_b = BN / PER_VECTOR;      // of one p
const int pitch_a = vectors_a + PAD, pitch_b = vectors_b + PAD;        // from p to p + 1 in shared memory
const int strip = 8;

// Elements that are stored one by one (TURN 0) go to arrays, since it depends on the invocation which of a vector's elements
// they are. Most compilers make one load of a vector's.
#if PER_VECTOR == 4
#define VECTOR_OF_ELEMENTS(s, at) VECTOR(s[at][0], s[at][1], s[at][2], s[at][3])
#else
#define VECTOR_OF_ELEMENTS(s, at) VECTOR(s[at][0], s[at][1])
#endif
#if WIDE && A_ALONG_K && !TURNS_A
shared ACC As[(1 + DOUBLE_BUFFER) * BK * pitch_a][PER_VECTOR];
#define VECTOR_OF_A(at) VECTOR_OF_ELEMENTS(As, at)
#else
shared VECTOR As[(1 + DOUBLE_BUFFER) * BK * pitch_a];
#define VECTOR_OF_A(at) As[at]
#endif
#if WIDE && B_ALONG_K && !TURNS_B
shared ACC Bs[(1 + DOUBLE_BUFFER) * BK * pitch_b][PER_VECTOR];
#define VECTOR_OF_B(at) VECTOR_OF_ELEMENTS(Bs, at)
#else
shared VECTOR Bs[(1 + DOUBLE_BUFFER) * BK * pitch_b];
#define VECTOR_OF_B(at) Bs[at]
#endif

// How a step comes into shared memory. There are three ways, a file each; the last two share what they know of places. They define
//   Loads               where an invocation's loads of an operand come from, `from` being the first, and where they go
//   loads_of_a(...)     those of A's block for the first step, from p = begin on; loads_of_b(...): the same of B
//   STEP_A, STEP_B      how far `from` is from p to p + 1
//   NEXT_A, NEXT_B      what a load gets, ZERO_NEXT_A and ZERO_NEXT_B: zeros in its place; next_a[t] and next_b[t] hold load t until all have
//                       read the step before
//   LOAD_A(t), LOAD_B(t)      loads it
//   KEEP_A(t), KEEP_B(t)      stores it in half `phase` of shared memory, once `from` has moved on by `taken` steps of k
//   BEYOND_A(t), BEYOND_B(t)  makes zeros of it beyond the first step's end
//   ELEMENT(vector, e, vectors) the row (column) of the block that element e of a vector in shared memory holds
#include "blocked_panels.glsl"
#include "blocked_wide.glsl"
#include "blocked_elements.glsl"
#include "blocked_places.glsl"

// The first row and column of C that this workgroup computes. Workgroups that run at the same time share what they read of A and B if
// together they cover a square rather than a row of blocks: they go down strips of a few blocks of rows, column by column.
ivec2 block_of_workgroup() {
  int across = int(gl_NumWorkGroups.x), group = int(gl_WorkGroupID.y) * across + int(gl_WorkGroupID.x);
  int top = group / (strip * across) * strip;
  int height = min(strip, int(gl_NumWorkGroups.y) - top);
  group -= top * across;
  return ivec2(y0 + (top + group % height) * BM, x0 + group / height * BN);
}

// The number that the bits 0, 2, 4, ... of x make.
int even_bits(int x) {
  x &= 0x155;
  x = (x | x >> 1) & 0x133;
  x = (x | x >> 2) & 0x10f;
  return (x | x >> 4) & 0x1f;
}

// The place of an invocation in its workgroup, along m and n. Lanes follow Morton order, so that a subgroup of any size covers a
// near-square. Pairs, and pairs of pairs, that read the same vector also let GPUs read 16 bytes for each invocation in half the passes.
ivec2 place_of(int lane) {
  int within = lane % (square * square), beyond = lane / (square * square) * square;
  ivec2 place = ivec2(even_bits(within >> 1), even_bits(within));
  return lanes_n > lanes_m ? place + ivec2(0, beyond) : place + ivec2(beyond, 0);
}

// The macros from here on are parts of main(), and use its variables.
#define CLEAR(i, j) sum[i][j] = ZERO_VECTOR;
#define CLEAR_ROW(i) FOR_VECTORS(CLEAR, i)

#define MINE_A (PLACES_A >= WORKGROUP || lane < PLACES_A)
#define MINE_B (PLACES_B >= WORKGROUP || lane < PLACES_B)
#define LOAD_STEP                              \
  if (MINE_A) { FOR_LOADS_A(LOAD_A) }          \
  if (MINE_B) { FOR_LOADS_B(LOAD_B) }
#define KEEP_STEP                              \
  if (MINE_A) { FOR_LOADS_A(KEEP_A) }          \
  if (MINE_B) { FOR_LOADS_B(KEEP_B) }          \
  memoryBarrierShared();                       \
  barrier();

#define READ_A(i) if ((i) % PER_VECTOR == 0) a[(i) / PER_VECTOR] = VECTOR_OF_A(at_a + (i) / PER_VECTOR * lanes_m);
#define READ_B(i, j) b[j] = VECTOR_OF_B(at_b + (j) * lanes_n);
#define MULTIPLY(i, j) ADD_SCALED(sum[i][j], a[(i) / PER_VECTOR], (i) % PER_VECTOR, b[j]);
#define MULTIPLY_ROW(i) FOR_VECTORS(MULTIPLY, i)
#define MULTIPLY_STEP(i, j, s)                                         \
  {                                                                    \
    int at_a = read_a + (s) * pitch_a, at_b = read_b + (s) * pitch_b;  \
    VECTOR a[TM / PER_VECTOR], b[VECTORS];                                \
    FOR_ROWS(READ_A)                                                   \
    FOR_VECTORS(READ_B, 0)                                              \
    FOR_ROWS(MULTIPLY_ROW)                                             \
  }

#define ROW(i) (row + ELEMENT((i) / PER_VECTOR * lanes_m + lane_m, (i) % PER_VECTOR, vectors_a))
#define COLUMN(j, e) (column + ELEMENT((j) * lanes_n + lane_n, e, vectors_b))
#define STORE_ONE(i, j, e) finish_plain(layer, ROW(i), COLUMN(j, e), ELEMENT_OF_SUM(sum[i][j], e));
#define STORE_VECTOR(i, j) FOR_ELEMENTS(STORE_ONE, i, j)
#define STORE_ROW(i) FOR_VECTORS(STORE_VECTOR, i)
#define ADVANCE(i, j) sum[(i)][j] = sum[((i) * VECTORS + j + 1) % (TM * VECTORS) / VECTORS][(j + 1) % VECTORS];
#define ADVANCE_ROW(i) FOR_VECTORS(ADVANCE, i)

void main() {
  int layer = z0 + int(gl_WorkGroupID.z), z = ITEM(layer);
  int lane = int(gl_LocalInvocationID.x);
  ivec2 block = block_of_workgroup(), place = place_of(lane);
  int row = block.x, column = block.y, lane_m = place.x, lane_n = place.y;

  PRECISE RUNNING_VECTOR sum[TM][VECTORS];
  FOR_ROWS(CLEAR_ROW)

  int begin = BEGIN_K(layer), end = END_K(layer);
  // The first step takes what makes the others whole, so that nothing in the loop depends on where k ends.
  int first = (end - begin - 1) % BK + 1;
  Loads loads_a = loads_of_a(z, row, lane, begin, end), loads_b = loads_of_b(z, column, lane, begin, end);
  NEXT_A next_a[LOADS_A];
  NEXT_B next_b[LOADS_B];
  int phase = 0, taken = first;
  if (begin < end) {
    LOAD_STEP
    FOR_LOADS_A(BEYOND_A)
    FOR_LOADS_B(BEYOND_B)
    loads_a.from += first * STEP_A;
    loads_b.from += first * STEP_B;
    KEEP_STEP
  }
  taken = BK;
  // Compilers cannot see that this is BK / STEP_K. They would write all turns out, and some of them move the loads behind the products then.
  int turns = max(BK / STEP_K, -size.z);
  for (int p = begin; p < end; p += BK) {
    // The loads come before the products and are waited for after them, so nothing between may depend on a condition. Nobody uses the
    // loads of the last turn.
    LOAD_STEP
    loads_a.from += BK * STEP_A;
    loads_b.from += BK * STEP_B;
    int read_a = phase * (BK * pitch_a) + lane_m, read_b = phase * (BK * pitch_b) + lane_n;
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
    phase = 1 - phase;  // all have read what was here two steps ago: they came to the last barrier since
#else
    barrier();  // all have read
#endif
    KEEP_STEP
  }

#if HAS_PLAIN
  // The usual end of a block that lies inside C, straight from the registers. Some compilers take 10 s for finish() written out for each
  // element, and 2 s for a condition for each element.
  if (row + BM <= size.x && column + BN <= size.y && is_plain(z)) {
    FOR_ROWS(STORE_ROW)
    return;
  }
#endif
  // The sums pass by one place, so that finish() is compiled once and no register is indexed at run time: that would take all of them to
  // memory, in the loop above too.
  int elements = max(PER_VECTOR, -size.z);  // compilers cannot see that this is PER_VECTOR: they would compile finish() as often
  for (int q = 0; q < TM * VECTORS; ++q) {
    RUNNING_VECTOR vector = sum[0][0];
    FOR_ROWS(ADVANCE_ROW)
    int r = ROW(q / VECTORS);
    for (int e = 0; e < elements; ++e) {
      int c = COLUMN(q % VECTORS, e);
      if (r < size.x && c < size.y) finish(layer, r, c, element(vector, e));
    }
  }
}
