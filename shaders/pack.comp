#version 430 core
#extension GL_GOOGLE_include_directive : require
// pack: brings op(A), or the transpose of op(B), into panels: aligned, in the accumulator's type. Beyond k they have zeros, and beyond the edge
// the last row: what it makes is not stored.
//
// The source has m rows (B: n columns) and k steps of k. A panel is `width` rows wide; panel q holds element (row, p) of the source
// at ((q * padded_k) + p) * width + row - q * width, so that what belongs to one p lies together. Each invocation writes `step`
// vectors: PER_VECTOR rows of `step` successive p. A workgroup is `lanes` invocations along the rows, the rest of it along p, so that few
// rows keep it busy as well.
//
// Grid      workgroups over the vectors of rows (x) and the p (y) from x0 and y0 on, and over the items of a batch (z) from z0 on
// Buffers   0: the source, 6: the panels
// Uniforms  size: the rows, the padded k, k, the items; a_at: the source's placement; panels_at: the first vector of the panels, the
//           panels' width in vectors, the vectors from item to item, lanes; flags: PACKS_B if the source is B
// Macros    WORKGROUP: a power of two up to 1024; the other macros, buffers and uniforms: the files that are included

#define A_READS ELEMENTS

#include "common.glsl"
#include "types.glsl"
#include "layers.glsl"
#include "quantization.glsl"
#include "operand_a.glsl"

layout(local_size_x = WORKGROUP) in;
layout(location = 15) uniform ivec4 panels_at;
layout(std430, binding = BINDING_PARTIAL) writeonly buffer BufferPacked { VECTOR Packed[]; };

void main() {
  const int step = 4;  // of p for each invocation
  int z = z0 + int(gl_WorkGroupID.z);
  int lane = int(gl_LocalInvocationID.x), lanes = panels_at.w;
  int vector = x0 / PER_VECTOR + int(gl_WorkGroupID.x) * lanes + lane % lanes;
  int row = vector * PER_VECTOR;
  int first_p = y0 + (int(gl_WorkGroupID.y) * (WORKGROUP / lanes) + lane / lanes) * step;
  int width = panels_at.y;
  if (row >= (size.x + width * PER_VECTOR - 1) / (width * PER_VECTOR) * (width * PER_VECTOR)) return;
  int to = panels_at.x + z * panels_at.z + (vector / width * size.y + first_p) * width + vector % width;
  int from = a_at.x + (has(PACKS_B) ? OFFSET(z, b, a_at) : OFFSET(z, a, a_at));
  int rows[PER_VECTOR];
  for (int e = 0; e < PER_VECTOR; ++e) rows[e] = from + row_of_a(min(row + e, size.x - 1));
  for (int p = first_p; p < min(first_p + step, size.y); ++p) {
    int at = column_of_a(min(p, size.z - 1));
    ACC x[PER_VECTOR];
    for (int e = 0; e < PER_VECTOR; ++e) x[e] = load_a(rows[e] + at);
    Packed[to] = p < size.z ? vector_of(x) : VECTOR(0);
    to += width;
  }
}
