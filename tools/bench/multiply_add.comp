#version 430
// How many multiply-adds a device can do in a second: each invocation keeps ACCUMULATORS independent vec4 in registers and
// computes s = s * x + y, `iterations` * UNROLL times for each. Memory is not touched but for a store that does not happen.
//
// Grid: any. Buffer 0: one float. x and y must be such that s stays an ordinary number, such as 0.5 and 1.

#ifndef WORKGROUP
#define WORKGROUP 64
#endif
#ifndef ACCUMULATORS
#define ACCUMULATORS 4
#endif
#ifndef UNROLL
#define UNROLL 8
#endif
// Whether to ask for fma(), which some drivers do in one instruction and others in a function.
#ifndef FUSED
#define FUSED 0
#endif

layout(local_size_x = WORKGROUP) in;
layout(std430, binding = 0) buffer Result { float result[]; };
uniform uint iterations;
uniform float x;
uniform float y;

vec4 multiply_add(vec4 s) {
#if FUSED
  return fma(s, vec4(x), vec4(y));
#else
  return s * x + y;
#endif
}

void main() {
  vec4 s[ACCUMULATORS];
  for (int i = 0; i < ACCUMULATORS; ++i) s[i] = vec4(gl_GlobalInvocationID.x) + vec4(i, i + 10, i + 20, i + 30);
  for (uint i = 0u; i < iterations; ++i)
    for (int j = 0; j < UNROLL; ++j)
      for (int a = 0; a < ACCUMULATORS; ++a) s[a] = multiply_add(s[a]);
  vec4 sum = vec4(0);
  for (int i = 0; i < ACCUMULATORS; ++i) sum += s[i];
  if (dot(sum, vec4(1)) == -12345.0) result[0] = sum.x;
}
