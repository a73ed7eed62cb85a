// The outputs of a layer from output `first` on, for mlp.comp: ROWS * GROUPS of them. It is included with each number of rows.
//
// With several groups `first` is 0, all invocations call it, and it ends before they may read each other's results.

#if GROUPS > 1 || ROWS == TILE_M
void LAYER(int first, ivec4 sizes, ivec4 strides, ivec4 parameters, bool last) {
  PRECISE_SUMS vec4 sums[ROWS][columns];
  for (int i = 0; i < ROWS; ++i)
    for (int j = 0; j < columns; ++j) sums[i][j] = vec4(0.0);
#define ADD_INPUT(k, component)                                                       \
  {                                                                                   \
    vec4 x[columns];                                                                  \
    for (int j = 0; j < columns; ++j) x[j] = Values[value_at(k, j)];                  \
    for (int i = 0; i < ROWS; ++i)                                                    \
      for (int j = 0; j < columns; ++j) ADD_SCALED(sums[i][j], w[i].component, x[j]); \
  }
#define ADD_FOUR(k) ADD_INPUT(k, x) ADD_INPUT(k + 1, y) ADD_INPUT(k + 2, z) ADD_INPUT(k + 3, w)
#if GROUPS > 1
  const int step_vectors = STEP_K / 4, places = GROUPS * ROWS * step_vectors;
  const int loads = (places + WORKGROUP - 1) / WORKGROUP;
  int id = int(gl_LocalInvocationIndex);
#if (BY_VECTORS & 8) != 0
  // Load t is of the same inputs as load 0, and of an output that many further.
  const int rows_of_load = WORKGROUP / step_vectors;
  int first_row = id / step_vectors, own = 4 * (id % step_vectors), lines[loads];
  for (int t = 0; t < loads; ++t) lines[t] = place_of_weights(sizes, strides, first_row + t * rows_of_load, own) / 4;
#else
  bool along_k = strides.y == 1;
#endif
  for (int k0 = 0; k0 < sizes.x; k0 += STEP_K) {
    if (k0 > 0) barrier();
#if (BY_VECTORS & 8) != 0
    for (int t = 0; t < loads; ++t)
      if (places % WORKGROUP == 0 || id + t * WORKGROUP < places)
        Weights[(first_row + t * rows_of_load) * (step_vectors + 1) + own / 4] =
            k0 + own < sizes.x ? vector_b(raw_b(lines[t] + k0 / 4), 0) : vec4(0.0);
#else
    for (int t = 0; t < loads; ++t) {
      int place = t * WORKGROUP + id;
      int row = along_k ? place / step_vectors : place % (GROUPS * ROWS), v = along_k ? place % step_vectors : place / (GROUPS * ROWS);
      if (place < places) Weights[row * (step_vectors + 1) + v] = weights_at(sizes, strides, row, k0 + 4 * v);
    }
#endif
    barrier();
    for (int v = 0; v < step_vectors; ++v) {  // behind the last input there are zeros: a turn that ends early costs more than these
      vec4 w[ROWS];
      for (int i = 0; i < ROWS; ++i) w[i] = Weights[(group + i * GROUPS) * (step_vectors + 1) + v];
      ADD_FOUR(k0 + 4 * v)
    }
  }
#else
  // A loop for each way to read: drivers on CPUs run both sides of a branch.
#if BROADCAST > 1
#define READ_WEIGHTS(read)                                                                                                               \
  vec4 mine[(ROWS + BROADCAST - 1) / BROADCAST];                                                                                         \
  for (int r = 0; r < mine.length(); ++r) mine[r] = read(sizes, strides, first + r * BROADCAST + lane % min(ROWS, BROADCAST), k); \
  for (int i = 0; i < ROWS; ++i) w[i] = readInvocationARB(mine[i / BROADCAST], uint(i % BROADCAST));
#else
#define READ_WEIGHTS(read) \
  for (int i = 0; i < ROWS; ++i) w[i] = read(sizes, strides, first + i, k);
#endif
#if (BY_VECTORS & 2) != 0
  bool by_vectors = (strides.w & IN_VECTORS) != 0;
  for (int k = 0; k < (by_vectors ? sizes.x : 0); k += 4) {
    vec4 w[ROWS];
    READ_WEIGHTS(vector_of_weights)
    ADD_FOUR(k)
  }
#if (BY_VECTORS & 8) == 0
  for (int k = 0; k < (by_vectors ? 0 : sizes.x); k += 4) {
    vec4 w[ROWS];
    READ_WEIGHTS(weights_one_by_one)
    ADD_FOUR(k)
  }
#endif
#else
  for (int k = 0; k < sizes.x; k += 4) {
    vec4 w[ROWS];
    READ_WEIGHTS(weights_one_by_one)
    ADD_FOUR(k)
  }
#endif
#undef READ_WEIGHTS
#endif
#undef ADD_INPUT
#undef ADD_FOUR
#if GROUPS > 1
  barrier();  // all have read the layer's input, which its output overwrites
#endif
  float slope = intBitsToFloat(parameters.x);
  bool has_bias = (strides.w & HAS_BIAS) != 0;
#if GROUPS > 1
  for (int i = 0; i < ROWS; ++i) {
    int row = group + i * GROUPS;
    bool is_output = row < sizes.y;
    float bias = has_bias && is_output ? bias_at(sizes.w + row, last) : 0.0;
    for (int j = 0; j < columns; ++j) Values[value_at(row, j)] = is_output ? finished(sums[i][j], bias, has_bias, strides.z, slope) : vec4(0.0);
  }
#else
  // Four rows a turn, then the others move up. Compilers of drivers on CPUs take seconds if it is written out for each row.
  for (int row = first; row < min(first + ROWS, rounded_up(sizes.y)); row += 4) {
    for (int i = 0; i < 4; ++i) {
      bool is_output = row + i < sizes.y;
      float bias = has_bias && is_output ? bias_at(sizes.w + row + i, last) : 0.0;
      for (int j = 0; j < columns; ++j)
        Values[WIDTH * columns - from + (row + i) * columns + j] =
            is_output ? finished(sums[i][j], bias, has_bias, strides.z, slope) : vec4(0.0);
    }
    for (int i = 4; i < ROWS; ++i) sums[i - 4] = sums[i];
  }
#endif
}
#endif
