#version 430 core
#extension GL_GOOGLE_include_directive : require
// reduce: C = act(alpha S + beta C + D + bias), where S is the sum of what a kernel with PARTS 1 left for each part of k.
//
// Each invocation adds up one element, always in the order of the parts, so that equal plans give equal bits.
//
// Grid      workgroups over the elements of C, row after row, from x0 on (x), and over the items of a batch (z) from z0 on
// Macros    WORKGROUP: a power of two up to 1024
// Shapes: gemm.glsl; buffers, uniforms and the other macros: the files that are included

#define WINDOWS 0

#include "common.glsl"
#include "types.glsl"
#include "layers.glsl"
#include "sums.glsl"
#include "activation.glsl"
#include "operand_c.glsl"
#include "finish.glsl"

layout(local_size_x = WORKGROUP) in;
layout(std430, binding = BINDING_PARTIAL) readonly buffer BufferPartial { RUNNING Partial[]; };

void main() {
  int z = z0 + int(gl_WorkGroupID.z);
  int q = x0 + int(gl_GlobalInvocationID.x);
  int elements = size.x * size.y;
  if (q >= elements) return;
  PRECISE RUNNING sum = RUNNING(0);
  for (int part = 0; part < parts.z; ++part) sum = add(sum, Partial[sums_at + (part * parts.x + z) * elements + q]);
  finish(z, q / size.y, q % size.y, rounded(sum));
}
