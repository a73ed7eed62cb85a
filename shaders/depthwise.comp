#version 430 core
#extension GL_GOOGLE_include_directive : require
// depthwise: a convolution in which each output channel is made of one input channel, C = act(alpha conv(A, B) + D + bias). A is the
// input, B the filters, C the output. There is next to nothing to compute: the time goes into reading A and writing C.
//
// An invocation computes RUN neighbours along the width, of `task.x` rows of the output, and goes down the rows: it reads each row of the
// input once, and adds it to the SLOTS rows of the output that have it under their filters. The filter stays in registers. Where
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

#ifndef FILTER_H
#define FILTER_H 3
#endif
#ifndef FILTER_W
#define FILTER_W 3
#endif
#ifndef STRIDE
#define STRIDE 1
#endif
#ifndef RUN
#define RUN 4
#endif
#ifndef WORKGROUP
#define WORKGROUP 64
#endif
#if FILTER_H < 0 || FILTER_H > 7 || FILTER_W < 0 || FILTER_W > 7 || (FILTER_H == 0) != (FILTER_W == 0)
#error "depthwise: FILTER_H and FILTER_W must be 1 to 7, or both 0"
#endif
#if STRIDE != 1 && STRIDE != 2 || RUN != 1 && RUN != 2 && RUN != 4 && RUN != 8
#error "depthwise: STRIDE must be 1 or 2, and RUN 1, 2, 4 or 8"
#endif
#if FILTER_H == 0 && (STRIDE != 1 || RUN != 1)
#error "depthwise: STRIDE and RUN must be 1 where the filter may have any size"
#endif
#if WORKGROUP < 4 || WORKGROUP > 256 || (WORKGROUP & (WORKGROUP - 1)) != 0
#error "depthwise: WORKGROUP must be a power of two from 4 to 256"
#endif

#define WHOLE_SUMS
#define READS_QUADS
#include "gemm.glsl"

#define COLUMNS ((RUN - 1) * STRIDE + FILTER_W)  // of the input, under the filters of a run
#define SLOTS ((FILTER_H + STRIDE - 1) / STRIDE)
#define TAPS (FILTER_H * FILTER_W)
// A few columns too many are never used, and compilers drop them.
#if COLUMNS <= 2
#define ROWS COLUMNS
#elif COLUMNS <= 4
#define ROWS 4
#elif COLUMNS <= 8
#define ROWS 8
#elif COLUMNS <= 12
#define ROWS 12
#elif COLUMNS <= 16
#define ROWS 16
#else
#define ROWS 24
#endif
#define VECTORS 1
#define STEPS RUN
#include "unroll.glsl"
#include "taps.glsl"

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
#if IS_COMPLEX
#error "depthwise: complex elements are read one by one"
#endif
#define ELEMENT VECTOR
#if WIDE == 2 && WORD_SHIFT_A == 2
ELEMENT load_input(int at) { return vector_of_read(TYPE_A, word_of(imageLoad(A, at >> 2), at)); }
#elif WIDE == 2 && WORD_SHIFT_A == 1
ELEMENT load_input(int at) { return vector_of_read(TYPE_A, pair_of(imageLoad(A, at >> 1), at)); }
#else
ELEMENT load_input(int at) { return vector_of_read(TYPE_A, VECTOR_A(at)); }
#endif
ELEMENT load_filter(int at) { return vector_of_read(TYPE_B, VECTOR_B(at)); }
ELEMENT add_product(ELEMENT sum, ELEMENT x, ELEMENT y) { return sum + x * y; }
#else
#define ELEMENT ACC
ELEMENT load_input(int at) { return load_a(at); }
ELEMENT load_filter(int at) { return load_b(at); }
ELEMENT add_product(ELEMENT sum, ELEMENT x, ELEMENT y) { return multiply_add(sum, x, y); }
#endif

#if WIDE
// A device with few storage buffers has no room for one more beside those of an epilogue.
#define BY_VECTOR (!NARROW_C && !(EPILOGUE && BINDING_ITEMS < 5))
#if BY_VECTOR
layout(std430, binding = BINDING_C) buffer BufferVectorsOfC { VECTOR VectorsOfC[]; };  // C again
#endif

#if EPILOGUE
// A sum's residual and activation, for a vector of C. The bias is in `value` already.
VECTOR with_epilogue(int image, int pixel, int channel, VECTOR value) {
#if RESIDUAL
  int d = d_at.x + pixel * d_at.y + channel + image * d_at.w;
#define ELEMENT_D(e) ELEMENT_C(D, d + (e))
  if (has(ADD_D)) value += VECTOR_OF(ELEMENT_D);
#endif
  // activate() is compiled once, and the elements take turns.
  for (int e = 0; e < PER_VECTOR; ++e) {
    ACC first = activate(value[0]);
#if PER_VECTOR == 4
    value = VECTOR(value.yzw, first);
#else
    value = VECTOR(value[1], first);
#endif
  }
  return value;
}

#if SUM == F32 || SUM == F64
// Whether the activation is none but bounds: relu, clamp, or none at all.
bool only_bounds() { return activation == 0 || activation == RELU || activation == CLAMP; }
ACC bounded(ACC x) {
  if (activation == 0 || is_nan(x)) return x;
  return activation == CLAMP ? min(max(x, act_low), act_high) : max(x, ZERO);
}
#define BOUNDED_ELEMENT(e) bounded(value[e])
VECTOR with_bounds(VECTOR value) { return VECTOR_OF(BOUNDED_ELEMENT); }
#else
bool only_bounds() { return true; }
VECTOR with_bounds(VECTOR value) { return value; }
#endif
#endif

VECTOR load_bias(int channel) {
#if EPILOGUE && BIAS
  int bias = bias_at.x + channel * PER_VECTOR;
#define ELEMENT_BIAS(e) ELEMENT_C(Bias, bias + (e))
  if (has(ADD_BIAS)) return VECTOR_OF(ELEMENT_BIAS);
#endif
  return VECTOR(0);
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
#define STORE_ELEMENT(i, j, e) C[at + (e)] = value[e];
  FOR_ELEMENTS(STORE_ELEMENT, 0, 0)
#endif
}
// Ends an element without a residual whose activation has only bounds.
void end_plain(int image, int pixel, int channel, VECTOR sum, VECTOR bias) {
  VECTOR value = alpha == ZERO ? VECTOR(0) : alpha * sum;
#if EPILOGUE
  value = with_bounds(value + bias);
#endif
  store(image, pixel, channel, value);
}
#if EPILOGUE
bool is_plain_end() { return only_bounds() && !has(ADD_D); }
void end(int image, int pixel, int channel, VECTOR sum, VECTOR bias) {
  VECTOR value = (alpha == ZERO ? VECTOR(0) : alpha * sum) + bias;
  store(image, pixel, channel, with_epilogue(image, pixel, channel * PER_VECTOR, value));
}
#endif
#else
ACC load_bias(int channel) { return ZERO; }  // finish() adds it
void end_plain(int image, int pixel, int channel, ACC sum, ACC bias) {
  store_c(place_in_c(pixel, channel, c_at) + image * c_at.w, alpha == ZERO ? ZERO : multiply(alpha, sum));
}
#if EPILOGUE
bool is_plain_end() { return false; }
void end(int image, int pixel, int channel, ACC sum, ACC bias) { finish(image, pixel, channel, sum); }
#endif
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

// These macros are parts of main() and use its variables.
#define PLACE_COLUMN(j) columns_at[j] = column_at(x_in + (j)); are_columns[j] = is_column(x_in + (j));
#define LOAD_COLUMN(j) column[j] = load_column(row, columns_at[j], are_columns[j]);
#define MULTIPLY(h, w, i) sum[(h) / STRIDE][i] = add_product(sum[(h) / STRIDE][i], tap[(h) * FILTER_W + (w)], column[(i) * STRIDE + (w)]);
#define TAP(h, w) FOR_STEPS(MULTIPLY, h, w)
#define TAP_ROW(r, h) if ((h) % STRIDE == (r)) { FOR_TAPS(TAP, h) }
#define ADD_ROW(r)                                                   \
  {                                                                  \
    Row row = row_of(place, depth, turn * STRIDE + (r) - padding.y); \
    ELEMENT column[ROWS];                                            \
    FOR_ROWS(LOAD_COLUMN)                                            \
    FOR_TAP_ROWS(TAP_ROW, r)                                         \
  }
#define CLEAR(s, j, i) sum[s][i] = ELEMENT(0);
#define CLEAR_ROW(r, s) if ((s) < SLOTS) { FOR_STEPS(CLEAR, min(s, SLOTS - 1), 0) }
#define MOVE(s, j, i) sum[s][i] = sum[(s) - 1][i];
#if SLOTS == 1
#define MOVE_SLOTS
#elif SLOTS == 2
#define MOVE_SLOTS FOR_STEPS(MOVE, 1, 0)
#elif SLOTS == 3
#define MOVE_SLOTS FOR_STEPS(MOVE, 2, 0) FOR_STEPS(MOVE, 1, 0)
#elif SLOTS == 4
#define MOVE_SLOTS FOR_STEPS(MOVE, 3, 0) FOR_STEPS(MOVE, 2, 0) FOR_STEPS(MOVE, 1, 0)
#elif SLOTS == 5
#define MOVE_SLOTS FOR_STEPS(MOVE, 4, 0) FOR_STEPS(MOVE, 3, 0) FOR_STEPS(MOVE, 2, 0) FOR_STEPS(MOVE, 1, 0)
#elif SLOTS == 6
#define MOVE_SLOTS FOR_STEPS(MOVE, 5, 0) FOR_STEPS(MOVE, 4, 0) FOR_STEPS(MOVE, 3, 0) FOR_STEPS(MOVE, 2, 0) FOR_STEPS(MOVE, 1, 0)
#else
#define MOVE_SLOTS \
  FOR_STEPS(MOVE, 6, 0) FOR_STEPS(MOVE, 5, 0) FOR_STEPS(MOVE, 4, 0) FOR_STEPS(MOVE, 3, 0) FOR_STEPS(MOVE, 2, 0) FOR_STEPS(MOVE, 1, 0)
#endif
#define END(s, y, i) end_plain(image, pixel + (i), channel, sum[SLOTS - 1][i], bias);
#define MOVE_UP(s, j, i) sum[SLOTS - 1][i] = sum[SLOTS - 1][min((i) + 1, RUN - 1)];
#if WIDE
// The taps of a channel are neighbours: those of a vector's channels fill TAPS vectors.
#define OF_CHANNEL(e, t) taps[((e) * TAPS + (t)) / PER_VECTOR][((e) * TAPS + (t)) % PER_VECTOR]
#define LOAD_TAPS(h, w) taps[(h) * FILTER_W + (w)] = load_filter(at_filter + (h) * FILTER_W + (w));
#if PER_VECTOR == 4
#define TURN_TAP(h, w)                                                            \
  tap[(h) * FILTER_W + (w)] =                                                     \
      VECTOR(OF_CHANNEL(0, (h) * FILTER_W + (w)), OF_CHANNEL(1, (h) * FILTER_W + (w)), \
             OF_CHANNEL(2, (h) * FILTER_W + (w)), OF_CHANNEL(3, (h) * FILTER_W + (w)));
#else
#define TURN_TAP(h, w) tap[(h) * FILTER_W + (w)] = VECTOR(OF_CHANNEL(0, (h) * FILTER_W + (w)), OF_CHANNEL(1, (h) * FILTER_W + (w)));
#endif
#define LOAD_TAPS_OF_ROW(r, h) FOR_TAPS(LOAD_TAPS, h)
#define TURN_TAPS_OF_ROW(r, h) FOR_TAPS(TURN_TAP, h)
#endif
#define LOAD_TAP(h, w) tap[(h) * FILTER_W + (w)] = load_filter(at_filter + (h) * filter_at.y + (w) * filter_at.z);
#define LOAD_TAP_ROW(r, h) FOR_TAPS(LOAD_TAP, h)

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
  bool overlaps = true;
#if EPILOGUE
  overlaps = is_plain_end();
#endif
  if (overlaps) x = min(x, output_size.z - RUN);
  int x_in = x * STRIDE - padding.z, columns_at[ROWS];
  bool are_columns[ROWS];
  FOR_ROWS(PLACE_COLUMN)
  ELEMENT tap[TAPS];
#if WIDE
  if (filter_at.w != 1) {
    ELEMENT taps[TAPS];
    FOR_TAP_ROWS(LOAD_TAPS_OF_ROW, 0)
    FOR_TAP_ROWS(TURN_TAPS_OF_ROW, 0)
  } else
#endif
  {
    FOR_TAP_ROWS(LOAD_TAP_ROW, 0)
  }
  ELEMENT sum[SLOTS][RUN];
  FOR_TAP_ROWS(CLEAR_ROW, 0)
  for (int turn = y_begin; turn < y_end + SLOTS - 1; ++turn) {
    ADD_ROW(0)
#if STRIDE == 2
    ADD_ROW(1)
#endif
    int y = turn - (SLOTS - 1), pixel = (layer_of_image * output_size.y + y) * output_size.z + x;
    if (y >= y_begin) {
      if (overlaps) {
        FOR_STEPS(END, 0, 0)
      }
#if EPILOGUE
      // end() is long, and compiled once. The sums move up each turn.
      else for (int i = 0; i < RUN; ++i) {
        if (x + i < output_size.z) end(image, pixel + i, channel, sum[SLOTS - 1][0], bias);
        FOR_STEPS(MOVE_UP, 0, 0)
      }
#endif
    }
    MOVE_SLOTS
    FOR_STEPS(CLEAR, 0, 0)
  }
#else
  for (int y = y_begin; y < y_end; ++y) {
    ELEMENT sum = ELEMENT(0);
    for (int d = 0; d < filter_size.x; ++d)
      for (int h = 0; h < filter_size.y; ++h) {
        Row row = row_of(place, depth + d * dilation.x, y * strides.y - padding.y + h * dilation.y);
        int at = at_filter + d * filter_at.x + h * filter_at.y, x_in = x * strides.z - padding.z;
        for (int w = 0; w < filter_size.z; ++w)
          sum = add_product(sum, load_filter(at + w * filter_at.z), load_column(row, column_at(x_in + w * dilation.z), is_column(x_in + w * dilation.z)));
      }
    int pixel = (layer_of_image * output_size.y + y) * output_size.z + x;
#if EPILOGUE
    if (!is_plain_end()) end(image, pixel, channel, sum, bias);
    else
#endif
    end_plain(image, pixel, channel, sum, bias);
  }
#endif
}
