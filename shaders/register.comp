#version 430 core
#extension GL_GOOGLE_include_directive : require
// register: C = act(alpha op(A) op(B) + beta C + D + bias) from registers alone: no shared memory, no barrier. For drivers that
// compute on a CPU, where those cost most, and for GPUs whose shared memory is no faster than their memory.
//
// Each invocation computes a tile of TM x TN elements of C. The invocations beside it share its TM rows. Its TN columns lie in vectors of
// 16 bytes, each WORKGROUP vectors from the next, so that the invocations beside each other read one vector after the other. Along k it
// takes STEP_K products at a time.
//
// PANELS 0  reads A and B as they lie; rows and columns beyond the edge repeat the last one and are not stored
// PANELS 1, 2  reads what pack.comp made: A in panels of TM * WORKGROUP_Y rows, B in panels of TN * WORKGROUP columns, k-major, with
//              zeros beyond the edge, so that the loop has no condition; k is then a multiple of STEP_K
//
// BROADCAST  With more than 1 and panels, each of so many invocations of a subgroup reads some of the vectors of A, and they pass their
//            elements on. A CPU's driver then reads a vector for one instruction of each of its elements, and else eight times.
//
// Macros    TM: a multiple of 4 up to 32; TN: 4, 8 or 16, or 2 where a vector holds no more; STEP_K: 1, 2, 4 or 8; WORKGROUP: the
//           invocations beside each other, a power of two from 4 to 128; WORKGROUP_Y: those below each other, 1, 2, 4 or 8, for
//           GPUs more than 1. BROADCAST: 1, or with PANELS and a WORKGROUP_Y of 1 a power of two up to 16 that is no more than WORKGROUP
//           and than a subgroup has; elements are of 32 bits
// Shapes, grid, buffers, uniforms and the other macros: gemm.glsl

#ifndef TM
#define TM 12
#endif
#ifndef TN
#define TN 8
#endif
#ifndef STEP_K
#define STEP_K 4
#endif
#ifndef WORKGROUP
#define WORKGROUP 8
#endif
#ifndef WORKGROUP_Y
#define WORKGROUP_Y 1
#endif
#if TM < 4 || TM > 32 || TM % 4 != 0
#error "register: TM must be a multiple of 4 up to 32"
#endif
#if TN != 2 && TN != 4 && TN != 8 && TN != 16
#error "register: TN must be 2, 4, 8 or 16"
#endif
#if STEP_K != 1 && STEP_K != 2 && STEP_K != 4 && STEP_K != 8
#error "register: STEP_K must be 1, 2, 4 or 8"
#endif
#if WORKGROUP < 4 || WORKGROUP > 128 || (WORKGROUP & (WORKGROUP - 1)) != 0
#error "register: WORKGROUP must be a power of two from 4 to 128"
#endif
#if WORKGROUP_Y != 1 && WORKGROUP_Y != 2 && WORKGROUP_Y != 4 && WORKGROUP_Y != 8
#error "register: WORKGROUP_Y must be 1, 2, 4 or 8"
#endif

#ifndef BROADCAST
#define BROADCAST 1
#endif
#if BROADCAST < 1 || BROADCAST > 16 || (BROADCAST & (BROADCAST - 1)) != 0 || BROADCAST > WORKGROUP
#error "register: BROADCAST must be a power of two up to 16, and no more than WORKGROUP"
#endif
#if BROADCAST > 1
#if !PANELS || WORKGROUP_Y > 1
#error "register: BROADCAST must be 1 without PANELS, or with a WORKGROUP_Y of more than 1"
#endif
#extension GL_ARB_shader_ballot : require
#define FUSES
#endif

#include "gemm.glsl"
#if BROADCAST > 1 && (SUM == F64 || SUM == C128)
#error "register: BROADCAST must be 1 for doubles"
#endif
#if TN < PER_VECTOR
#error "register: TN must be what a vector holds, or more"
#endif

#define ROWS TM
#define VECTORS (TN / PER_VECTOR)
#define STEPS STEP_K
#include "unroll.glsl"

layout(local_size_x = WORKGROUP, local_size_y = WORKGROUP_Y) in;

#define PITCH_A (TM * WORKGROUP_Y / PER_VECTOR)  // the vectors of A of a step
#define PLACE(i, s) ((s) * PITCH_A + (i) / PER_VECTOR)
#define READS ((STEP_K * TM / PER_VECTOR + BROADCAST - 1) / BROADCAST)
// These are parts of main() and use its variables.
#define LOAD_OWN(i) if ((i) < READS) own[min(i, READS - 1)] = panel(a_at_p + (i) * BROADCAST + int(gl_SubGroupInvocationARB));
#if BROADCAST > 1
#define LOADED(at) readInvocationARB(own[(at) / BROADCAST], uint((at) % BROADCAST))
#else
#define LOADED(at) panel(a_at_p + (at))
#endif
#define LOAD_A(i, j, s) if ((i) % PER_VECTOR == 0) a[s][(i) / PER_VECTOR] = LOADED(PLACE(i, s));
#define COPY_ONE(i, j, e) sums[(i) * TN + (j) * PER_VECTOR + (e)] = KEPT(ELEMENT_OF_SUM(sum[i][j], e));

// What an array that is indexed at run time has of a sum. Of doubles it has the bits: NVIDIA's compiler (580.159) gives other elements of
// such an array of doubles.
#if SUM == C128
#define KEPT_SUM uvec4
#define KEPT(sum) uvec4(unpackDouble2x32((sum).x), unpackDouble2x32((sum).y))
#define SUM_OF(kept) dvec2(packDouble2x32((kept).xy), packDouble2x32((kept).zw))
#elif SUM == F64 || PRECISION == 3
#define KEPT_SUM uvec2
#define KEPT(sum) unpackDouble2x32(sum)
#define SUM_OF(kept) packDouble2x32(kept)
#else
#define KEPT_SUM RUNNING
#define KEPT(sum) sum
#define SUM_OF(kept) kept
#endif

void main() {
  int layer = z0 + int(gl_WorkGroupID.z);
  int z = ITEM(layer);
  int lane = int(gl_LocalInvocationID.x);
  int first_row = y0 + int(gl_WorkGroupID.y) * (TM * WORKGROUP_Y);
  int row = first_row + int(gl_LocalInvocationID.y) * TM;
  int column = x0 + int(gl_WorkGroupID.x) * (TN * WORKGROUP);
#define COLUMN(j) (column + (j) * (PER_VECTOR * WORKGROUP) + lane * PER_VECTOR)

  PRECISE RUNNING_VECTOR sum[TM][VECTORS];
#define CLEAR(i, j) sum[i][j] = ZERO_VECTOR;
#define CLEAR_ROW(i) FOR_VECTORS(CLEAR, i)
  FOR_ROWS(CLEAR_ROW)

#if PANELS
  int a_at_p = panels_at.x + z * panels_at.z + (first_row / (TM * WORKGROUP_Y) * size.z + BEGIN_K(layer)) * PITCH_A +
               int(gl_LocalInvocationID.y) * (TM / PER_VECTOR);
  int b_at_p = panels_at.y + z * panels_at.w + (column / (TN * WORKGROUP) * size.z + BEGIN_K(layer)) * (VECTORS * WORKGROUP) + lane;
  for (int p = BEGIN_K(layer); p < END_K(layer); p += STEP_K) {
    VECTOR a[STEP_K][TM / PER_VECTOR], b[STEP_K][VECTORS];
#if BROADCAST > 1
    VECTOR own[READS];
    FOR_ROWS(LOAD_OWN)
#endif
#define LOAD_ROW(i) FOR_STEPS(LOAD_A, i, 0)
    FOR_ROWS(LOAD_ROW)
#define LOAD_B(i, j, s) b[s][j] = panel(b_at_p + ((s) * VECTORS + j) * WORKGROUP);
#define LOAD_VECTOR(i, j) FOR_STEPS(LOAD_B, i, j)
    FOR_VECTORS(LOAD_VECTOR, 0)
#define MULTIPLY(i, j, s) ADD_SCALED(sum[i][j], a[s][(i) / PER_VECTOR], (i) % PER_VECTOR, b[s][j]);
#define MULTIPLY_VECTOR(i, j) FOR_STEPS(MULTIPLY, i, j)
#define MULTIPLY_ROW(i) FOR_VECTORS(MULTIPLY_VECTOR, i)
    FOR_ROWS(MULTIPLY_ROW)
    a_at_p += STEP_K * PITCH_A;
    b_at_p += STEP_K * VECTORS * WORKGROUP;
  }
#else
  int a[TM], b[TN];
  for (int i = 0; i < TM; ++i) a[i] = a_row(z, min(row + i, size.x - 1));
  for (int j = 0; j < TN; ++j) b[j] = b_column(z, min(COLUMN(j / PER_VECTOR) + j % PER_VECTOR, size.y - 1));
  for (int p = BEGIN_K(layer); p < END_K(layer); ++p) {
    VECTOR bs[VECTORS];
#define LOAD(e) load_b(b[at + e] + row_of_b(p))
    for (int j = 0; j < VECTORS; ++j) {
      int at = j * PER_VECTOR;
      bs[j] = VECTOR_OF(LOAD);
    }
#define MULTIPLY(i, j) ADD_SCALED_BY(sum[i][j], as, bs[j]);
#define MULTIPLY_ROW(i) { ACC as = load_a(a[i] + column_of_a(p)); FOR_VECTORS(MULTIPLY, i) }
    FOR_ROWS(MULTIPLY_ROW)
  }
#endif

#if WORKGROUP_Y > 1
  // The sums pass by one place, so that finish() is compiled once: GPUs keep an array that is indexed at run time in memory.
#define ADVANCE(i, j) sum[i][j] = sum[((i) * VECTORS + j + 1) % (TM * VECTORS) / VECTORS][(j + 1) % VECTORS];
#define ADVANCE_ROW(i) FOR_VECTORS(ADVANCE, i)
  int elements = max(PER_VECTOR, -size.z);  // compilers cannot see that it is the former: finish() would be compiled for each
  for (int q = 0; q < TM * VECTORS; ++q) {
    RUNNING_VECTOR vector = sum[0][0];
    FOR_ROWS(ADVANCE_ROW)
    int r = row + q / VECTORS;
    for (int e = 0; e < elements; ++e) {
      int c = COLUMN(q % VECTORS) + e;
      if (r < size.x && c < size.y) finish(layer, r, c, element(vector, e));
    }
  }
#else
  // Through an array that is indexed at run time: finish() written out for each element would take the compiler seconds.
  KEPT_SUM sums[TM * TN];
#define COPY(i, j) FOR_ELEMENTS(COPY_ONE, i, j)
#define COPY_ROW(i) FOR_VECTORS(COPY, i)
  FOR_ROWS(COPY_ROW)
  for (int q = 0; q < TM * TN; ++q) {
    int i = q / TN, j = q % TN;
    int c = COLUMN(j / PER_VECTOR) + j % PER_VECTOR;
    if (row + i < size.x && c < size.y) finish(layer, row + i, c, SUM_OF(sums[q]));
  }
#endif
}
