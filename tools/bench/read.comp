#version 430
// How fast a device reads memory: each invocation adds up `count` elements, of which a workgroup reads WORKGROUP * count in a row.
// Nothing is written but for a store that does not happen.
//
// Grid: as many workgroups as the bound elements make. Buffer 0: one float. Buffer 1, or image 0: the elements.

#ifndef WORKGROUP
#define WORKGROUP 64
#endif
// 1: an rgba32f image of a buffer; 0: a storage buffer.
#ifndef IMAGE
#define IMAGE 0
#endif
// 1: an invocation's elements follow each other; 0: neighbouring invocations read neighbouring elements.
#ifndef CONSECUTIVE
#define CONSECUTIVE 0
#endif
// Reads in a row; count is a multiple of it.
#ifndef UNROLL
#define UNROLL 8
#endif

layout(local_size_x = WORKGROUP) in;
layout(std430, binding = 0) buffer Result { float result[]; };
#if IMAGE
layout(rgba32f, binding = 0) readonly uniform highp imageBuffer elements;
#define ELEMENT(i) imageLoad(elements, int(i))
#else
layout(std430, binding = 1) readonly buffer Elements { vec4 elements[]; };
#define ELEMENT(i) elements[i]
#endif
uniform uint count;

void main() {
#if CONSECUTIVE
  uint at = gl_GlobalInvocationID.x * count;
  const uint stride = 1u;
#else
  uint at = gl_WorkGroupID.x * (uint(WORKGROUP) * count) + gl_LocalInvocationID.x;
  const uint stride = uint(WORKGROUP);
#endif
  vec4 sum = vec4(0);
  for (uint i = 0u; i < count; i += uint(UNROLL))
    for (int j = 0; j < UNROLL; ++j, at += stride) sum += ELEMENT(at);
  if (dot(sum, vec4(1)) == -12345.0) result[0] = sum.x;
}
