#version 430 core
#extension GL_GOOGLE_include_directive : require
// depthwise: a convolution in which each output channel is made of one input channel, C = act(alpha conv(A, B) + D + bias). A is the
// input, B the filters, C the output. There is next to nothing to compute: the time goes into reading A and writing C.
//
// An invocation computes RUN neighbours along the width, of `task.x` rows of the output, and goes down the rows: it reads each row of the
// input once, and adds it to the `slots` rows of the output that have it under their filters. The filter stays in registers. Where
// FILTER_H is 0, it computes one element of each row, and reads the input and the filter for each: filters of all sizes, dilation, depth.
//
// With WIDE each element here is PER_VECTOR channels: input, output and filters are read and written by vectors. Their channels are
// innermost, in the filters those or the taps; they begin at multiples of a vector, and there are as many channels of both.
//
// Grid      invocations over the channels and the runs along the width (x) from x0 on, workgroups over the strips of rows (y) from y0 on,
//           and over the images and what they are deep (z) from z0 on
// Uniforms  Distances are in elements, or with WIDE in vectors of those. a_at: the input's first, and its distance from image to image;
//           image_at: its distances along the depth, the height, the width and the channels; b_at: the filters' first; filter_at: their
//           distances along the depth, the height, the width and the output channels; c_at: as a product's, the elements of an image are
//           rows and the channels columns; task: the rows of an invocation, the channels (WIDE: vectors), the runs of a row, and the output
//           channels of an input channel, negative if invocations are counted along the width first
// Macros    FILTER_H, FILTER_W: the filter's sizes, 1 to 7, or both 0; its depth and dilations then are 1. STRIDE: along both, 1 or 2.
//           RUN: 1, 2, 4 or 8, and no more than a row of the output has. WORKGROUP: a power of two from 4 to 256. Without sizes STRIDE and RUN are 1
// Buffers and the other macros: gemm.glsl

#if WIDE
#define A_READS VECTORS
#else
#define A_READS ELEMENTS
#endif
#define B_READS A_READS
#define B_IMAGE 0
#define WINDOWS 0
#include "common.glsl"
#include "types.glsl"
#include "layers.glsl"
#include "sums.glsl"
#include "quantization.glsl"
#include "operand_a.glsl"
#include "operand_b.glsl"
#include "activation.glsl"
#include "operand_c.glsl"
#include "finish.glsl"

const int columns = (RUN - 1) * STRIDE + FILTER_W;  // of the input, under the filters of a run
const int slots = (FILTER_H + STRIDE - 1) / STRIDE;

layout(local_size_x = WORKGROUP) in;

// Depth, height and width.
layout(location = 21) uniform ivec3 image_size;
layout(location = 22) uniform ivec3 output_size;
layout(location = 23) uniform ivec3 filter_size;
layout(location = 24) uniform ivec3 strides;
layout(location = 25) uniform ivec3 dilation;
layout(location = 26) uniform ivec3 padding;  // before the first element
layout(location = 27) uniform ivec4 image_at;
layout(location = 28) uniform ivec4 filter_at;
layout(location = 29) uniform ivec4 task;

#if WIDE
#define ELEMENT VECTOR
ELEMENT load_input(int at) { return vector_a(raw_a(at), 0); }
ELEMENT load_filter(int at) { return vector_b(raw_b(at), 0); }
ELEMENT multiply_add_element(ELEMENT sum, ELEMENT x, ELEMENT y) { return sum + x * y; }
#else
#define ELEMENT ACC
ELEMENT load_input(int at) { return load_a(at); }
ELEMENT load_filter(int at) { return load_b(at); }
ELEMENT multiply_add_element(ELEMENT sum, ELEMENT x, ELEMENT y) { return multiply_add(sum, x, y); }
#endif

#if WIDE
// A device with few storage buffers has no room for one more beside an epilogue's.
#define BY_VECTOR (!NARROW_C && !(EPILOGUE && BINDING_ITEMS < 5))
#if BY_VECTOR
layout(std430, binding = BINDING_C) buffer BufferVectorsOfC { VECTOR VectorsOfC[]; };  // C again
#endif

#if EPILOGUE && (SUM == F32 || SUM == F64)
// Whether the activation is none but bounds: relu, clamp, or none at all.
bool only_bounds() { return activation == 0 || activation == RELU || activation == CLAMP; }
ACC bounded(ACC x) {
  if (activation == 0 || is_nan(x)) return x;
  return activation == CLAMP ? min(max(x, act_low), act_high) : max(x, ACC(0));
}
#else
bool only_bounds() { return true; }
ACC bounded(ACC x) { return x; }
#endif

VECTOR load_bias(int channel) {
#if EPILOGUE && BIAS
  int bias = bias_at.x + channel * PER_VECTOR;
  if (has(ADD_BIAS)) {
    ACC x[PER_VECTOR];
    for (int e = 0; e < PER_VECTOR; ++e) x[e] = ELEMENT_C(Bias, bias + e);
    return vector_of(x);
  }
#endif
  return VECTOR(0);
}
VECTOR scaled(VECTOR sum, VECTOR bias) {
  VECTOR value = alpha == ACC(0) ? VECTOR(0) : alpha * sum;
#if EPILOGUE
  value += bias;
#endif
  return value;
}

// Stores PER_VECTOR channels of an element: `channel` counts vectors.
void store(int image, int pixel, int channel, VECTOR value) {
  int at = c_at.x + pixel * c_at.y + channel * PER_VECTOR + image * c_at.w;
#if BY_VECTOR
  VectorsOfC[at / PER_VECTOR] = value;
#elif NARROW_C  // nobody else writes to these words
  C[at >> 1] = to_16_bits(value[0]) | to_16_bits(value[1]) << 16;
  C[(at >> 1) + 1] = to_16_bits(value[2]) | to_16_bits(value[3]) << 16;
#else
  ACC x[PER_VECTOR] = elements_of(value);
  for (int e = 0; e < PER_VECTOR; ++e) C[at + e] = x[e];
#endif
}
// Ends an element without a residual whose activation has only bounds.
void end_plain(int image, int pixel, int channel, VECTOR sum, VECTOR bias) {
  ACC x[PER_VECTOR] = elements_of(scaled(sum, bias));
  for (int e = 0; e < PER_VECTOR; ++e) x[e] = bounded(x[e]);
  store(image, pixel, channel, vector_of(x));
}
#if EPILOGUE
bool is_plain_end() { return only_bounds() && !has(ADD_D); }
void end(int image, int pixel, int channel, VECTOR sum, VECTOR bias) {
  VECTOR value = scaled(sum, bias);
#if RESIDUAL
  if (has(ADD_D)) {
    ACC x[PER_VECTOR];
    int d = d_at.x + pixel * d_at.y + channel * PER_VECTOR + image * d_at.w;
    for (int e = 0; e < PER_VECTOR; ++e) x[e] = ELEMENT_C(D, d + e);
    value += vector_of(x);
  }
#endif
  // activate() is compiled once, and the elements take turns.
  ACC x[PER_VECTOR] = elements_of(value);
  for (int e = 0; e < PER_VECTOR; ++e) {
    ACC first = activate(x[0]);
    for (int i = 1; i < PER_VECTOR; ++i) x[i - 1] = x[i];
    x[PER_VECTOR - 1] = first;
  }
  store(image, pixel, channel, vector_of(x));
}
#else
bool is_plain_end() { return true; }
void end(int image, int pixel, int channel, VECTOR sum, VECTOR bias) {}  // not called: each end is plain
#endif
#else
ACC load_bias(int channel) { return ACC(0); }  // finish() adds it
bool is_plain_end() { return EPILOGUE == 0; }
void end_plain(int image, int pixel, int channel, ACC sum, ACC bias) {
  store_c(place_in_c(pixel, channel, c_at) + image * c_at.w, alpha == ACC(0) ? ACC(0) : multiply(alpha, sum));
}
void end(int image, int pixel, int channel, ACC sum, ACC bias) { finish(image, pixel, channel, sum); }
#endif

// Row `y` of the input in the layer `depth` of an image whose channel begins at `place`. Outside there are zeros.
struct Row {
  int begin;
  bool inside;
};
Row row_of(int place, int depth, int y) {
  bool inside = depth >= 0 && depth < image_size.x && y >= 0 && y < image_size.y;
  return Row(place + clamp(depth, 0, image_size.x - 1) * image_at.x + clamp(y, 0, image_size.y - 1) * image_at.y, inside);
}
// An element of it, `at` from its first; `inside` if it is one.
ELEMENT load_column(Row row, int at, bool inside) {
  ELEMENT value = load_input(row.begin + at);
  if (!(row.inside && inside)) value = ELEMENT(0);
  return value;
}
int column_at(int x) { return clamp(x, 0, image_size.z - 1) * image_at.z; }
bool is_column(int x) { return x >= 0 && x < image_size.z; }

#if FILTER_H > 0
// Brings the filter of a channel. With WIDE the taps of a channel may be neighbours: a vector's channels then fill as many vectors as they have
// taps each.
void load_taps(int at, out ELEMENT tap[FILTER_H][FILTER_W]) {
  for (int h = 0; h < FILTER_H; ++h)
    for (int w = 0; w < FILTER_W; ++w) tap[h][w] = load_filter(at + h * filter_at.y + w * filter_at.z);
}
#if WIDE
void load_neighbouring_taps(int at, out ELEMENT tap[FILTER_H][FILTER_W]) {
  const int count = FILTER_H * FILTER_W;
  ACC taps[count][PER_VECTOR];
  for (int t = 0; t < count; ++t) taps[t] = elements_of(load_filter(at + t));
  for (int h = 0; h < FILTER_H; ++h)
    for (int w = 0; w < FILTER_W; ++w) {
      ACC x[PER_VECTOR];
      for (int e = 0; e < PER_VECTOR; ++e) {
        int t = e * count + h * FILTER_W + w;
        x[e] = taps[t / PER_VECTOR][t % PER_VECTOR];
      }
      tap[h][w] = vector_of(x);
    }
}
#endif

// Where an invocation's columns of the input lie, and whether each is inside the image: 1 or 0. (zink cannot have an array of booleans.)
struct Run {
  int at[columns];
  int inside[columns];
};
// Adds row r, 0 or 1, of STRIDE rows of the input to the sums of the rows of the output that have it under their filters.
void add_row(int r, Row row, Run run, ELEMENT tap[FILTER_H][FILTER_W], inout ELEMENT sum[slots][RUN]) {
  ELEMENT column[columns];
  for (int j = 0; j < columns; ++j) column[j] = load_column(row, run.at[j], run.inside[j] != 0);
  for (int h = 0; h < FILTER_H; ++h)
    if (h % STRIDE == r)
      for (int w = 0; w < FILTER_W; ++w)
        for (int i = 0; i < RUN; ++i)
          sum[h / STRIDE][i] = multiply_add_element(sum[h / STRIDE][i], tap[h][w], column[i * STRIDE + w]);
}
#endif

void main() {
  int q = x0 + int(gl_GlobalInvocationID.x);
  if (q >= task.y * task.z) return;
  bool width_first = task.w < 0;
  int channel = width_first ? q / task.z : q % task.y, x = (width_first ? q % task.z : q / task.y) * RUN;
  int layer = z0 + int(gl_WorkGroupID.z), image = layer / output_size.x, layer_of_image = layer % output_size.x;
  int y_begin = (y0 + int(gl_WorkGroupID.y)) * task.x, y_end = min(y_begin + task.x, output_size.y);
  int place = a_at.x + image * a_at.w + channel / abs(task.w) * image_at.w;
  int at_filter = b_at.x + channel * filter_at.w;
  int depth = layer_of_image * strides.x - padding.x;
  ELEMENT bias = load_bias(channel);
#if FILTER_H > 0
  // The last run overlaps the one before it, if they do not meet in a residual that is the output itself: no element needs a condition.
  bool overlaps = is_plain_end();
  if (overlaps) x = min(x, output_size.z - RUN);
  int x_in = x * STRIDE - padding.z;
  Run run;
  for (int j = 0; j < columns; ++j) {
    run.at[j] = column_at(x_in + j);
    run.inside[j] = is_column(x_in + j) ? 1 : 0;
  }
  ELEMENT tap[FILTER_H][FILTER_W];
#if WIDE
  if (filter_at.w != 1) load_neighbouring_taps(at_filter, tap);
  else
#endif
  load_taps(at_filter, tap);
  ELEMENT sum[slots][RUN];
  for (int s = 0; s < slots; ++s)
    for (int i = 0; i < RUN; ++i) sum[s][i] = ELEMENT(0);
  for (int turn = y_begin; turn < y_end + slots - 1; ++turn) {
    add_row(0, row_of(place, depth, turn * STRIDE - padding.y), run, tap, sum);
#if STRIDE == 2
    add_row(1, row_of(place, depth, turn * STRIDE + 1 - padding.y), run, tap, sum);
#endif
    int y = turn - (slots - 1), pixel = (layer_of_image * output_size.y + y) * output_size.z + x;
    if (y >= y_begin) {
      if (overlaps) {
        for (int i = 0; i < RUN; ++i) end_plain(image, pixel + i, channel, sum[slots - 1][i], bias);
      } else {
        // end() is long, and compiled once. The sums move up each turn.
        for (int i = 0; i < RUN; ++i) {
          if (x + i < output_size.z) end(image, pixel + i, channel, sum[slots - 1][0], bias);
          for (int j = 1; j < RUN; ++j) sum[slots - 1][j - 1] = sum[slots - 1][j];
        }
      }
    }
    for (int s = slots - 1; s > 0; --s)
      for (int i = 0; i < RUN; ++i) sum[s][i] = sum[s - 1][i];
    for (int i = 0; i < RUN; ++i) sum[0][i] = ELEMENT(0);
  }
#else
  for (int y = y_begin; y < y_end; ++y) {
    ELEMENT sum = ELEMENT(0);
    for (int d = 0; d < filter_size.x; ++d)
      for (int h = 0; h < filter_size.y; ++h) {
        Row row = row_of(place, depth + d * dilation.x, y * strides.y - padding.y + h * dilation.y);
        int at = at_filter + d * filter_at.x + h * filter_at.y, x_in = x * strides.z - padding.z;
        for (int w = 0; w < filter_size.z; ++w)
          sum = multiply_add_element(sum, load_filter(at + w * filter_at.z), load_column(row, column_at(x_in + w * dilation.z), is_column(x_in + w * dilation.z)));
      }
    int pixel = (layer_of_image * output_size.y + y) * output_size.z + x;
    if (is_plain_end()) end_plain(image, pixel, channel, sum, bias);
    else end(image, pixel, channel, sum, bias);
  }
#endif
}
