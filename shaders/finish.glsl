// The end of an element of C: scalars, epilogue, rounding, store. Where its sum is a part (PARTS), the sum goes to the partial sums.

#if PARTS || defined REDUCES || NARROW_C && WRITES_C && !defined WHOLE_SUMS
layout(location = 17) uniform int sums_at;  // the first of the partial sums
#endif
#if PARTS || defined REDUCES
layout(std430, binding = BINDING_PARTIAL) buffer BufferPartial { RUNNING Partial[]; };
#elif NARROW_C && WRITES_C && !defined WHOLE_SUMS
// Sums of earlier windows of k: C's own type would round each of them.
layout(std430, binding = BINDING_PARTIAL) buffer BufferPartial { float Partial[]; };
#endif

#if PARTS

// Ends the element (row, column) of layer z: adds it to the earlier windows of k, for reduce.comp to finish.
void finish(int z, int row, int column, RUNNING sum) {
  int at = sums_at + (z * size.x + row) * size.y + column;
#if PRECISION
  PRECISE RUNNING all = sum;
  if (!has(FIRST_K)) {
    all = Partial[at];
    ADD_SUM(all, sum);
  }
  Partial[at] = all;
#else
  Partial[at] = has(FIRST_K) ? sum : Partial[at] + sum;
#endif
}
#endif

#if WRITES_C
#if NARROW_C
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
#define ELEMENT_C(array, index) array[index]
#endif

// Where element (row, column) of C, or of D, lies in an item.
#if INDEXED_C
int place_in_c(int row, int column, ivec4 at) { return at.x + Offsets[offsets_of_c_at.x + row] + Offsets[offsets_of_c_at.y + column]; }
#else
int place_in_c(int row, int column, ivec4 at) { return at.x + row * at.y + column * at.z; }
#endif

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

#if EPILOGUE
#if RESIDUAL
layout(std430, binding = BINDING_D) readonly buffer BufferD { WORD_C D[]; };
#endif
#if BIAS
layout(std430, binding = BINDING_BIAS) readonly buffer BufferBias { WORD_C Bias[]; };
#endif

layout(location = 10) uniform ivec4 d_at;
layout(location = 11) uniform ivec3 bias_at;  // one of the two distances is 0
#endif

// Ends the element (row, column) of item z, of which `sum` is the sum over this window of k: scalars, epilogue, store.
void finish(int z, int row, int column, ACC sum) {
  int at = place_in_c(row, column, c_at) + OFFSET(z, c, c_at);
#if NARROW_C && !defined REDUCES && !defined WHOLE_SUMS
  int partial = sums_at + (z * size.x + row) * size.y + column;
  if (!has(FIRST_K)) sum += Partial[partial];
  if (!has(LAST_K)) {
    Partial[partial] = sum;
    return;
  }
  const bool take_c = true;
#else
  bool take_c = has(FIRST_K);
#endif
  PRECISE ACC value = ALPHA(z) == ZERO ? ZERO : multiply(ALPHA(z), sum);  // with alpha = 0 a NaN in A or B does not count
  if (take_c) {
    if (has(READ_C) && BETA(z) != ZERO) ADD_TO(value, multiply(BETA(z), ELEMENT_C(C, at)));
#if EPILOGUE && RESIDUAL
    if (has(ADD_D)) ADD_TO(value, ELEMENT_C(D, place_in_c(row, column, d_at) + OFFSET(z, d, d_at)));
#endif
  } else {
    ADD_TO(value, ELEMENT_C(C, at));
  }
#if EPILOGUE
  if (has(LAST_K)) {
#if BIAS
    if (has(ADD_BIAS)) ADD_TO(value, ELEMENT_C(Bias, bias_at.x + row * bias_at.y + column * bias_at.z));
#endif
    value = activate(value);
  }
#endif
  store_c(at, value);
}
#endif

// The usual end: alpha times the sum and nothing else. It is far shorter than finish(), so that it can be written out for each element.
// is_plain() tells at run time whether it may be used.
#define HAS_PLAIN (EPILOGUE == 0 && !(NARROW_C && WRITES_C))
#if HAS_PLAIN && !defined PACKS && !(PRECISION > 0 && defined REDUCES)
bool is_plain(int z) {
#if PARTS
  return has(FIRST_K);
#else
  return has(FIRST_K) && !has(READ_C) && ALPHA(z) != ZERO;
#endif
}

void finish_plain(int layer, int row, int column, RUNNING sum) {
#if PARTS
#if SUM == C64 && PANELS == 0
  // This never holds, and compilers cannot see that. Without it Intel's compilers up to Broadwell would keep a register for the address of
  // each sum, in the loop too.
  if (flags == 0) sum = ZERO;
#endif
  Partial[sums_at + (layer * size.x + row) * size.y + column] = sum;
#else
  store_c(place_in_c(row, column, c_at) + OFFSET(layer, c, c_at), multiply(ALPHA(layer), sum));
#endif
}
#endif
