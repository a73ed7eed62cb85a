#version 430 core
#extension GL_GOOGLE_include_directive : require
// outer: C = act(alpha op(A) op(B) + beta C + D + bias) for a k of at most K: rank-1 and rank-k updates, BLAS's ger among them. Nearly
// all of the time goes into reading and writing C, which happens once.
//
// Each invocation computes TM rows and TN columns of C from registers alone: it reads its columns of B once, and goes down the rows. Its
// columns lie in vectors of 16 bytes, each WORKGROUP vectors from the next, so that the invocations of a workgroup read and write one
// vector after the other.
//
// C is read only where beta is not 0. Where C's rows are contiguous and begin at multiples of 16 bytes, and nothing but alpha and beta
// applies, C is read and written by vectors; else, and in the workgroups at C's right edge, element by element.
//
// Loops     TM * (1 + TN) turns
// Macros    TM: a power of two up to 64; TN: 4, 8 or 16; K: 1, 2 or 4; WORKGROUP: a power of two from 4 to 256
// Shapes, grid, buffers, uniforms and the other macros: gemm.glsl

#define A_READS ELEMENTS
#define B_READS ELEMENTS
#include "gemm.glsl"

layout(local_size_x = WORKGROUP) in;
const int vectors = TN / PER_VECTOR;

// A device with few storage buffers has no room for one more beside the items.
#define BY_VECTOR (EPILOGUE == 0 && !NARROW_C && !PARTS && !(ITEMS && BINDING_ITEMS < 5))
#if BY_VECTOR
layout(std430, binding = BINDING_C) buffer BufferVectorsOfC { VECTOR VectorsOfC[]; };  // C again
#endif

int column_of(int column, int j) { return column + j * (PER_VECTOR * WORKGROUP); }

// A row of A times b.
VECTOR[vectors] multiply_row(int z, int row, VECTOR b[K][vectors]) {
  int from = a_row(z, row);
  ACC a[K];
  for (int s = 0; s < K; ++s) {
    a[s] = ACC(0);
    if (s < size.z) a[s] = load_a(from + column_of_a(s));
  }
  VECTOR sum[vectors];
  for (int j = 0; j < vectors; ++j) {
    sum[j] = VECTOR(0);
    for (int s = 0; s < K; ++s) sum[j] += scale(a[s], b[s][j]);
  }
  return sum;
}

void main() {
  int z = z0 + int(gl_WorkGroupID.z);
  int row = y0 + int(gl_WorkGroupID.y) * TM, end = min(row + TM, size.x);
  int first = x0 + int(gl_WorkGroupID.x) * (TN * WORKGROUP);
  int column = first + int(gl_LocalInvocationID.x) * PER_VECTOR;

  // Columns beyond the edge repeat the last one, and are not stored. Beyond k there are zeros.
  VECTOR b[K][vectors];
  for (int j = 0; j < vectors; ++j)
    for (int s = 0; s < K; ++s) {
      b[s][j] = VECTOR(0);
      if (s < size.z) {
        ACC x[PER_VECTOR];
        for (int e = 0; e < PER_VECTOR; ++e) x[e] = load_b(b_column(z, min(column_of(column, j) + e, size.y - 1)) + row_of_b(s));
        b[s][j] = vector_of(x);
      }
    }

#if BY_VECTOR
  // The condition is the same for a whole workgroup: drivers that compute on a CPU run both sides of a condition that is not, and each
  // side's loop at least once.
  ACC of_sum = ALPHA(z), of_c = BETA(z);
  int c = c_at.x + OFFSET(z, c, c_at) + column;
  if (has(FIRST_K) && c_at.z == 1 && (c | c_at.y) % PER_VECTOR == 0 && first + TN * WORKGROUP <= size.y) {
    bool reads_c = has(READ_C) && of_c != ACC(0);
    for (int i = row; i < end; ++i) {
      VECTOR sum[vectors] = multiply_row(z, i, b);
      int at = (c + i * c_at.y) / PER_VECTOR;
      for (int j = 0; j < vectors; ++j) {
        VECTOR value = VECTOR(0);
        if (of_sum != ACC(0)) value = scale(of_sum, sum[j]);
        if (reads_c) value += scale(of_c, VectorsOfC[at + j * WORKGROUP]);
        VectorsOfC[at + j * WORKGROUP] = value;
      }
    }
    return;
  }
#endif
  for (int i = row; i < end; ++i) {
    VECTOR sum[vectors] = multiply_row(z, i, b);
    // finish() is compiled once. The sums move up each turn: most GPUs keep an array that is indexed at run time in memory.
    ACC sums[TN];
    for (int j = 0; j < vectors; ++j) {
      ACC x[PER_VECTOR] = elements_of(sum[j]);
      for (int e = 0; e < PER_VECTOR; ++e) sums[j * PER_VECTOR + e] = x[e];
    }
    for (int q = 0; q < ONE_BY_ONE(TN); ++q) {
      int c_column = column_of(column, q / PER_VECTOR) + q % PER_VECTOR;
      if (c_column < size.y) finish(z, i, c_column, sums[0]);
      for (int s = 1; s < TN; ++s) sums[s - 1] = sums[s];
    }
  }
}
