#version 430 core
#extension GL_GOOGLE_include_directive : require
// gemv: C = act(alpha op(A) op(B) + beta C + D + bias) where B has few columns: A is read once, and nothing waits for anything else.
// (Where C has few rows, the planner hands over the transposed product.)
//
// Each invocation computes TM rows and TN columns of C, or LANES_K invocations compute them together: they take turns along k and add up
// through shared memory. Neighbouring invocations read neighbouring elements of A. Where A's rows are contiguous, these are elements of
// one row, and WIDE reads 16 bytes of the row at a time. Else they are elements of neighbouring rows: the rows of one invocation lie as far
// apart as the workgroup has rows in a turn.
//
// A quantised A is taken by chunks of 32 or 64 codes, which quantization.glsl reads and decodes, and the remainder of k by elements. With CHUNKS
// 0 all of k is taken by elements: some compilers keep no chunk in registers.
//
// PANELS 1, 2  B comes in panels, k-major, as pack.comp made them; a panel has TN columns, rounded up to whole vectors
//
// BROADCAST  With more than 1, each of so many invocations of a subgroup reads some of the vectors of B that the codes of a chunk need, and
//            they pass the elements on, as in register.comp; where B_ALONG_K is 1.
//
// SHARED_B   1: the workgroup brings rows of B to shared memory, see shared_columns.glsl, where what an invocation takes of them in a turn is
//            whole vectors, and there is room for a turn. Else, and in the remainder of k behind the chunks, each reads what it needs.
//
// Macros    B_ALONG_K: 1 if A is quantised or WIDE, and B's columns are known to be successive elements that begin and end at
//           multiples of 16 bytes
//           BROADCAST: 1, or with a LANES_K of 1 and without PANELS a power of two up to 16 that is no more than WORKGROUP and than a
//           subgroup has; sums are of 32 bits
//           CHUNKS: 0 or 1; SHARED_B: 0, or with PANELS 0 and a BROADCAST of 1 also 1
//           TM: 1, 2, 4 or 8; TN: 1, 2, 4 or 8; LANES_K: a power of two up to WORKGROUP; WORKGROUP: a power of two from 4 to 256
// Shapes, grid, buffers, uniforms and the other macros: gemm.glsl

#if WIDE
#define A_READS LINES
#else
#define A_READS ELEMENTS
#endif
#if PANELS
#define B_READS NOTHING
#elif B_ALONG_K
#define B_READS VECTORS
#else
#define B_READS ELEMENTS
#endif
#define B_IMAGE (WIDE == 2)
#if QUANTIZED == 1 && CHUNKS && CHUNK_CODES > 0
#define CHUNK CHUNK_CODES
#endif
#include "gemm.glsl"

// NVIDIA's compiler writes too few loops out by itself: a few columns took up to 1.25 times as long. Of codes it writes enough.
#if SHARED_B && !QUANTIZED
#pragma optionNV(unroll all)
#endif

// A step along k: what 16 bytes of a row of A hold, or one element. READ_K of them are multiplied at a time: B is read for so many.
#define BY_LINES (WIDE > 0 && QUANTIZED != 1)
#if !BY_LINES
#define STEP 1
#define READ_K 1
#else
#define STEP (PER_VECTOR << WORD_SHIFT_A)
#define READ_K PER_VECTOR
#endif
#define SUM_VECTORS (WORKGROUP * TM * TN / PER_VECTOR)
#include "shared_columns.glsl"
// What an invocation takes along k in a turn, and the successive rows of B that it then reads together.
#ifdef CHUNK
// With blocks that are read by vectors and are no multiple of a word, 4 chunks are a turn: 4 blocks are a multiple of 8 bytes, so that
// compilers know where in a vector each of them lies.
#if BLOCK_CODES == 32 && CODES_AT_ONCE > 1 && BLOCK_BYTES % 2 == 0
#define OF_TURN (4 * CHUNK)
#else
#define OF_TURN CHUNK
#endif
const int span = reach * (OF_TURN / CHUNK);
// A quad of codes, q, is 4 successive ones, or every other one of 8. It needs so many rows of B, from quad_begin(q) of its chunk on.
const int together = has_pairs ? 8 : 4;
int quad_begin(int q) { return code_at(q, 0) / together * together; }
#else
#define OF_TURN STEP
const int together = READ_K;
#endif
#define SHARES (SHARED_B && OF_TURN * TN % PER_VECTOR == 0 && WORKGROUP * PER_VECTOR % TN == 0 && LANES_K * OF_TURN <= SHARED_K)

layout(local_size_x = WORKGROUP) in;

const int turn = WORKGROUP / LANES_K;  // rows that the workgroup has at the same time
const int elements = TM * TN * turn;   // of C for each workgroup

// The sums of lane 0 along k, column after column, then those of lane 1, and so on. Where an invocation has whole vectors of them, they take the
// place of the shared columns. The end runs through them by a run-time index, which would have most GPUs keep an array of the invocation's own
// in memory.
#if SHARED_B && TM * TN % PER_VECTOR == 0
const int at_once = PER_VECTOR;
#define VECTOR_OF_SUMS(x) vector_of(x)
#define SUM_OF_VECTOR(vector, e) element(vector, e)
#define sums shared_columns
#else
const int at_once = 1;
#define VECTOR_OF_SUMS(x) x[0]
#define SUM_OF_VECTOR(vector, e) vector
shared ACC sums[WORKGROUP * TM * TN];
#endif

// This invocation's columns of B: where they begin; or of panels where they do, and the first column's place in a vector.
struct Columns {
  int b[TN];
  int panels, shift;
};
#if PANELS
const int panel_vectors = (TN + PER_VECTOR - 1) / PER_VECTOR;
// Row p of the columns.
ACC[TN] row_of_panels(Columns columns, int p) {
  ACC x[TN];
  for (int v = 0; v < panel_vectors; ++v) {
    VECTOR read = panel(columns.panels + p * panel_vectors + v);
#if TN < PER_VECTOR  // a vector holds more columns
    for (int j = 0; j < TN; ++j) x[j] = element(read, columns.shift + j);
#else
    ACC y[PER_VECTOR] = elements_of(read);
    for (int e = 0; e < PER_VECTOR; ++e) x[v * PER_VECTOR + e] = y[e];
#endif
  }
  return x;
}
#endif
#if SHARES
// Rows of the columns in shared memory that are read together, column after column: from row `first`, a constant, of the ones that begin with `base`.
ACC[together * TN] shared_rows(int base, int first) {
  ACC x[together * TN];
  for (int v = 0; v < together * TN / PER_VECTOR; ++v) {
    ACC y[PER_VECTOR] = elements_of(shared_columns[PLACE_OF(base * TN / PER_VECTOR) + PLACE_OF(first * TN / PER_VECTOR + v)]);
    for (int e = 0; e < PER_VECTOR; ++e) x[v * PER_VECTOR + e] = y[e];
  }
  return x;
}
#endif

// The READ_K rows of B that belong to read `read`, a constant, of the step that begins with p. `base`: p's row in shared memory.
ACC[TN * READ_K] rows_of_b(Columns columns, int p, int read, int base) {
  ACC x[TN * READ_K];
#if PANELS
  for (int e = 0; e < READ_K; ++e) {
    ACC row[TN] = row_of_panels(columns, p + read * READ_K + e);
    for (int j = 0; j < TN; ++j) x[j * READ_K + e] = row[j];
  }
#elif SHARES && !defined CHUNK  // behind chunks each reads what is left of k by itself
  ACC rows[together * TN] = shared_rows(base, read * READ_K);
  for (int j = 0; j < TN; ++j)
    for (int e = 0; e < READ_K; ++e) x[j * READ_K + e] = rows[e * TN + j];
#elif B_READS == VECTORS && QUANTIZED != 1
  for (int j = 0; j < TN; ++j) {
    ACC y[PER_VECTOR] = elements_of(vector_b(raw_b((columns.b[j] + p + read * READ_K) / PER_VECTOR), 0));
    for (int e = 0; e < READ_K; ++e) x[j * READ_K + e] = conjugate_if(CONJUGATE_B, y[e]);
  }
#elif INDEXED_B
  for (int j = 0; j < TN; ++j)
    for (int e = 0; e < READ_K; ++e) x[j * READ_K + e] = load_b(columns.b[j] + row_of_b(p + read * READ_K + e));
#else
  int at = (p + read * READ_K) * b_at.y;
  for (int j = 0; j < TN; ++j)
    for (int e = 0; e < READ_K; ++e) x[j * READ_K + e] = load_b(columns.b[j] + at + e * b_at.y);
#endif
  return x;
}

// The sums of this invocation. They are cleared before what adds to them, also in the order of this text: Mesa warns of others.
ACC sum[TM][TN];
void clear_sums() {
  for (int i = 0; i < TM; ++i)
    for (int j = 0; j < TN; ++j) sum[i][j] = ACC(0);
}

#ifdef CHUNK
// One chunk of each row, and the products of its groups.
Chunk chunks[TM];
float in_group[TM][TN];
#if BROADCAST > 1 && B_READS == VECTORS
const int own_reads = (reach / 4 + BROADCAST - 1) / BROADCAST;
vec4 own[TN][own_reads];  // what an invocation reads of the vectors of B for a chunk
vec4 vector_of_column(Columns columns, int j, int first, int v) { return readInvocationARB(own[j][v / BROADCAST], uint(v % BROADCAST)); }
#elif B_READS == VECTORS
vec4 vector_of_column(Columns columns, int j, int first, int v) { return vector_b(raw_b((columns.b[j] + first >> 2) + v), 0); }
#endif

float multiply_add_quad(float sum, vec4 x, float y[4]) {
  return multiply_add(multiply_add(multiply_add(multiply_add(sum, x.x, y[0]), x.y, y[1]), x.z, y[2]), x.w, y[3]);
}

// Quad q, a constant, of chunk `number`, a constant, of the turn that begins with p. `from`: the first row in shared memory.
void multiply_quad(int q, int number, int p, Columns columns, int from) {
  int first = chunk_begin(p) + number * CHUNK;
  float x[TN][4];
#if SHARES
  ACC rows[together * TN] = shared_rows(chunk_begin(p) - from, number * CHUNK + quad_begin(q));
  for (int j = 0; j < TN; ++j)
    for (int e = 0; e < 4; ++e) x[j][e] = rows[(code_at(q, e) - quad_begin(q)) * TN + j];
#elif PANELS
  for (int e = 0; e < 4; ++e) {
    ACC row[TN] = row_of_panels(columns, first + code_at(q, e));
    for (int j = 0; j < TN; ++j) x[j][e] = row[j];
  }
#elif B_READS == VECTORS
  for (int j = 0; j < TN; ++j) {
    float rows[together];
    for (int v = 0; v < together / 4; ++v) {
      float y[4] = elements_of(vector_of_column(columns, j, first, quad_begin(q) / 4 + v));
      for (int e = 0; e < 4; ++e) rows[4 * v + e] = y[e];
    }
    for (int e = 0; e < 4; ++e) x[j][e] = rows[code_at(q, e) - quad_begin(q)];
  }
#else
  for (int j = 0; j < TN; ++j)
    for (int e = 0; e < 4; ++e) x[j][e] = load_b(columns.b[j] + row_of_b(first + code_at(q, e)));
#endif
  for (int i = 0; i < TM; ++i) {
    vec4 numbers = numbers_of(chunks[i], q, quad_of(chunks[i], q));
    for (int j = 0; j < TN; ++j) {
      if (has_offsets) {
        sum[i][j] = multiply_add_quad(sum[i][j], numbers, x[j]);
      } else {
        if (q % group_quads == 0) in_group[i][j] = 0.0;
        in_group[i][j] = multiply_add_quad(in_group[i][j], numbers, x[j]);
        if (q % group_quads == group_quads - 1) sum[i][j] += scaled(chunks[i], q / group_quads, in_group[i][j]);
      }
    }
  }
}

void multiply_chunk(int number, int p, Row rows[TM], Columns columns, int from) {
  for (int i = 0; i < TM; ++i) chunks[i] = load_chunk(rows[i], p, number);
#if BROADCAST > 1 && B_READS == VECTORS
  for (int j = 0; j < TN; ++j)
    for (int s = 0; s < own_reads; ++s)
      own[j][s] = vector_b(raw_b((columns.b[j] + chunk_begin(p) + number * CHUNK >> 2) + s * BROADCAST + int(gl_SubGroupInvocationARB)), 0);
#endif
  // Written out: which bits are a quad's depends on its number. As a loop, Mesa's compilers keep the chunks in memory.
#define QUAD(q) multiply_quad(q, number, p, columns, from);
  QUAD(0) QUAD(1) QUAD(2) QUAD(3) QUAD(4) QUAD(5) QUAD(6) QUAD(7)
  if (quads == 16) { QUAD(8) QUAD(9) QUAD(10) QUAD(11) QUAD(12) QUAD(13) QUAD(14) QUAD(15) }
}

// Adds up the products of the elements of k from `from` to `last` that are this lane's: in chunks, of rows of codes.
void multiply_rows(Row rows[TM], Columns columns, int lane_k, int from, int last) {
  for (int p = from + lane_k * OF_TURN; p < last; p += LANES_K * OF_TURN) {
    multiply_chunk(0, p, rows, columns, from);
    if (OF_TURN > CHUNK) {
      multiply_chunk(1, p, rows, columns, from);
      multiply_chunk(2, p, rows, columns, from);
      multiply_chunk(3, p, rows, columns, from);
    }
  }
}
#endif

// The same in steps, of rows that begin there. With WIDE, every part of k is a multiple of 16 bytes.
void multiply_rows(int a[TM], Columns columns, int lane_k, int from, int last) {
  for (int p = from + lane_k * STEP; p < last; p += LANES_K * STEP) {
#if STEP > READ_K
    uvec4 as[TM];
    for (int i = 0; i < TM; ++i) as[i] = bits_a(a[i] + p);
#endif
    for (int read = 0; read < STEP / READ_K; ++read) {
      ACC b[TN * READ_K] = rows_of_b(columns, p, read, p - from);
      for (int i = 0; i < TM; ++i) {
#if STEP > READ_K
        ACC x[READ_K] = elements_of(part_of_a(as[i], read));
#elif BY_LINES
        ACC x[READ_K] = elements_of(part_of_a(bits_a(a[i] + p), 0));
#endif
#if BY_LINES
        for (int e = 0; e < READ_K; ++e) x[e] = conjugate_if(CONJUGATE_A, x[e]);
#else
        ACC x[1] = ACC[1](load_a(a[i] + column_of_a(p)));
#endif
        for (int j = 0; j < TN; ++j)
          for (int e = 0; e < READ_K; ++e) sum[i][j] = multiply_add(sum[i][j], x[e], b[j * READ_K + e]);
      }
    }
  }
}

// Element q of the workgroup's, whose first row and column these are.
void finish_element(int q, int layer, int row, int column) {
  int s = q / turn, r = row + s % TM * turn + q % turn, c = column + s / TM;
  if (r < size.x && c < size.y) finish(layer, r, c, SUM_OF_VECTOR(sums[s / at_once * turn + q % turn], s % at_once));
}

void main() {
  int layer = z0 + int(gl_WorkGroupID.z);
  int z = item_of(layer);
  int lane = int(gl_LocalInvocationID.x);
  bool along_k = WIDE > 0 || a_at.z == 1;
  int lane_k = along_k ? lane % LANES_K : lane / turn;
  int lane_m = along_k ? lane / LANES_K : lane % turn;
  int row = y0 + int(gl_WorkGroupID.y) * (TM * turn);
  int column = x0 + int(gl_WorkGroupID.x) * TN;

  int a[TM];
  for (int i = 0; i < TM; ++i) a[i] = a_row(z, min(row + i * turn + lane_m, size.x - 1));
  Columns columns;
#if PANELS
  columns.panels = panels_at.y + z * panels_at.w + column / (panel_vectors * PER_VECTOR) * size.z * panel_vectors;
  columns.shift = column % (panel_vectors * PER_VECTOR);
#else
  for (int j = 0; j < TN; ++j) columns.b[j] = b_column(z, min(column + j, size.y - 1));
#endif
#if SHARES
  int brought[PER_VECTOR] = columns_to_bring(z, column, lane);
#endif

  clear_sums();
  int begin = begin_k(layer), end = end_k(layer);
#ifdef CHUNK
  hidden = uint(min(a[0], 0));
  Row rows[TM];
  for (int i = 0; i < TM; ++i) rows[i] = row_of_codes(a[i]);
  int whole = has_chunks() ? begin + (end - begin) / span * span : begin;
#else
  int rows[TM] = a, whole = end;
#endif
#if SHARES
  for (int from = begin, last = min(from + SHARED_K, whole); from < whole; from = last, last = min(from + SHARED_K, whole)) {
    bring_columns(brought, lane, from, whole);
    multiply_rows(rows, columns, lane_k, from, last);
  }
#else
  multiply_rows(rows, columns, lane_k, begin, whole);
#endif
#ifdef CHUNK
  multiply_rows(a, columns, lane_k, whole, end);
#endif

#if SHARED_B
  barrier();  // all have read the columns
#endif
  const int own = TM * TN / at_once, of_lane = own * turn;
  for (int v = 0; v < own; ++v) {
    ACC x[at_once];
    for (int e = 0; e < at_once; ++e) x[e] = sum[(v * at_once + e) % TM][(v * at_once + e) / TM];
    sums[lane_k * of_lane + v * turn + lane_m] = VECTOR_OF_SUMS(x);
  }
#if LANES_K > 1
  for (int lanes = LANES_K / 2; lanes > 0; lanes /= 2) {
    memoryBarrierShared();
    barrier();
    for (int q = lane; q < lanes * of_lane; q += WORKGROUP) sums[q] += sums[q + lanes * of_lane];
  }
  memoryBarrierShared();
  barrier();
#endif
#if TM * TN <= LANES_K  // one element at most for each invocation
  if (lane < elements) finish_element(lane, layer, row, column);
#else
  for (int q = lane; q < elements; q += WORKGROUP) finish_element(q, layer, row, column);
#endif
}
