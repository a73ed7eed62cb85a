#version 430 core
#extension GL_GOOGLE_include_directive : require
// mlp: fully connected layers, x = act(W x + bias) one after the other, for a block of samples that stays on the chip meanwhile.
//
// A workgroup takes LANES * TILE_N samples through all layers. With more than one group of LANES invocations, the layer's input lies in
// shared memory, weights come there in steps of STEP_K along the inputs, and each group computes the outputs group, group + GROUPS, ...: GPUs
// are made for that. With one group nothing is shared and nobody waits: each invocation has its own samples, and reads weights as it needs
// them. CPUs are made for that.
//
// Grid      workgroups over the samples (x)
// Buffers   0: the input; 1 or image unit 0: the weights of all layers; 2: the output; 4: the biases of all layers, as words
// Uniforms  size: layers, samples; a_at, c_at: where input and output begin, from a row to the next, from a sample to the next; layers: see below
// Shared    16 * WIDTH * LANES * TILE_N / 4 + 16 * WIDTH * (STEP_K / 4 + 1) bytes, with several groups
// Macros    WIDTH: at least the inputs and outputs of each layer: a multiple of 16, with several groups GROUPS * TILE_M; TILE_M: 4, 8
//           or 16 outputs and TILE_N: 4, 8 or 16 samples for each invocation; LANES: invocations beside each other along the samples;
//           STEP_K: a multiple of 4; FEW_ROWS: with several groups, outputs for each invocation of a layer that has few;
//           BY_VECTORS: what is read or written by vectors of 16 bytes, a sum of 1: the input, 2: the weights of layers where they
//           lie so, 4: the output, 8 (with 2): the weights of all layers;
//           EPILOGUE: 1 if an activation may be another than relu and leaky_relu
// The other macros: the files that are included

#define OF_LAYERS
#if (BY_VECTORS & 1) != 0
#define A_READS VECTORS
#else
#define A_READS ELEMENTS
#endif
#if (BY_VECTORS & 2) != 0
#define B_READS VECTORS
#else
#define B_READS ELEMENTS
#endif
#if (BY_VECTORS & 4) != 0
#define C_BY_VECTORS
#endif
#define B_IMAGE (WIDE == 2)
#include "common.glsl"
#include "types.glsl"
#include "layers.glsl"
#include "sums.glsl"
#include "quantization.glsl"
#include "operand_a.glsl"
#include "operand_b.glsl"
#include "activation.glsl"
#include "operand_c.glsl"

layout(local_size_x = WORKGROUP) in;

// Of each layer three: inputs, outputs, where its weights begin, and where its bias begins; from an output's weights to the next, from an
// input's to the next, the activation's number, and flags; the bits of the activation's two parameters, of which one is the factor of a sine.
layout(location = 31) uniform ivec4 layers[48];
const int HAS_BIAS = 1, IN_VECTORS = 2;

layout(std430, binding = BINDING_BIAS) readonly buffer BufferBias { uint Bias[]; };

const int columns = TILE_N / 4, row_of_samples = LANES * columns;  // in vectors of four samples
int lane, group;

// The layer's input, a row of samples for each. Vector j of an invocation is vector lane + j * LANES of the row: neighbours read neighbours.
#if GROUPS > 1
shared vec4 Values[WIDTH * row_of_samples];
int value_at(int row, int j) { return row * row_of_samples + lane + j * LANES; }
#else
vec4 Values[2 * WIDTH * columns];  // and what the layer computes
int from = 0;
int value_at(int row, int j) { return from + row * columns + j; }
#endif

// Inputs are taken by so many at a time: behind the last one there are zeros.
const int step_of_inputs = GROUPS > 1 ? STEP_K : 4;
int rounded_up(int rows) { return (rows + step_of_inputs - 1) / step_of_inputs * step_of_inputs; }

// Samples s, ..., s + 3 of row `row` of the input; the last sample is repeated, and behind the last row there are zeros.
vec4 input_at(int row, int s) {
  if (row >= layers[0].x) return vec4(0.0);
  int at = a_at.x + row * a_at.y;
#if (BY_VECTORS & 1) != 0
  at += min(s, size.y - 4);
  return vector_a(raw_a(at / 4), at);
#else
  ivec4 samples = at + min(s + ivec4(0, 1, 2, 3), size.y - 1) * a_at.z;
  return vec4(load_a(samples.x), load_a(samples.y), load_a(samples.z), load_a(samples.w));
#endif
}

// The weights of inputs k, ..., k + 3 for an output; 0 behind the last input. Behind the last output the last one is repeated.
int place_of_weights(ivec4 sizes, ivec4 strides, int row, int k) {
  return sizes.z + min(row, sizes.y - 1) * strides.x + k * strides.y;
}
vec4 weights_one_by_one(ivec4 sizes, ivec4 strides, int row, int k) {
  int at = place_of_weights(sizes, strides, row, k);
  vec4 weights = vec4(0.0);
  if (k < sizes.x) weights.x = load_b(at);
  if (k + 1 < sizes.x) weights.y = load_b(at + strides.y);
  if (k + 2 < sizes.x) weights.z = load_b(at + 2 * strides.y);
  if (k + 3 < sizes.x) weights.w = load_b(at + 3 * strides.y);
  return weights;
}
#if (BY_VECTORS & 2) != 0
vec4 vector_of_weights(ivec4 sizes, ivec4 strides, int row, int k) {
  int at = place_of_weights(sizes, strides, row, k);
  return vector_b(raw_b(at / 4), at);
}
#endif
vec4 weights_at(ivec4 sizes, ivec4 strides, int row, int k) {
#if (BY_VECTORS & 2) != 0
  if ((strides.w & IN_VECTORS) != 0) return k < sizes.x ? vector_of_weights(sizes, strides, row, k) : vec4(0.0);
#endif
  return weights_one_by_one(sizes, strides, row, k);
}

float bias_at(int at, bool last) {
#if NARROW_C
  if (last) return from_16_bits(Bias[at >> 1], at, TYPE_C == BF16);
#endif
  return uintBitsToFloat(Bias[at]);
}

// The activations that are cheap enough to be written out for each element. A number below 0 is found by its bits, which NaN and -0 are
// not: drivers make a maximum of the comparison that loses them.
float rectified(float x, int kind, float slope) {
  bool is_negative = floatBitsToUint(x) - 0x80000001u <= 0x7f7fffffu;
  return is_negative && kind == RELU ? 0.0 : is_negative && kind == LEAKY_RELU ? multiply(slope, x) : x;
}

// The end of four sums. What is behind the last output meets weights of 0 in the next layer, and must be finite: it is 0.
vec4 finished(vec4 sum, float bias, bool has_bias, int kind, float slope) {
  PRECISE vec4 x = sum;
  if (has_bias) ADD_TO(x, vec4(bias));
  return vec4(rectified(x.x, kind, slope), rectified(x.y, kind, slope), rectified(x.z, kind, slope), rectified(x.w, kind, slope));
}

#if GROUPS > 1
shared vec4 Weights[WIDTH * (STEP_K / 4 + 1)];  // a row for each output, and a vector of padding: neighbours meet no bank twice
#endif

#define ROWS TILE_M
#define LAYER tall_layer
#include "mlp_layer.glsl"
#undef ROWS
#undef LAYER
// A last layer of few outputs, with several groups. It leaves rows as they are that another layer would read.
#define ROWS FEW_ROWS
#define LAYER low_layer
#include "mlp_layer.glsl"

// Applies the activations that the layers' text has not: element by element, so that they are compiled once.
#if EPILOGUE
void activate_all(ivec4 sizes, ivec4 strides, ivec4 parameters) {
  activation = strides.z;
  act_low = intBitsToFloat(parameters.x);
  act_high = intBitsToFloat(parameters.y);
  for (int row = group; row < sizes.y; row += GROUPS)
    for (int j = 0; j < columns; ++j) {
      vec4 x = Values[value_at(row, j)];
      for (int e = 0; e < 4; ++e) x = vec4(x.yzw, activate(x.x));
      Values[value_at(row, j)] = x;
    }
}
#endif

// Stores samples s, ..., s + 3 of an output.
void store(int row, int s, vec4 x) {
  int at = c_at.x + row * c_at.y;
#if (BY_VECTORS & 4) != 0
  if (s < size.y) store_c4((at + s) / 4, x);
#else
  for (int e = 0; e < 4; ++e) {
    if (s + e < size.y) store_c(at + (s + e) * c_at.z, x.x);
    x = x.yzwx;
  }
#endif
}

void main() {
  if (size.x == 0) return;
  lane = int(gl_LocalInvocationIndex) % LANES;
  group = int(gl_LocalInvocationIndex) / LANES;
  int first = x0 + int(gl_WorkGroupID.x) * (LANES * TILE_N), rows = rounded_up(layers[0].x);
#if GROUPS > 1
  // Where the numbers of a sample are neighbours, invocations that are neighbours read along them.
  bool along_rows = a_at.z != 1;
  for (int v = int(gl_LocalInvocationIndex); v < rows * row_of_samples; v += WORKGROUP) {
    int row = along_rows ? v % rows : v / row_of_samples, column = along_rows ? v / rows : v % row_of_samples;
    Values[row * row_of_samples + column] = input_at(row, first + 4 * column);
  }
  barrier();
#else
  for (int row = 0; row < rows; ++row)
    for (int j = 0; j < columns; ++j) Values[value_at(row, j)] = input_at(row, first + 4 * (lane + j * LANES));
#endif
  for (int l = 0; l < size.x; ++l) {
    ivec4 sizes = layers[3 * l], strides = layers[3 * l + 1], parameters = layers[3 * l + 2];
    bool last = l + 1 == size.x;
#if GROUPS > 1
    if (!last || sizes.y > GROUPS * FEW_ROWS)
      tall_layer(0, sizes, strides, parameters, last);
    else
      low_layer(0, sizes, strides, parameters, last);
    barrier();
#else
    for (int row = 0; row < sizes.y; row += TILE_M) tall_layer(row, sizes, strides, parameters, last);
    from = WIDTH * columns - from;
#endif
#if EPILOGUE
    if (strides.z > LEAKY_RELU) {
      activate_all(sizes, strides, parameters);
#if GROUPS > 1
      barrier();
#endif
    }
#endif
  }
  int outputs = layers[3 * (size.x - 1)].y;
#if GROUPS > 1
  along_rows = c_at.z != 1;
  for (int v = int(gl_LocalInvocationIndex); v < outputs * row_of_samples; v += WORKGROUP) {
    int row = along_rows ? v % outputs : v / row_of_samples, column = along_rows ? v / outputs : v % row_of_samples;
    store(row, first + 4 * column, Values[row * row_of_samples + column]);
  }
#else
  for (int row = 0; row < outputs; ++row)
    for (int j = 0; j < columns; ++j) store(row, first + 4 * (lane + j * LANES), Values[value_at(row, j)]);
#endif
}
