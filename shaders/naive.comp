#version 430 core
#extension GL_GOOGLE_include_directive : require
// naive: C = act(alpha op(A) op(B) + beta C + D + bias), one invocation for each element of C and no shared memory. It runs on every
// driver.
//
// Macros    WORKGROUP_X, WORKGROUP_Y: powers of two up to 32
// Shapes, grid, buffers, uniforms and the other macros: gemm.glsl

#define A_READS ELEMENTS
#define B_READS ELEMENTS
#include "gemm.glsl"

layout(local_size_x = WORKGROUP_X, local_size_y = WORKGROUP_Y) in;

void main() {
  int row = y0 + int(gl_GlobalInvocationID.y);
  int column = x0 + int(gl_GlobalInvocationID.x);
  int z = z0 + int(gl_WorkGroupID.z);
  if (row >= size.x || column >= size.y) return;

  int a = a_row(z, row), b = b_column(z, column);
  PRECISE RUNNING sum = RUNNING(0);
  for (int p = 0; p < size.z; ++p) sum = multiply_add(sum, load_a(a + column_of_a(p)), load_b(b + row_of_b(p)));
  finish(z, row, column, sum);
}
