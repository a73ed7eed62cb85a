#version 430 core
#extension GL_GOOGLE_include_directive : require
// small: C = act(alpha op(A) op(B) + beta C + D + bias) for the many small items of a batch.
//
// Each invocation computes a tile of TM x TN elements of one item's C in registers. The tiles of all items are numbered one after the
// other, so that a workgroup takes as many items as it has room for.
//
// Grid      ceil(items * ceil(m / TM) * ceil(n / TN) / WORKGROUP) workgroups along x, for the items from z0 on
// Macros    TM, TN: 1 to 8; WORKGROUP: a power of two up to 1024
// Shapes, buffers, uniforms and the other macros: gemm.glsl

#define A_READS ELEMENTS
#define B_READS ELEMENTS
#include "gemm.glsl"

layout(local_size_x = WORKGROUP) in;

void main() {
  int blocks_x = (size.y + TN - 1) / TN;
  int blocks = blocks_x * ((size.x + TM - 1) / TM);
  int task = int(gl_GlobalInvocationID.x);
  if (blocks == 0 || task / blocks >= size.w) return;
  int z = z0 + task / blocks;
  int row = task % blocks / blocks_x * TM;
  int column = task % blocks_x * TN;

  // Rows and columns beyond the edge repeat the last one: they are loaded without a branch and never stored.
  int a[TM], b[TN];
  for (int i = 0; i < TM; ++i) a[i] = a_row(z, min(row + i, size.x - 1));
  for (int j = 0; j < TN; ++j) b[j] = b_column(z, min(column + j, size.y - 1));
  ACC sum[TM][TN];
  for (int i = 0; i < TM; ++i)
    for (int j = 0; j < TN; ++j) sum[i][j] = ACC(0);
  for (int p = 0; p < size.z; ++p) {
    ACC bs[TN];
    for (int j = 0; j < TN; ++j) bs[j] = load_b(b[j] + row_of_b(p));
    for (int i = 0; i < TM; ++i) {
      ACC as = load_a(a[i] + column_of_a(p));
      for (int j = 0; j < TN; ++j) sum[i][j] = multiply_add(sum[i][j], as, bs[j]);
    }
  }
  if (has_plain && is_plain(z)) {
    for (int i = 0; i < TM; ++i)
      for (int j = 0; j < TN; ++j)
        if (row + i < size.x && column + j < size.y) finish_plain(z, row + i, column + j, sum[i][j]);
    return;
  }
#if TM == 1 && TN == 1
  finish(z, row, column, sum[0][0]);  // in a loop, compilers would keep all constants of an epilogue in registers, from before it on
#else
  // finish() is compiled once. The rows move up each turn, and so do the sums of a row: most GPUs keep an array that is indexed at run
  // time in memory.
  for (int r = row; r < min(row + TM, size.x); ++r) {
    ACC of_row[TN] = sum[0];
    for (int c = column; c < min(column + TN, size.y); ++c) {
      finish(z, r, c, of_row[0]);
      for (int j = 1; j < TN; ++j) of_row[j - 1] = of_row[j];
    }
    for (int i = 1; i < TM; ++i) sum[i - 1] = sum[i];
  }
#endif
}
