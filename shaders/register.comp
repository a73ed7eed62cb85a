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
// PANELS 1, 2  reads what pack.comp made: A in panels of TM * WORKGROUP_Y rows, B in panels of TN * WORKGROUP columns, k-major,
//              so that the loop has no condition; k is then a multiple of STEP_K
//
// BROADCAST  With more than 1 and panels, each of so many invocations of a subgroup reads some of the vectors of A, and they pass their
//            elements on. A CPU's driver then reads a vector for one instruction of each of its elements, and else eight times.
//
// Macros    TM: a multiple of 4 up to 32; TN: 4, 8 or 16, or 2 where a vector holds no more; STEP_K: 1, 2, 4 or 8; WORKGROUP: the
//           invocations beside each other, a power of two from 4 to 128; WORKGROUP_Y: those below each other, 1, 2, 4 or 8, for
//           GPUs more than 1. BROADCAST: 1, or with PANELS and a WORKGROUP_Y of 1 a power of two up to 16 that is no more than WORKGROUP
//           and than a subgroup has; elements are of 32 bits
// Shapes, grid, buffers, uniforms and the other macros: gemm.glsl

#if PANELS
#define A_READS NOTHING
#else
#define A_READS ELEMENTS
#endif
#define B_READS A_READS
#include "gemm.glsl"

layout(local_size_x = WORKGROUP, local_size_y = WORKGROUP_Y) in;
const int vectors = TN / PER_VECTOR;
const int pitch_a = TM * WORKGROUP_Y / PER_VECTOR;  // the vectors of A of one p
// What an invocation reads of the vectors of A of a step, of which it needs all.
const int reads = (STEP_K * TM / PER_VECTOR + BROADCAST - 1) / BROADCAST;

int column_of(int column, int j) { return column + j * (PER_VECTOR * WORKGROUP) + int(gl_LocalInvocationID.x) * PER_VECTOR; }

void main() {
  int layer = z0 + int(gl_WorkGroupID.z);
  int z = item_of(layer);
  int first_row = y0 + int(gl_WorkGroupID.y) * (TM * WORKGROUP_Y);
  int row = first_row + int(gl_LocalInvocationID.y) * TM;
  int column = x0 + int(gl_WorkGroupID.x) * (TN * WORKGROUP);

  PRECISE_SUMS RUNNING_VECTOR sum[TM][vectors];
  for (int i = 0; i < TM; ++i)
    for (int j = 0; j < vectors; ++j) sum[i][j] = ZERO_VECTOR;

#if PANELS
  int a_at_p = panels_at.x + z * panels_at.z + (first_row / (TM * WORKGROUP_Y) * size.z + begin_k(layer)) * pitch_a +
               int(gl_LocalInvocationID.y) * (TM / PER_VECTOR);
  int b_at_p = panels_at.y + z * panels_at.w + (column / (TN * WORKGROUP) * size.z + begin_k(layer)) * (vectors * WORKGROUP) +
               int(gl_LocalInvocationID.x);
  for (int p = begin_k(layer); p < end_k(layer); p += STEP_K) {
    ACC a[STEP_K][TM / PER_VECTOR][PER_VECTOR];
    VECTOR b[STEP_K][vectors];
#if BROADCAST > 1
    VECTOR own[reads];
    for (int i = 0; i < reads; ++i) own[i] = panel(a_at_p + i * BROADCAST + int(gl_SubGroupInvocationARB));
#define LOAD(at) readInvocationARB(own[(at) / BROADCAST], uint((at) % BROADCAST))
#else
#define LOAD(at) panel(a_at_p + (at))
#endif
    for (int i = 0; i < TM / PER_VECTOR; ++i)
      for (int s = 0; s < STEP_K; ++s) a[s][i] = elements_of(LOAD(s * pitch_a + i));
    for (int j = 0; j < vectors; ++j)
      for (int s = 0; s < STEP_K; ++s) b[s][j] = panel(b_at_p + (s * vectors + j) * WORKGROUP);
    for (int i = 0; i < TM; ++i)
      for (int j = 0; j < vectors; ++j)
        for (int s = 0; s < STEP_K; ++s) ADD_SCALED(sum[i][j], a[s][i / PER_VECTOR][i % PER_VECTOR], b[s][j]);
    a_at_p += STEP_K * pitch_a;
    b_at_p += STEP_K * vectors * WORKGROUP;
  }
#else
  int a[TM], b[vectors][PER_VECTOR];
  for (int i = 0; i < TM; ++i) a[i] = a_row(z, min(row + i, size.x - 1));
  for (int j = 0; j < vectors; ++j)
    for (int e = 0; e < PER_VECTOR; ++e) b[j][e] = b_column(z, min(column_of(column, j) + e, size.y - 1));
  for (int p = begin_k(layer); p < end_k(layer); ++p) {
    VECTOR bs[vectors];
    for (int j = 0; j < vectors; ++j) {
      ACC x[PER_VECTOR];
      for (int e = 0; e < PER_VECTOR; ++e) x[e] = load_b(b[j][e] + row_of_b(p));
      bs[j] = vector_of(x);
    }
    for (int i = 0; i < TM; ++i) {
      ACC as = load_a(a[i] + column_of_a(p));
      for (int j = 0; j < vectors; ++j) ADD_SCALED(sum[i][j], as, bs[j]);
    }
  }
#endif

#if WORKGROUP_Y > 1 || SUMS_DOUBLES && defined GL_NV_gpu_shader5
  // The sums pass by one place, so that finish() is compiled once: GPUs keep an array that is indexed at run time in memory, and NVIDIA's
  // compiler (580.159) gives other elements of such an array of doubles.
  int elements = max(PER_VECTOR, -size.z);  // compilers cannot see that it is the former: finish() would be compiled for each
  for (int q = 0; q < ONE_BY_ONE(TM * vectors); ++q) {
    RUNNING_VECTOR vector = sum[0][0];
    for (int i = 0; i < TM; ++i)
      for (int j = 0; j < vectors; ++j) sum[i][j] = j + 1 < vectors ? sum[i][min(j + 1, vectors - 1)] : sum[min(i + 1, TM - 1)][0];
    int r = row + q / vectors;
    for (int e = 0; e < elements; ++e) {
      int c = column_of(column, q % vectors) + e;
      if (r < size.x && c < size.y) finish(layer, r, c, element(vector, e));
    }
  }
#else
  // Through an array that is indexed at run time: finish() written out for each element would take the compiler seconds.
  RUNNING sums[TM * TN];
  for (int i = 0; i < TM; ++i)
    for (int j = 0; j < vectors; ++j) {
      RUNNING x[PER_VECTOR] = elements_of(sum[i][j]);
      for (int e = 0; e < PER_VECTOR; ++e) sums[i * TN + j * PER_VECTOR + e] = x[e];
    }
  for (int q = 0; q < ONE_BY_ONE(TM * TN); ++q) {
    int i = q / TN, j = q % TN;
    int c = column_of(column, j / PER_VECTOR) + j % PER_VECTOR;
    if (row + i < size.x && c < size.y) finish(layer, row + i, c, sums[q]);
  }
#endif
}
