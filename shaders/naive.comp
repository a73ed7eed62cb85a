#version 430 core
// naive: C = alpha op(A) op(B) + beta C, one invocation for each element of C and no shared memory. It runs on every driver.
//
// op(A) is m x k, op(B) is k x n, C is m x n, all float.
//
// Grid      workgroups of WORKGROUP_X columns (x) and WORKGROUP_Y rows (y) of the piece of C, from column x0 and row y0 on
// Buffers   0: A, 1: B, 2: C, each a window of the operand; element (i, j) of op(A), op(B), C is at at.x + i * at.y + j * at.z
// Uniforms  see below; beta = 0: C is not read
// Macros    WORKGROUP_X, WORKGROUP_Y: powers of two up to 32

#ifndef WORKGROUP_X
#define WORKGROUP_X 8
#endif
#ifndef WORKGROUP_Y
#define WORKGROUP_Y 8
#endif
#if WORKGROUP_X < 1 || WORKGROUP_X > 32 || (WORKGROUP_X & (WORKGROUP_X - 1)) != 0
#error "naive: WORKGROUP_X must be a power of two up to 32"
#endif
#if WORKGROUP_Y < 1 || WORKGROUP_Y > 32 || (WORKGROUP_Y & (WORKGROUP_Y - 1)) != 0
#error "naive: WORKGROUP_Y must be a power of two up to 32"
#endif

layout(local_size_x = WORKGROUP_X, local_size_y = WORKGROUP_Y) in;

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

void main() {
  int row = y0 + int(gl_GlobalInvocationID.y);
  int column = x0 + int(gl_GlobalInvocationID.x);
  if (row >= size.x || column >= size.y) return;

  float sum = 0.0;
  for (int p = 0; p < size.z; ++p)
    sum += A[a_at.x + row * a_at.y + p * a_at.z] * B[b_at.x + p * b_at.y + column * b_at.z];

  int at = c_at.x + row * c_at.y + column * c_at.z;
  C[at] = beta == 0.0 ? alpha * sum : alpha * sum + beta * C[at];
}
