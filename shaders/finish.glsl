// The end of an element of C: scalars, epilogue, rounding, store. Where its sum is a part (PARTS), the sum goes to the partial sums.
//
// WINDOWS   1 if these are sums over a window of k, or with PARTS over a part of it; 0 if over all of k; the includer defines it
// RESIDUAL, BIAS: 0 if D, or a bias, may not apply although EPILOGUE is 1

layout(location = 17) uniform int sums_at;  // the first of the partial sums
#if PARTS
layout(std430, binding = BINDING_PARTIAL) buffer BufferPartial { RUNNING Partial[]; };
#elif NARROW_C && WINDOWS
// Sums of earlier windows of k: C's own type would round each of them.
layout(std430, binding = BINDING_PARTIAL) buffer BufferPartial { float Partial[]; };
#endif

#if PARTS

// Ends the element (row, column) of layer z: adds it to the earlier windows of k, for reduce.comp to finish.
void finish(int z, int row, int column, RUNNING sum) {
  int at = sums_at + (z * size.x + row) * size.y + column;
  Partial[at] = has(FIRST_K) ? sum : add(Partial[at], sum);
}
#else
// Where element (row, column) of C, or of D, lies in an item.
#if INDEXED_C
int place_in_c(int row, int column, ivec4 at) { return at.x + Offsets[offsets_of_c_at.x + row] + Offsets[offsets_of_c_at.y + column]; }
#else
int place_in_c(int row, int column, ivec4 at) { return at.x + row * at.y + column * at.z; }
#endif

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
#if NARROW_C && WINDOWS
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
  PRECISE ACC value = ALPHA(z) == ACC(0) ? ACC(0) : multiply(ALPHA(z), sum);  // with alpha = 0 a NaN in A or B does not count
  if (take_c) {
    if (has(READ_C) && BETA(z) != ACC(0)) ADD_TO(value, multiply(BETA(z), ELEMENT_C(C, at)));
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
const bool has_plain = EPILOGUE == 0 && (PARTS != 0 || !NARROW_C);
bool is_plain(int z) { return has(FIRST_K) && (PARTS != 0 || !has(READ_C) && ALPHA(z) != ACC(0)); }

void finish_plain(int layer, int row, int column, RUNNING sum) {
#if PARTS
#if SUM == C64 && PANELS == 0
  // This never holds, and compilers cannot see that. Without it Intel's compilers up to Broadwell would keep a register for the address of
  // each sum, in the loop too.
  if (flags == 0) sum = ACC(0);
#endif
  Partial[sums_at + (layer * size.x + row) * size.y + column] = sum;
#else
  store_c(place_in_c(row, column, c_at) + OFFSET(layer, c, c_at), multiply(ALPHA(layer), rounded(sum)));
#endif
}
