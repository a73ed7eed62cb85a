// The layers of a dispatch, the items of a batch, and the tables of indexed operands.
//
// Macros    ITEMS: 1 if each item has offsets and scalars of its own
//           INDEXED_A, INDEXED_B, INDEXED_C: 1 if tables say where the elements of the operand lie (INDEXED_C: also of D);
//           pack.comp has A alone

layout(location = 7) uniform ACC alpha;
layout(location = 8) uniform ACC beta;
layout(location = 9) uniform int flags;
const int CONJUGATE_A = 1, CONJUGATE_B = 2, ADD_D = 32, ADD_BIAS = 64, PACKS_B = 128;
const int READ_C = 4;   // beta is not 0
const int FIRST_K = 8;  // the first window of k: beta C and D come in
const int LAST_K = 16;  // the last window of k: bias and activation apply

bool has(int flag) { return (flags & flag) != 0; }
ACC conjugate_if(int flag, ACC value) {
#if IS_COMPLEX
  if (has(flag)) value.y = -value.y;
#endif
  return value;
}

layout(location = 16) uniform ivec3 parts;  // the items of the piece, the length of a part of k, the parts
// layer = part * items + item
int item_of(int layer) { return PARTS != 0 ? layer % parts.x : layer; }
int begin_k(int layer) { return PARTS != 0 ? layer / parts.x * parts.y : 0; }
int end_k(int layer) { return PARTS != 0 ? min(size.z, begin_k(layer) + parts.y) : size.z; }

#if ITEMS
struct Item {
  int a, b, c, d;  // added to the placement
  ACC alpha, beta;
};
layout(std430, binding = BINDING_ITEMS) readonly buffer BufferItems { Item items[]; };
ACC ALPHA(int z) { return items[z].alpha; }
ACC BETA(int z) { return items[z].beta; }
#define OFFSET(z, operand, at) items[z].operand
#else
ACC ALPHA(int z) { return alpha; }
ACC BETA(int z) { return beta; }
#define OFFSET(z, operand, at) (z) * at.w
#endif

#if INDEXED_A || INDEXED_B || INDEXED_C
layout(std430, binding = BINDING_OFFSETS) readonly buffer BufferOffsets { int Offsets[]; };
// The first offsets of op(A)'s rows and columns, of op(B)'s rows and columns; and of C's.
layout(location = 19) uniform ivec4 offsets_at;
layout(location = 20) uniform ivec3 offsets_of_c_at;  // the last is not used
#endif
