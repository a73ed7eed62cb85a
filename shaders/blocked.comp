#version 430 core
#extension GL_GOOGLE_include_directive : require
// blocked: C = act(alpha op(A) op(B) + beta C + D + bias) from blocks in shared memory and tiles in registers. For GPUs.
//
// A workgroup computes a block of BM x BN elements of C. In steps of BK along k it brings BM x BK elements of op(A) and BK x BN elements of
// op(B) into shared memory, both k-major, in vectors of 16 bytes. From there each invocation adds BK products to each of TM x TN sums in
// its registers. A vector of A and a vector of B make a square of PER_VECTOR x PER_VECTOR sums. A thread's
// sub-tiles are interleaved with its neighbours': neighbours read adjacent vectors.
//
// PANELS 0  reads A and B as they lie: along k if A_ALONG_K (for B: B_ALONG_K) says so, else along the rows (columns). Rows and columns
//           beyond the edge repeat the last one and are not stored. Vector r of a step holds the rows r, r + BM / PER_VECTOR, ... of the
//           block: neighbours then load, and store in C, neighbouring elements. With WIDE the elements of a vector are read at a time, and
//           vector r holds PER_VECTOR successive rows
// PANELS 1, 2  reads what pack.comp made: A in panels of BM rows, B in panels of BN columns, k-major; k is
//              then a multiple of BK. Vector r holds PER_VECTOR successive rows
//
// Parts     of k begin at multiples of BK
// Shared    16 * (1 + DOUBLE_BUFFER) * BK * ((BM + BN) / PER_VECTOR + 2 * PAD) bytes
// Loops     1 + BK / STEP_K turns for each BK of k, begun ones counted; at the end up to 2 * TM * TN turns
// Macros    BM, BN: a power of two from 16 to 256; BK: 8, 16 or 32; TM, TN: 4, 8 or 16; STEP_K: a power of two up to 16 and BK, the
//           products of a sum that are written out; WORKGROUP: (BM / TM) * (BN / TN), from 16 to 1024
//           PAD: 1 if a vector lies unused after the vectors of one p in shared memory; DOUBLE_BUFFER: 1 if steps take turns in two halves of
//           shared memory, with one barrier each instead of two. At most 16 vectors of a step of either operand, and 1024 bytes of sums,
//           are an invocation's
//           TURN: with WIDE, how elements along k come into vectors across it: 1: an invocation loads PER_VECTOR vectors of neighbouring
//           rows (columns), and stores the square that they make turned; 0: it stores a vector's elements one by one
// Shapes, grid, buffers, uniforms and the other macros: gemm.glsl

#if PANELS
#define A_READS NOTHING
#elif WIDE
#define A_READS VECTORS
#else
#define A_READS ELEMENTS
#endif
#define B_READS A_READS
#define B_IMAGE (WIDE == 2)
#include "gemm.glsl"

// As in types.glsl: 1.1 times as fast, larger blocks slower; others were not measured.
#if BM == 64 && BN <= 32 && !QUANTIZED
#pragma optionNV(unroll all)
#endif

layout(local_size_x = WORKGROUP) in;

// What differs between A and B: whether neighbours along k are neighbours in memory; the loads that make a square which is turned, else 1;
// and the vectors of one p in the block.
struct Side {
  bool along_k;
  int square, vectors;
};
const int square = WIDE > 0 && TURN != 0 ? PER_VECTOR : 1, square_a = A_ALONG_K != 0 ? square : 1, square_b = B_ALONG_K != 0 ? square : 1;
const Side side_a = Side(A_ALONG_K != 0 && PANELS == 0 && INDEXED_A == 0, square_a, BM / PER_VECTOR);
const Side side_b = Side(B_ALONG_K != 0 && PANELS == 0 && INDEXED_B == 0, square_b, BN / PER_VECTOR);

// The vector of shared memory at which p begins: its vectors follow. It is additive, too.
int in_shared(Side side, int p) { return p * (side.vectors + PAD); }

// ---- Where from. In each step of k an invocation brings the places lane, lane + WORKGROUP, ... of the block. A place is one load, or a
// square of loads. A small block may have fewer places than the workgroup has invocations.

const int span = WIDE > 0 ? PER_VECTOR : 1;  // the elements of a load that are neighbours in memory
const int places_a = BM * BK / PER_VECTOR / square_a, loads_a = (places_a + WORKGROUP - 1) / WORKGROUP * square_a;
const int places_b = BN * BK / PER_VECTOR / square_b, loads_b = (places_b + WORKGROUP - 1) / WORKGROUP * square_b;

// The place with this number: its p, counted from the step's beginning (x), and its row or column in the block (y). Of eight neighbours that are
// turned four lie below each other, so that their stores meet no bank of shared memory twice (with PAD).
// It is additive, since all sizes are powers of two: place(x + y) is place(x) + place(y).
ivec2 place(Side side, int number) {
  return side.square > 1 ? ivec2((number & 1) + number / 8 % (BK / span / 2) * 2, number / 2 % 4 + number / (4 * BK / span) * 4) * span
         : side.along_k  ? ivec2(number % (BK / span) * span, number / (BK / span))
                        : ivec2(number / side.vectors, number % side.vectors * span);
}
// Load t of an invocation, counted from its first one's place.
ivec2 load_at(Side side, int t) { return place(side, t / side.square * WORKGROUP) + ivec2(0, t % side.square); }

// Where load 0 goes in shared memory: an element, without WIDE a vector. One after the other except for PAD, where they come so.
int first_to(Side side, int lane) {
  ivec2 at = place(side, lane);
  return span == 1 && !side.along_k ? lane + in_shared(side, at.x) - at.x * side.vectors : in_shared(side, at.x) * span + at.y;
}

struct Source {
  int p, to;               // the first load's place in the step, and in shared memory: an element, without WIDE a vector
  int from;                // where it comes from: an element; of an indexed operand a p, of panels a vector
  uint last;               // the last one that may be read: unsigned, since a sum may be more than an int holds
  int lines[PER_VECTOR];   // of an indexed operand: where the rows (columns) of a load's elements begin, the same of all loads
};

// Where op(A) begins, op(B) likewise, and how far elements (of panels: vectors) lie apart along k and across it.
#if PANELS
int base_a(int z) { return panels_at.x + z * panels_at.z; }
int base_b(int z) { return panels_at.y + z * panels_at.w; }
ivec2 stride_a() { return ivec2(side_a.vectors, 1); }
ivec2 stride_b() { return ivec2(side_b.vectors, 1); }
#else
int base_a(int z) { return INDEXED_A != 0 ? 0 : a_row(z, 0); }
int base_b(int z) { return INDEXED_B != 0 ? 0 : b_column(z, 0); }
ivec2 stride_a() { return INDEXED_A != 0 ? ivec2(1, 0) : ivec2(a_at.z, a_at.y); }
ivec2 stride_b() { return INDEXED_B != 0 ? ivec2(1, 0) : ivec2(b_at.y, b_at.z); }
#endif

// The source of a block that begins with row (column) `first` of `count`, for the step that begins with p = begin.
Source source_of(Side side, int base, ivec2 stride, int first, int count, int lane, int begin, int end) {
  Source from;
  ivec2 at = place(side, lane);
  from.p = at.x;
  from.to = first_to(side, lane);
#if PANELS
  from.from = base + (first / (side.vectors * PER_VECTOR) * size.z + begin) * side.vectors + lane;
  from.last = uint(from.from + (end - begin - BK) * side.vectors);
#else
  from.from = base + (first + at.y) * stride.y + (begin + at.x) * stride.x;
  from.last = uint(base + (count - 1) * stride.y + (end - 1) * stride.x);
#endif
  return from;
}
int from_of(Source source, ivec2 load, ivec2 stride) { return source.from + load.y * stride.y + load.x * stride.x; }

RAW_A load_of_a(Source source, int t) {
  int from = from_of(source, load_at(side_a, t), stride_a());
#if PANELS
  return panel(min(source.from, int(source.last)) + t * WORKGROUP);
#elif WIDE
  return raw_a(int(min(uint(from), source.last) / uint(PER_VECTOR)));
#else
  ACC x[PER_VECTOR];
#if INDEXED_A
  int at = column_of_a(min(from, int(source.last)));
  for (int e = 0; e < PER_VECTOR; ++e) x[e] = load_a(source.lines[e] + at);
#else
  for (int e = 0; e < PER_VECTOR; ++e) x[e] = load_a(int(min(uint(from + e * side_a.vectors * a_at.y), source.last)));
#endif
  return vector_of(x);
#endif
}
RAW_B load_of_b(Source source, int t) {
  int from = from_of(source, load_at(side_b, t), stride_b());
#if PANELS
  return panel(min(source.from, int(source.last)) + t * WORKGROUP);
#elif WIDE
  return raw_b(int(min(uint(from), source.last) / uint(PER_VECTOR)));
#else
  ACC x[PER_VECTOR];
#if INDEXED_B
  int at = row_of_b(min(from, int(source.last)));
  for (int e = 0; e < PER_VECTOR; ++e) x[e] = load_b(source.lines[e] + at);
#else
  for (int e = 0; e < PER_VECTOR; ++e) x[e] = load_b(int(min(uint(from + e * side_b.vectors * b_at.z), source.last)));
#endif
  return vector_of(x);
#endif
}

void load_step(Source a, Source b, int lane, out RAW_A next_a[loads_a], out RAW_B next_b[loads_b]) {
  if (places_a >= WORKGROUP || lane < places_a) for (int t = 0; t < loads_a; ++t) next_a[t] = load_of_a(a, t);
  if (places_b >= WORKGROUP || lane < places_b) for (int t = 0; t < loads_b; ++t) next_b[t] = load_of_b(b, t);
}

// ---- Shared memory: BK rows of vectors for each operand, one or two blocks. Elements that are stored one
// by one go to arrays, since an invocation chooses which of a vector's they are. Most compilers make one load of a vector's.

const int shared_a = (1 + DOUBLE_BUFFER) * BK * (BM / PER_VECTOR + PAD), shared_b = (1 + DOUBLE_BUFFER) * BK * (BN / PER_VECTOR + PAD);
#define SPLIT_A (WIDE && A_ALONG_K && !TURN)
#if SPLIT_A
shared ACC As[shared_a][PER_VECTOR];
VECTOR vector_of_as(int at) { return vector_of(As[at]); }
#else
shared VECTOR As[shared_a];
VECTOR vector_of_as(int at) { return As[at]; }
#endif
#define SPLIT_B (WIDE && B_ALONG_K && !TURN)
#if SPLIT_B
shared ACC Bs[shared_b][PER_VECTOR];
VECTOR vector_of_bs(int at) { return vector_of(Bs[at]); }
#else
shared VECTOR Bs[shared_b];
VECTOR vector_of_bs(int at) { return Bs[at]; }
#endif

// The vector across k of element e of each of these, which lie along k.
VECTOR turned(VECTOR lines[PER_VECTOR], int e) {
  ACC x[PER_VECTOR];
  for (int i = 0; i < PER_VECTOR; ++i) x[i] = elements_of(lines[i])[e];
  return vector_of(x);
}

// Stores what an invocation has loaded, `taken` steps of k ago.
void keep_step_of_a(RAW_A loaded[loads_a], Source source, int taken, int lane, int phase) {
  int moved = taken * stride_a().x;
  if (places_a >= WORKGROUP || lane < places_a) for (int t = 0; t < loads_a; t += square_a) {
    ivec2 load = load_at(side_a, t);
    uint to = uint((phase * in_shared(side_a, BK) + in_shared(side_a, load.x)) * span + source.to + load.y);
    int at = int(to / uint(span));
#if WIDE && A_ALONG_K && TURN
    VECTOR lines[PER_VECTOR];
    for (int i = 0; i < PER_VECTOR; ++i) lines[i] = vector_a(loaded[t + i], from_of(source, load_at(side_a, t + i), stride_a()) - moved);
    for (int e = 0; e < PER_VECTOR; ++e) As[at + in_shared(side_a, e)] = turned(lines, e);
#elif SPLIT_A
    ACC x[PER_VECTOR] = elements_of(vector_a(loaded[t], from_of(source, load, stride_a()) - moved));
    for (int e = 0; e < PER_VECTOR; ++e) As[at + in_shared(side_a, e)][to % uint(span)] = x[e];
#else
    As[at] = vector_a(loaded[t], from_of(source, load, stride_a()) - moved);
#endif
  }
}
void keep_step_of_b(RAW_B loaded[loads_b], Source source, int taken, int lane, int phase) {
  int moved = taken * stride_b().x;
  if (places_b >= WORKGROUP || lane < places_b) for (int t = 0; t < loads_b; t += square_b) {
    ivec2 load = load_at(side_b, t);
    uint to = uint((phase * in_shared(side_b, BK) + in_shared(side_b, load.x)) * span + source.to + load.y);
    int at = int(to / uint(span));
#if WIDE && B_ALONG_K && TURN
    VECTOR lines[PER_VECTOR];
    for (int i = 0; i < PER_VECTOR; ++i) lines[i] = vector_b(loaded[t + i], from_of(source, load_at(side_b, t + i), stride_b()) - moved);
    for (int e = 0; e < PER_VECTOR; ++e) Bs[at + in_shared(side_b, e)] = turned(lines, e);
#elif SPLIT_B
    ACC x[PER_VECTOR] = elements_of(vector_b(loaded[t], from_of(source, load, stride_b()) - moved));
    for (int e = 0; e < PER_VECTOR; ++e) Bs[at + in_shared(side_b, e)][to % uint(span)] = x[e];
#else
    Bs[at] = vector_b(loaded[t], from_of(source, load, stride_b()) - moved);
#endif
  }
}

// ---- Who computes what

const int lanes_m = BM / TM, lanes_n = BN / TN;  // the invocations over the rows and the columns
const int tile_vectors = TN / PER_VECTOR;

// The first row and column of C that this workgroup computes. Workgroups that run at the same time share what they read of A and B if
// together they cover a square rather than a row of blocks: they go down strips of a few blocks of rows, column by column.
ivec2 block_of_workgroup() {
  const int strip = 8;
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
  const int edge = min(lanes_m, lanes_n);
  int within = lane % (edge * edge), beyond = lane / (edge * edge) * edge;
  ivec2 at = ivec2(even_bits(within >> 1), even_bits(within));
  return lanes_n > lanes_m ? at + ivec2(0, beyond) : at + ivec2(beyond, 0);
}

// The row (column) of the block that element e of vector v holds. Vectors that are loaded element by element hold rows that lie as far apart
// as the block has vectors: neighbours then load, and store in C, neighbouring elements.
int in_block(Side side, int v, int e) { return PANELS + WIDE > 0 ? v * PER_VECTOR + e : v + e * side.vectors; }

void main() {
  int layer = z0 + int(gl_WorkGroupID.z), z = item_of(layer);
  int lane = int(gl_LocalInvocationID.x);
  ivec2 block = block_of_workgroup(), at = place_of(lane);
  int row = block.x, column = block.y, lane_m = at.x, lane_n = at.y;

  PRECISE_SUMS RUNNING_VECTOR sum[TM][tile_vectors];
  for (int i = 0; i < TM; ++i)
    for (int j = 0; j < tile_vectors; ++j) sum[i][j] = ZERO_VECTOR;

  int begin = begin_k(layer), end = end_k(layer);
  Source a_from = source_of(side_a, base_a(z), stride_a(), row, size.x, lane, begin, end);
  Source b_from = source_of(side_b, base_b(z), stride_b(), column, size.y, lane, begin, end);
#if INDEXED_A
  for (int e = 0; e < PER_VECTOR; ++e) a_from.lines[e] = a_row(z, min(row + place(side_a, lane).y + e * side_a.vectors, size.x - 1));
#endif
#if INDEXED_B
  for (int e = 0; e < PER_VECTOR; ++e) b_from.lines[e] = b_column(z, min(column + place(side_b, lane).y + e * side_b.vectors, size.y - 1));
#endif
  RAW_A next_a[loads_a];
  RAW_B next_b[loads_b];

  // The first step handles the remainder of k, so that every later one is a full BK: nothing in the loop depends on where k ends. Panels
  // end with whole steps.
  int first = (end - begin - 1) % BK + 1, phase = 0;
  if (begin < end) {
    load_step(a_from, b_from, lane, next_a, next_b);
#if !PANELS
    // Beyond an edge of C any element will do: such sums are not stored. Products beyond the end of k are made zeros.
    for (int t = 0; t < loads_a; ++t) if (a_from.p + load_at(side_a, t).x >= first) next_a[t] = RAW_A(0);
    for (int t = 0; t < loads_b; ++t) if (b_from.p + load_at(side_b, t).x >= first) next_b[t] = RAW_B(0);
#endif
    a_from.from += first * stride_a().x;
    b_from.from += first * stride_b().x;
    keep_step_of_a(next_a, a_from, first, lane, phase);
    keep_step_of_b(next_b, b_from, first, lane, phase);
    memoryBarrierShared();
    barrier();
  }
  // Compilers cannot see that this is BK / STEP_K. They would write all turns out, and some of them move the loads behind the products then.
  int turns = max(BK / STEP_K, -size.z);
  for (int p = begin; p < end; p += BK) {
    // The loads come before the products and are waited for after them, so nothing between may depend on a condition. Nobody uses the
    // loads of the last turn.
    load_step(a_from, b_from, lane, next_a, next_b);
    a_from.from += BK * stride_a().x;
    b_from.from += BK * stride_b().x;
    int at_a = phase * in_shared(side_a, BK) + lane_m, at_b = phase * in_shared(side_b, BK) + lane_n;
#if STEP_K < BK
    for (int turn = 0; turn < turns; ++turn, at_a += in_shared(side_a, STEP_K), at_b += in_shared(side_b, STEP_K))
#endif
    {
      // Fragments. They have an index s because Mesa's compilers write a loop out where its variable is an array's index. Without it NVK's
      // and Adreno's keep this loop where its body is long, as for complex numbers: 56 % of multiply-adds in place of 83.
      ACC a[STEP_K][TM / PER_VECTOR][PER_VECTOR];
      VECTOR b[STEP_K][tile_vectors];
      for (int s = 0; s < STEP_K; ++s) {
        for (int i = 0; i < TM / PER_VECTOR; ++i) a[s][i] = elements_of(vector_of_as(at_a + in_shared(side_a, s) + i * lanes_m));
        for (int j = 0; j < tile_vectors; ++j) b[s][j] = vector_of_bs(at_b + in_shared(side_b, s) + j * lanes_n);
        for (int i = 0; i < TM; ++i)
          for (int j = 0; j < tile_vectors; ++j) ADD_SCALED(sum[i][j], a[s][i / PER_VECTOR][i % PER_VECTOR], b[s][j]);
      }
    }
#if DOUBLE_BUFFER
    phase = 1 - phase;  // all have read what was here two steps ago: they came to the last barrier since
#else
    barrier();  // all have read
#endif
    keep_step_of_a(next_a, a_from, BK, lane, phase);
    keep_step_of_b(next_b, b_from, BK, lane, phase);
    memoryBarrierShared();
    barrier();
  }

  // The usual end of a block that lies inside C, straight from the registers. Some compilers take 10 s for finish() written out for each
  // element, and 2 s for a condition for each element.
  if (has_plain && row + BM <= size.x && column + BN <= size.y && is_plain(z)) {
    for (int i = 0; i < TM; ++i)
      for (int j = 0; j < tile_vectors; ++j) {
        RUNNING x[PER_VECTOR] = elements_of(sum[i][j]);
        for (int e = 0; e < PER_VECTOR; ++e)
          finish_plain(layer, row + in_block(side_a, i / PER_VECTOR * lanes_m + lane_m, i % PER_VECTOR),
                       column + in_block(side_b, j * lanes_n + lane_n, e), x[e]);
      }
    return;
  }
  // The sums pass by one place, so that finish() is compiled once and no register is indexed at run time: that would take all of them to
  // memory, in the loop above too.
  int elements = max(PER_VECTOR, -size.z);  // compilers cannot see that this is PER_VECTOR: they would compile finish() as often
  for (int q = 0; q < ONE_BY_ONE(TM * tile_vectors); ++q) {
    RUNNING_VECTOR vector = sum[0][0];
    for (int i = 0; i < TM; ++i)
      for (int j = 0; j < tile_vectors; ++j)
        sum[i][j] = j + 1 < tile_vectors ? sum[i][min(j + 1, tile_vectors - 1)] : sum[min(i + 1, TM - 1)][0];
    int i = q / tile_vectors, j = q % tile_vectors;
    int r = row + in_block(side_a, i / PER_VECTOR * lanes_m + lane_m, i % PER_VECTOR);
    for (int e = 0; e < elements; ++e) {
      int c = column + in_block(side_b, j * lanes_n + lane_n, e);
      if (r < size.x && c < size.y) finish(layer, r, c, element(vector, e));
    }
  }
}
