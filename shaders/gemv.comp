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
// Of a quantised A the invocations take chunks of 32 codes or 64, which chunks.glsl reads and decodes, and what is left of k by elements. With
// CHUNKS 0 all of k is taken by elements, for compilers that keep no chunk in registers, and so are formats that have no chunks.
//
// PANELS 1, 2  B comes in panels, k-major, as pack.comp made them; a panel has TN columns, rounded up to whole vectors
//
// BROADCAST  With more than 1, each of so many invocations of a subgroup reads some of the vectors of B that the codes of a chunk need, and
//            they pass the elements on, as in register.comp; where B_ALONG_K is 1.
//
// SHARED_B   1: the workgroup brings rows of B to shared memory, see shared_columns.glsl, where what an invocation takes of them in a turn is
//            whole vectors, and there is room for a turn. Else, and of what is left of k behind the chunks, each reads what it needs.
//
// Macros    B_ALONG_K: 1 if A is quantised or an image, and B's columns are known to be successive elements that begin and end at
//           multiples of 16 bytes
//           BROADCAST: 1, or with a LANES_K of 1 and without PANELS a power of two up to 16 that is no more than WORKGROUP and than a
//           subgroup has; sums are of 32 bits
//           CHUNKS: 0 or 1; SHARED_B: 0, or with PANELS 0 and a BROADCAST of 1 also 1
//           TM: 1, 2, 4 or 8; TN: 1, 2, 4 or 8; LANES_K: a power of two up to WORKGROUP; WORKGROUP: a power of two from 4 to 256
// Shapes, grid, buffers, uniforms and the other macros: gemm.glsl

#ifndef TM
#define TM 4
#endif
#ifndef TN
#define TN 1
#endif
#ifndef LANES_K
#define LANES_K 1
#endif
#ifndef WORKGROUP
#define WORKGROUP 8
#endif
#if (TM != 1 && TM != 2 && TM != 4 && TM != 8) || (TN != 1 && TN != 2 && TN != 4 && TN != 8)
#error "gemv: TM and TN must be 1, 2, 4 or 8"
#endif
#if WORKGROUP < 4 || WORKGROUP > 256 || (WORKGROUP & (WORKGROUP - 1)) != 0
#error "gemv: WORKGROUP must be a power of two from 4 to 256"
#endif
#if LANES_K < 1 || LANES_K > WORKGROUP || (LANES_K & (LANES_K - 1)) != 0
#error "gemv: LANES_K must be a power of two up to WORKGROUP"
#endif

#ifndef B_ALONG_K
#define B_ALONG_K 0
#endif
#ifndef CHUNKS
#define CHUNKS 1
#endif
#if CHUNKS != 0 && CHUNKS != 1
#error "gemv: CHUNKS must be 0 or 1"
#endif
#ifndef BROADCAST
#define BROADCAST 1
#endif
#if BROADCAST < 1 || BROADCAST > 16 || (BROADCAST & (BROADCAST - 1)) != 0 || BROADCAST > WORKGROUP
#error "gemv: BROADCAST must be a power of two up to 16, and no more than WORKGROUP"
#endif
#if BROADCAST > 1
#if LANES_K > 1 || PANELS
#error "gemv: BROADCAST must be 1 with a LANES_K of more than 1, or with PANELS"
#endif
#extension GL_ARB_shader_ballot : require
#define FUSES
#endif
#ifndef SHARED_B
#define SHARED_B 0
#endif
#if SHARED_B < 0 || SHARED_B > 1 || SHARED_B && (PANELS || BROADCAST > 1)
#error "gemv: SHARED_B must be 0, or 1 without PANELS and with a BROADCAST of 1"
#endif

#define A_AS_IT_LIES
#define TAKES_QUADS_OF_B
#include "gemm.glsl"
#if BROADCAST > 1 && (SUM == F64 || SUM == C128)
#error "gemv: BROADCAST must be 1 for doubles"
#endif
#include "chunks.glsl"
#define BY_CHUNKS (QUANTIZED == 1 && HAS_CHUNKS && CHUNKS)

// A step along k: what 16 bytes of a row of A hold, or one element. Of narrow elements those are many, so B is read for a part of
// them at a time.
#define WIDE_ELEMENTS (WIDE > 0 && QUANTIZED != 1)
#if WIDE_ELEMENTS
#define STEP PER_16_BYTES
#define STEP_OF_A uvec4
#define LOAD_A(i) as[i] = BITS_A(a[i] + p);
#define ELEMENT_A(i, e) ELEMENT_OF_A(as[i], e)
#else
#define STEP 1
#define STEP_OF_A ACC
#define LOAD_A(i) as[i] = load_a(a[i] + column_of_a(p));
#define ELEMENT_A(i, e) as[i]
#endif
#if WIDE_ELEMENTS && WORD_SHIFT_A > 0
#define STEPS 4
#else
#define STEPS STEP
#endif
#define ROWS TM
#define VECTORS TN
#include "unroll.glsl"

#include "shared_columns.glsl"
// What an invocation takes along k in a turn.
#if BY_CHUNKS
#define OF_TURN (CHUNK * TURN_CHUNKS)
#else
#define OF_TURN STEP
#endif
#define IS_WHOLE (OF_TURN * TN % PER_VECTOR == 0 && WORKGROUP * PER_VECTOR % TN == 0)
#define SHARES (SHARED_B && IS_WHOLE && LANES_K * OF_TURN <= SHARED_K)
#define SHARES_CODES (SHARES && BY_CHUNKS)
#define SHARES_ELEMENTS (SHARES && !BY_CHUNKS)

layout(local_size_x = WORKGROUP) in;

const int turn = WORKGROUP / LANES_K;  // rows that the workgroup has at the same time
const int elements = TM * TN * turn;   // of C for each workgroup
#if PANELS
const int panel_vectors = (TN + PER_VECTOR - 1) / PER_VECTOR;
// Column j of this invocation's, of one p's vectors; a vector may hold more columns than TN.
#if TN < PER_VECTOR
#define OF_VECTORS(vectors, j) element(vectors[0], shift + (j))
#else
#define OF_VECTORS(vectors, j) ELEMENT_OF(vectors[(j) / PER_VECTOR], (j) % PER_VECTOR)
#endif
#endif

// The sums of lane 0 along k, column after column, then those of lane 1, and so on. The end runs through them by a run-time index, which
// would have most GPUs keep an array of the invocation's own in memory.
shared ACC sums[LANES_K * elements];

// These macros are parts of main(), and use its variables.
#define PLACE(i) a[i] = a_row(z, min(row + i * turn + lane_m, size.x - 1));
#define PLACE_B(i, j) b[j] = b_column(z, min(column + j, size.y - 1));
#define CLEAR(i, j) sum[i][j] = ZERO;
#define CLEAR_ROW(i) FOR_VECTORS(CLEAR, i)
#if PANELS
#define LOAD_VECTORS                                 \
  VECTOR vectors[STEPS][panel_vectors];                \
  for (int e = 0; e < STEPS; ++e)                   \
    for (int j = 0; j < panel_vectors; ++j) vectors[e][j] = panel(panels + (p + first + e) * panel_vectors + j);
#define LOAD_B(i, j, e) bs[j][e] = OF_VECTORS(vectors[e], j);
#elif SHARES_ELEMENTS
#define LOAD_VECTORS READ_COLUMNS(STEPS, p - from, first)
#define LOAD_B(i, j, e) bs[j][e] = OF_SHARED(vectors, (e) * TN + (j));
#elif READS_QUADS_OF_B && !(QUANTIZED == 1)
#define LOAD_VECTOR(i, j) vectors[j] = vector_of_read(TYPE_B, VECTOR_B((b[j] + p + first) / PER_VECTOR));
#define LOAD_VECTORS VECTOR vectors[TN]; FOR_VECTORS(LOAD_VECTOR, 0)
#define LOAD_B(i, j, e) bs[j][e] = conjugate_if(CONJUGATE_B, ELEMENT_OF(vectors[j], e));
#elif INDEXED_B
#define LOAD_VECTORS
#define LOAD_B(i, j, e) bs[j][e] = load_b(b[j] + row_of_b(p + first + (e)));
#else
#define LOAD_VECTORS int at = (p + first) * b_at.y;
#define LOAD_B(i, j, e) bs[j][e] = load_b(b[j] + at + (e) * b_at.y);
#endif
#define LOAD_COLUMN(i, j) FOR_STEPS(LOAD_B, i, j)
#define MULTIPLY(i, j, e) sum[i][j] = multiply_add(sum[i][j], ELEMENT_A(i, first + (e)), bs[j][e]);
#define MULTIPLY_ELEMENT(i, j) FOR_STEPS(MULTIPLY, i, j)
#if STEP == STEPS
#define MULTIPLY_ROW(i) LOAD_A(i) FOR_VECTORS(MULTIPLY_ELEMENT, i)
#else
#define MULTIPLY_ROW(i) FOR_VECTORS(MULTIPLY_ELEMENT, i)
#endif
#define PART(number)                                \
  {                                                 \
    const int first = (number) * STEPS;             \
    ACC bs[TN][STEPS];                              \
    LOAD_VECTORS                                     \
    FOR_VECTORS(LOAD_COLUMN, 0)                      \
    FOR_ROWS(MULTIPLY_ROW)                          \
  }
#if STEP > 2 * STEPS
#define PARTS_OF_STEP PART(0) PART(1) PART(2) PART(3)
#elif STEP > STEPS
#define PARTS_OF_STEP PART(0) PART(1)
#else
#define PARTS_OF_STEP PART(0)
#endif
#if STEP == STEPS
#define LOAD_STEP_OF_A
#else
#define LOAD_STEP_OF_A FOR_ROWS(LOAD_A)
#endif
// Begins a block for k from `begin` on: for each of the parts of it that are brought to shared memory one after the other, or for all of it. The
// part begins with `from`, and ends at `last`.
#define IN_PARTS(end) for (int from = begin, last = min(from + SHARED_K, end); from < end; from = last, last = min(from + SHARED_K, end))
#define AT_ONCE(end) int from = begin, last = end;
#if SHARES_CODES
#define CHUNKS_UP_TO IN_PARTS
#define BRING_WITH_CHUNKS BRING_COLUMNS
#else
#define CHUNKS_UP_TO AT_ONCE
#define BRING_WITH_CHUNKS(first, end)
#endif
#if SHARES_ELEMENTS
#define ELEMENTS_UP_TO IN_PARTS
#define BRING_WITH_ELEMENTS BRING_COLUMNS
#else
#define ELEMENTS_UP_TO AT_ONCE
#define BRING_WITH_ELEMENTS(first, end)
#endif
#if BY_CHUNKS
// The rows of one column of B that a quad needs.
#if PANELS
#define LOAD_VECTORS_OF_QUAD                          \
  VECTOR vectors[4][panel_vectors];                   \
  for (int e = 0; e < 4; ++e)                         \
    for (int j = 0; j < panel_vectors; ++j) vectors[e][j] = panel(panels + (first + CODE_AT(q, e)) * panel_vectors + j);
#define B_OF_CODE(j, e) OF_VECTORS(vectors[e], j)
#elif SHARES_CODES
// A quad is 4 successive codes, or every other one of 8.
#define QUAD_REACH (CODE_AT(0, 1) == 1 ? 4 : 8)
#define QUAD_BEGIN(q) (CODE_AT(q, 0) / QUAD_REACH * QUAD_REACH)
#define LOAD_VECTORS_OF_QUAD READ_COLUMNS(QUAD_REACH, chunk_begin(p) - from, number_in_turn * CHUNK + QUAD_BEGIN(q))
#define B_OF_CODE(j, e) OF_SHARED(vectors, (CODE_AT(q, e) - QUAD_BEGIN(q)) * TN + (j))
#else
#define LOAD_VECTORS_OF_QUAD
#define B_OF_CODE(j, e) load_b(b[j] + row_of_b(first + CODE_AT(q, e)))
#endif
#if READS_QUADS_OF_B && !SHARES_CODES
#if BROADCAST > 1
#define QUAD_OF_B(j, p) readInvocationARB(own[j][(p) / 4 / BROADCAST], uint((p) / 4 % BROADCAST))
#define OWN_READS ((REACH / 4 + BROADCAST - 1) / BROADCAST)
#define LOAD_OWN(i, j) \
  for (int s = 0; s < OWN_READS; ++s) \
    own[j][s] = vector_of_read(TYPE_B, VECTOR_B((b[j] + first >> 2) + s * BROADCAST + int(gl_SubGroupInvocationARB)));
#else
#define QUAD_OF_B(j, p) vector_of_read(TYPE_B, VECTOR_B((b[j] + first >> 2) + (p) / 4))
#endif
#if CODE_AT(0, 1) == 1
#define LOAD_QUAD_OF_B(i, j) xs[j] = QUAD_OF_B(j, CODE_AT(q, 0));
#else  // every other code of eight
#define LOAD_QUAD_OF_B(i, j)                                                           \
  {                                                                                    \
    vec4 low = QUAD_OF_B(j, q / 2 * 8), high = QUAD_OF_B(j, q / 2 * 8 + 4);            \
    xs[j] = q % 2 == 0 ? vec4(low.xz, high.xz) : vec4(low.yw, high.yw);                \
  }
#endif
#else
#define LOAD_QUAD_OF_B(i, j) xs[j] = vec4(B_OF_CODE(j, 0), B_OF_CODE(j, 1), B_OF_CODE(j, 2), B_OF_CODE(j, 3));
#endif
#define PLACE_ROW(i) rows[i] = row_of_codes(a[i]);
#define LOAD_CHUNK(i) chunks[i] = load_chunk(rows[i], p, number_in_turn);
#define CLEAR_GROUP(i, j) in_group[i][j] = 0.0;
#define CLEAR_GROUPS(i) FOR_VECTORS(CLEAR_GROUP, i)
#if HAS_OFFSETS
#define BEGIN_GROUP
#define END_GROUP
#define MULTIPLY_NUMBERS(i, j) sum[i][j] = multiply_add_quad(sum[i][j], numbers, xs[j]);
#else
#define BEGIN_GROUP if (q % GROUP_QUADS == 0) { FOR_ROWS(CLEAR_GROUPS) }
#define END_GROUP if (q % GROUP_QUADS == GROUP_QUADS - 1) { FOR_ROWS(ADD_GROUPS) }
#define MULTIPLY_NUMBERS(i, j) in_group[i][j] = multiply_add_quad(in_group[i][j], numbers, xs[j]);
#endif
#define MULTIPLY_QUAD(i) { vec4 numbers = numbers_of(chunks[i], q, QUAD_OF(chunks[i], q)); FOR_VECTORS(MULTIPLY_NUMBERS, i) }
#define ADD_GROUP(i, j) sum[i][j] += scaled(chunks[i], q / GROUP_QUADS, in_group[i][j]);
#define ADD_GROUPS(i) FOR_VECTORS(ADD_GROUP, i)
#if BROADCAST > 1 && READS_QUADS_OF_B
#define READ_OWN vec4 own[TN][OWN_READS]; FOR_VECTORS(LOAD_OWN, 0)
#else
#define READ_OWN
#endif
#define QUAD(number)                                                         \
  {                                                                          \
    const int q = number;                                                    \
    vec4 xs[TN];                                                             \
    LOAD_VECTORS_OF_QUAD                                                     \
    FOR_VECTORS(LOAD_QUAD_OF_B, 0)                                           \
    BEGIN_GROUP                                                              \
    FOR_ROWS(MULTIPLY_QUAD)                                                  \
    END_GROUP                                                                \
  }
#if QUADS == 16
#define QUADS_FROM_8 QUAD(8) QUAD(9) QUAD(10) QUAD(11) QUAD(12) QUAD(13) QUAD(14) QUAD(15)
#else
#define QUADS_FROM_8
#endif
#define CHUNK_OF_TURN(number)                                                \
  {                                                                          \
    const int number_in_turn = number;                                       \
    int first = chunk_begin(p) + number_in_turn * CHUNK;                     \
    Chunk chunks[TM];                                                        \
    FOR_ROWS(LOAD_CHUNK)                                                     \
    READ_OWN                                                                 \
    float in_group[TM][TN];                                                  \
    QUAD(0) QUAD(1) QUAD(2) QUAD(3) QUAD(4) QUAD(5) QUAD(6) QUAD(7) QUADS_FROM_8 \
  }
#if TURN_CHUNKS > 1
#define CHUNKS_OF_TURN CHUNK_OF_TURN(0) CHUNK_OF_TURN(1) CHUNK_OF_TURN(2) CHUNK_OF_TURN(3)
#else
#define CHUNKS_OF_TURN CHUNK_OF_TURN(0)
#endif
float multiply_add_quad(float sum, vec4 x, vec4 y) {
  return multiply_add(multiply_add(multiply_add(multiply_add(sum, x[0], y[0]), x[1], y[1]), x[2], y[2]), x[3], y[3]);
}
#endif
#define COPY(i, j) sums[lane_k * elements + ((j) * TM + (i)) * turn + lane_m] = sum[i][j];
#define COPY_ROW(i) FOR_VECTORS(COPY, i)

void main() {
  int layer = z0 + int(gl_WorkGroupID.z);
  int z = ITEM(layer);
  int lane = int(gl_LocalInvocationID.x);
  bool along_k = WIDE > 0 || a_at.z == 1;
  int lane_k = along_k ? lane % LANES_K : lane / turn;
  int lane_m = along_k ? lane / LANES_K : lane % turn;
  int row = y0 + int(gl_WorkGroupID.y) * (TM * turn);
  int column = x0 + int(gl_WorkGroupID.x) * TN;

  int a[TM];
  FOR_ROWS(PLACE)
#if PANELS
  int panels = panels_at.y + z * panels_at.w + column / (panel_vectors * PER_VECTOR) * size.z * panel_vectors;
  int shift = column % (panel_vectors * PER_VECTOR);
#else
  int b[TN];
  FOR_VECTORS(PLACE_B, 0)
#endif
#if SHARES
  PLACE_COLUMNS
#endif

  ACC sum[TM][TN];
  FOR_ROWS(CLEAR_ROW)
  int begin = BEGIN_K(layer), end = END_K(layer);
#if BY_CHUNKS
  Row rows[TM];
  FOR_ROWS(PLACE_ROW)
  int whole = has_chunks() ? begin + (end - begin) / SPAN * SPAN : begin;
  {
    CHUNKS_UP_TO(whole) {
      BRING_WITH_CHUNKS(from, whole)
      for (int p = from + lane_k * OF_TURN; p < last; p += LANES_K * OF_TURN) {
        CHUNKS_OF_TURN
      }
    }
  }
  begin = whole;
#endif
  // Of WIDE reads, parts and windows of k are multiples of 16 bytes.
  ELEMENTS_UP_TO(end) {
    BRING_WITH_ELEMENTS(from, end)
    for (int p = from + lane_k * STEP; p < last; p += LANES_K * STEP) {
      STEP_OF_A as[TM];
      LOAD_STEP_OF_A
      PARTS_OF_STEP
    }
  }

  FOR_ROWS(COPY_ROW)
#if LANES_K > 1
  for (int lanes = LANES_K / 2; lanes > 0; lanes /= 2) {
    memoryBarrierShared();
    barrier();
    for (int q = lane; q < lanes * elements; q += WORKGROUP) sums[q] += sums[q + lanes * elements];
  }
  memoryBarrierShared();
  barrier();
#endif
#if TM * TN <= LANES_K  // one element at most for each invocation
  int q = lane;
  if (q < elements) {
#else
  for (int q = lane; q < elements; q += WORKGROUP) {
#endif
    int r = row + q % (TM * turn), c = column + q / (TM * turn);
    if (r < size.x && c < size.y) finish(layer, r, c, sums[q]);
  }
}
