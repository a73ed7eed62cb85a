#version 430 core
#extension GL_GOOGLE_include_directive : require
// border: copies a part of images into the workspace, with zeros where it reaches beyond them. A step before a convolution's products.
//
// A line is what lies together: of channels-last images a row of pixels with their channels, else a row of one channel. Lines make
// planes, and planes make volumes: a volume is an image, or a channel of one. Elements are moved as bits. Each invocation writes 4
// vectors of 16 bytes of a line; a line of the copy is made of such vectors.
//
// Grid      workgroups over the vectors of a line (x), the lines of a plane (y) and all planes (z), from y0 and z0 on
// Buffers   0: the images, as words; 6: the copy
// Uniforms  size: the vectors of a line of the copy, its planes in a volume, the plane of the images with which it begins, the planes that
//           an image has; a_at: the first element of the images, and the distances of lines, planes and volumes in elements; c_at: the
//           same of the copy, in vectors; b_at: the element of a line and the line of a plane with which the copy begins, and how many
//           the images have: element, elements, line, lines
// Macros    WORKGROUP: a power of two up to 1024; BITS: an element's bits, 8, 16 or 32; of larger elements a word's.
//           With WIDE lines of the images begin and end at multiples of 16 bytes, and an element is so much

#define PER_WORD (32 / BITS)

#include "common.glsl"

layout(local_size_x = WORKGROUP) in;
layout(std430, binding = BINDING_PARTIAL) writeonly buffer BufferCopy { uvec4 Copy[]; };
const int vectors = 4;

#if WIDE
#if WIDE == 2
layout(rgba32ui, binding = 1) readonly uniform highp uimageBuffer A;
uvec4 element_at(int at) { return imageLoad(A, at); }
#else
layout(std430, binding = BINDING_A) readonly buffer BufferA { uvec4 A[]; };
uvec4 element_at(int at) { return A[at]; }
#endif
uvec4 vector_of_copy(int from, int vector) {
  int place = vector + b_at.x;
  return place < 0 || place >= b_at.y ? uvec4(0u) : element_at(from + place);
}
#else
layout(std430, binding = BINDING_A) readonly buffer BufferA { uint A[]; };
uint element_at(int from, int place) {
  if (place < 0 || place >= b_at.y) return 0u;
  int at = from + place;
  return A[at / PER_WORD] >> uint(at % PER_WORD * BITS) & (0xffffffffu >> uint(32 - BITS));
}

uint word_at(int from, int place) {
  uint bits = 0u;
  for (int e = 0; e < PER_WORD; ++e) bits |= element_at(from, place + e) << uint(e * BITS);
  return bits;
}
uvec4 vector_of_copy(int from, int vector) {
  int place = vector * 4 * PER_WORD + b_at.x;
  return uvec4(word_at(from, place), word_at(from, place + PER_WORD), word_at(from, place + 2 * PER_WORD),
               word_at(from, place + 3 * PER_WORD));
}
#endif

void main() {
  int first = int(gl_WorkGroupID.x) * WORKGROUP * vectors + int(gl_LocalInvocationID.x);
  if (first >= size.x) return;
  int z = z0 + int(gl_WorkGroupID.z), line = y0 + int(gl_WorkGroupID.y), volume = z / size.y, plane = z % size.y;
  int to = c_at.x + line * c_at.y + plane * c_at.z + volume * c_at.w;
  line += b_at.z;
  plane += size.z;
  bool inside = line >= 0 && line < b_at.w && plane >= 0 && plane < size.w;
  int from = a_at.x + line * a_at.y + plane * a_at.z + volume * a_at.w;
  for (int i = 0; i < vectors; ++i) {
    int vector = first + i * WORKGROUP;
    if (vector >= size.x) return;
    Copy[to + vector] = inside ? vector_of_copy(from, vector) : uvec4(0u);
  }
}
