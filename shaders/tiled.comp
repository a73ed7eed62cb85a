#version 430 core
#extension GL_GOOGLE_include_directive : require
// tiled: C = act(alpha op(A) op(B) + beta C + D + bias) through shared memory, the published algorithm and the named baseline.
//
// A workgroup of TILE x TILE invocations computes a block of TILE x TILE elements of C. It walks along k in steps of TILE. In each step
// every invocation copies one element of op(A) and one of op(B) into shared memory (0 beyond the edge), and then adds TILE products.
//
// Macros    TILE: 2, 4, 8, 16 or 32
// Shapes, grid, buffers, uniforms and the other macros: gemm.glsl

#define A_READS ELEMENTS
#define B_READS ELEMENTS
#include "gemm.glsl"

layout(local_size_x = TILE, local_size_y = TILE) in;

shared ACC As[TILE][TILE];
shared ACC Bs[TILE][TILE];

void main() {
  int x = int(gl_LocalInvocationID.x);
  int y = int(gl_LocalInvocationID.y);
  int row = y0 + int(gl_GlobalInvocationID.y);
  int column = x0 + int(gl_GlobalInvocationID.x);
  int z = z0 + int(gl_WorkGroupID.z);

  PRECISE RUNNING sum = RUNNING(0);
  for (int p0 = 0; p0 < size.z; p0 += TILE) {
    As[y][x] = ACC(0);
    Bs[y][x] = ACC(0);
    if (row < size.x && p0 + x < size.z) As[y][x] = load_a(a_row(z, row) + column_of_a(p0 + x));
    if (p0 + y < size.z && column < size.y) Bs[y][x] = load_b(b_column(z, column) + row_of_b(p0 + y));
    memoryBarrierShared();
    barrier();
    for (int p = 0; p < TILE; ++p) sum = multiply_add(sum, As[y][p], Bs[p][x]);
    barrier();
  }

  if (row < size.x && column < size.y) finish(z, row, column, sum);
}
