#version 430 core
#extension GL_GOOGLE_include_directive : require
// row: C = act(alpha op(A) op(B) + beta C + D + bias), TN neighbouring elements of a row of C for each invocation.
//
// Grid      workgroups over the columns (x) and rows (y) of the piece of C from x0 and y0 on, and over the items of a batch (z) from z0 on
// Macros    TN: 1, 2, 4 or 8; WORKGROUP: a power of two from 4 to 256; buffers, uniforms and the other macros: gemm.glsl

#ifndef TN
#define TN 4
#endif
#ifndef WORKGROUP
#define WORKGROUP 32
#endif
#if TN != 1 && TN != 2 && TN != 4 && TN != 8
#error "row: TN must be 1, 2, 4 or 8"
#endif
#if WORKGROUP < 4 || WORKGROUP > 256 || (WORKGROUP & (WORKGROUP - 1)) != 0
#error "row: WORKGROUP must be a power of two from 4 to 256"
#endif

#include "gemm.glsl"

layout(local_size_x = WORKGROUP) in;

void main() {
  int row = y0 + int(gl_WorkGroupID.y), column = x0 + int(gl_GlobalInvocationID.x) * TN;
  int z = z0 + int(gl_WorkGroupID.z);
  int a = a_row(z, row);
  for (int j = column; j < min(column + TN, size.y); ++j) {
    int b = b_column(z, j);
    PRECISE RUNNING sum = RUNNING(0);
    for (int p = 0; p < size.z; ++p) sum = multiply_add(sum, load_a(a + p * a_at.z), load_b(b + p * b_at.y));
    finish(z, row, j, sum);
  }
}
