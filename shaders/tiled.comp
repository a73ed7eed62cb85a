#version 430 core
// tiled: C = alpha op(A) op(B) + beta C through shared memory, the published algorithm and the named baseline.
//
// op(A) is m x k, op(B) is k x n, C is m x n, all float. One workgroup of TILE x TILE invocations computes one TILE x TILE block of
// C: it walks along k in steps of TILE, in each of which every invocation copies one element of op(A) and one of op(B) into
// shared memory (0 beyond the edge) and then adds TILE products from there.
//
// Grid      workgroups over the columns (x) and rows (y) of the piece of C, from column x0 and row y0 on
// Buffers   0: A, 1: B, 2: C, each a window of the operand; element (i, j) of op(A), op(B), C is at at.x + i * at.y + j * at.z
// Uniforms  see below; beta = 0: C is not read
// Macros    TILE: 2, 4, 8, 16 or 32

#ifndef TILE
#define TILE 32
#endif
#if TILE != 2 && TILE != 4 && TILE != 8 && TILE != 16 && TILE != 32
#error "tiled: TILE must be 2, 4, 8, 16 or 32"
#endif

layout(local_size_x = TILE, local_size_y = TILE) in;

layout(std430, binding = 0) readonly buffer BufferA { float A[]; };
layout(std430, binding = 1) readonly buffer BufferB { float B[]; };
layout(std430, binding = 2) buffer BufferC { float C[]; };

layout(location = 0) uniform int x0;      // first column of C of this dispatch
layout(location = 1) uniform int y0;      // first row of C of this dispatch
layout(location = 2) uniform ivec3 size;  // m, n, k of the piece
layout(location = 3) uniform ivec3 a_at;  // index of op(A)(0, 0), distance to the next row, to the next column
layout(location = 4) uniform ivec3 b_at;
layout(location = 5) uniform ivec3 c_at;
layout(location = 6) uniform float alpha;
layout(location = 7) uniform float beta;

shared float As[TILE][TILE];
shared float Bs[TILE][TILE];

void main() {
  int x = int(gl_LocalInvocationID.x);
  int y = int(gl_LocalInvocationID.y);
  int row = y0 + int(gl_GlobalInvocationID.y);
  int column = x0 + int(gl_GlobalInvocationID.x);

  float sum = 0.0;
  for (int p0 = 0; p0 < size.z; p0 += TILE) {
    As[y][x] = row < size.x && p0 + x < size.z ? A[a_at.x + row * a_at.y + (p0 + x) * a_at.z] : 0.0;
    Bs[y][x] = p0 + y < size.z && column < size.y ? B[b_at.x + (p0 + y) * b_at.y + column * b_at.z] : 0.0;
    memoryBarrierShared();
    barrier();
    for (int p = 0; p < TILE; ++p) sum += As[y][p] * Bs[p][x];
    barrier();
  }

  if (row < size.x && column < size.y) {
    int at = c_at.x + row * c_at.y + column * c_at.z;
    C[at] = beta == 0.0 ? alpha * sum : alpha * sum + beta * C[at];
  }
}
