// The elements of C: stored as they are summed, or where that is f32 in 16 bits.
//
// C_BY_VECTORS  defined where they are stored by fours alone
#define NARROW_C (TYPE_C != SUM)
#if NARROW_C
#define WORD_C uint
// The 16 bits of `value`, rounded to nearest even; NaN stays NaN. Done in integers: packHalf2x16 leaves the rounding to the driver.
uint to_16_bits(float value) {
  uint bits = floatBitsToUint(value);
  bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
#if TYPE_C == BF16
  return nan ? (bits >> 16) | 0x40u : (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
#else
  uint sign = (bits >> 16) & 0x8000u;
  uint magnitude = bits & 0x7fffffffu;
  if (nan) return sign | 0x7e00u;
  if (magnitude >= 0x477ff000u) return sign | 0x7c00u;  // 65520 and more round to infinity
  if (magnitude >= 0x38800000u)                         // 2^-14 and more: a normal number
    return sign | ((magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13);
  uint shift = 126u - (magnitude >> 23);  // a subnormal one counts in units of 2^-24
  if (shift > 24u) return sign;
  uint mantissa = (magnitude & 0x7fffffu) | 0x800000u;
  uint whole = mantissa >> shift;
  uint rest = mantissa & ((1u << shift) - 1u);
  uint half_way = 1u << (shift - 1u);
  return sign | (rest > half_way || (rest == half_way && (whole & 1u) == 1u) ? whole + 1u : whole);
#endif
}
#define ELEMENT_C(array, index) from_16_bits(array[(index) >> 1], index, TYPE_C == BF16)
#else
#define WORD_C ACC
#define ELEMENT_C(array, index) array[index]
#endif

#ifdef C_BY_VECTORS
// Four elements at a time, each of 16 or 32 bits.
#if NARROW_C
layout(std430, binding = BINDING_C) buffer BufferC { uvec2 C[]; };
void store_c4(int v, vec4 x) { C[v] = uvec2(to_16_bits(x.x) | to_16_bits(x.y) << 16, to_16_bits(x.z) | to_16_bits(x.w) << 16); }
#else
layout(std430, binding = BINDING_C) buffer BufferC { vec4 C[]; };
void store_c4(int v, vec4 x) { C[v] = x; }
#endif
#elif !PARTS
layout(std430, binding = BINDING_C) buffer BufferC { WORD_C C[]; };

void store_c(int index, ACC value) {
#if NARROW_C
  // Two elements share a word, and perhaps two invocations: each changes its own bits alone.
  int shift = (index & 1) * 16;
  atomicAnd(C[index >> 1], ~(0xffffu << shift));
  atomicOr(C[index >> 1], to_16_bits(value) << shift);
#else
  C[index] = value;
#endif
}
#endif
