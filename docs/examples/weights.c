/* A network of two layers on quantised weights, in an application's buffers and within its frames. */
#include <glgemm/glgemm.h>
#include <glgemm/glgemm_headless.h>
#include <stdio.h>

enum { INPUTS = 256, HIDDEN = 512, OUTPUTS = 64, COLUMNS = 32, GROUP = 128 };

/* Buffers of the application: glGenBuffers, glBufferStorage. */
struct buffers {
  uint32_t w1, b1, w2, w2_scales, b2, x, hidden, y;
};

/* The layers, and what they point to. */
struct network {
  glgemm_quantization in_blocks, in_groups;
  glgemm_epilogue first, second;
  glgemm_product layers[2];
};

static glgemm_view matrix_in(uint32_t buffer, int64_t rows, int64_t columns) {
  const glgemm_view view = {.buffer = buffer, .rows = rows, .columns = columns};
  return view;
}

/* hidden = relu(w1 x + b1), y = w2 hidden + b2, for 32 columns of x. */
static void describe(struct network* network, const struct buffers* in) {
  glgemm_product *first = &network->layers[0], *second = &network->layers[1];
  glgemm_quantization_init(&network->in_blocks, sizeof network->in_blocks);
  network->in_blocks.format = GLGEMM_Q4_0;
  glgemm_epilogue_init(&network->first, sizeof network->first);
  network->first.bias = glgemm_bias_for_each_row(in->b1, 0, GLGEMM_F32);
  network->first.activation = glgemm_activation_relu();
  glgemm_product_init(first, sizeof *first);
  first->a = matrix_in(in->w1, HIDDEN, INPUTS);
  first->quantization_a = &network->in_blocks; /* a's elements are codes, which stand for floats */
  first->b = matrix_in(in->x, INPUTS, COLUMNS);
  first->c = matrix_in(in->hidden, HIDDEN, COLUMNS);
  first->epilogue = &network->first;

  glgemm_quantization_init(&network->in_groups, sizeof network->in_groups);
  network->in_groups.format = GLGEMM_NBITS;
  network->in_groups.bits = 4;
  network->in_groups.group = GROUP;
  network->in_groups.scales_type = GLGEMM_F16;
  network->in_groups.scales_buffer = in->w2_scales;
  glgemm_epilogue_init(&network->second, sizeof network->second);
  network->second.bias = glgemm_bias_for_each_row(in->b2, 0, GLGEMM_F32);
  glgemm_product_init(second, sizeof *second);
  second->a = matrix_in(in->w2, OUTPUTS, HIDDEN);
  second->quantization_a = &network->in_groups;
  second->b = matrix_in(in->hidden, HIDDEN, COLUMNS);
  second->c = matrix_in(in->y, OUTPUTS, COLUMNS);
  second->epilogue = &network->second;
}

static int frames = 0;
static void draw_a_frame(void) {
  ++frames;
}

static glgemm_status over_frames(glgemm_engine* engine, const struct network* network) {
  glgemm_status status = glgemm_prepare(engine, network->layers, 2, NULL); /* compiles now, so that no frame waits for it */
  for (int i = 0; status == GLGEMM_OK && i < 2; ++i) {
    glgemm_job* job = NULL;
    int32_t done = 0;
    status = glgemm_job_start(engine, &network->layers[i], NULL, &job);
    while (status == GLGEMM_OK && !done) {
      status = glgemm_job_advance(job, 4000000, &done); /* enqueues what takes about 4 ms of the device */
      draw_a_frame();
    }
    glgemm_job_destroy(job);
  }
  return status;
}

/* Integers from 0 to most - 1. */
static int next_number(int most) {
  static uint32_t state = 1;
  state = state * 1664525u + 1013904223u;
  return (int)((state >> 16) % (uint32_t)most);
}

/* w x + b on the host, with what the codes of w stand for. */
static void layer_on_host(const float* w, int rows, int columns, const float* x, const float* b, float* result) {
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < COLUMNS; ++j) {
      float sum = b[i];
      for (int p = 0; p < columns; ++p) sum += w[i * columns + p] * x[p * COLUMNS + j];
      result[i * COLUMNS + j] = sum;
    }
}

/* The values are small integers and halves, whose sums floats hold exactly. */
static unsigned char w1[HIDDEN * INPUTS / 32 * 18], w2[OUTPUTS * HIDDEN / 2];
static uint16_t w2_scales[OUTPUTS * HIDDEN / GROUP];
static float x[INPUTS * COLUMNS], b1[HIDDEN], b2[OUTPUTS];
static float numbers[HIDDEN * INPUTS], hidden[HIDDEN * COLUMNS], expected[OUTPUTS * COLUMNS], y[OUTPUTS * COLUMNS];

static void fill(void) {
  for (size_t i = 0; i < sizeof w1; ++i)
    w1[i] = (unsigned char)(i % 18 == 0 ? 0 : i % 18 == 1 ? 0x3c : next_number(256)); /* scales of 1 */
  for (size_t i = 0; i < sizeof w2; ++i) w2[i] = (unsigned char)next_number(256);
  for (int i = 0; i < OUTPUTS * HIDDEN / GROUP; ++i) w2_scales[i] = glgemm_f16_from_float(i % 2 == 0 ? 1 : 0.5f);
  for (int i = 0; i < INPUTS * COLUMNS; ++i) x[i] = (float)(next_number(3) - 1);
  for (int i = 0; i < HIDDEN; ++i) b1[i] = (float)(next_number(9) - 4);
  for (int i = 0; i < OUTPUTS; ++i) b2[i] = (float)(next_number(9) - 4);
}

static glgemm_status compute_on_host(const struct network* network) {
  glgemm_status status = glgemm_dequantize(&network->in_blocks, HIDDEN, INPUTS, w1, NULL, NULL, numbers);
  layer_on_host(numbers, HIDDEN, INPUTS, x, b1, hidden);
  for (int i = 0; i < HIDDEN * COLUMNS; ++i) hidden[i] = hidden[i] > 0 ? hidden[i] : 0;
  if (status == GLGEMM_OK) status = glgemm_dequantize(&network->in_groups, OUTPUTS, HIDDEN, w2, w2_scales, NULL, numbers);
  layer_on_host(numbers, OUTPUTS, HIDDEN, hidden, b2, expected);
  return status;
}

enum { MATRICES = 8 };

/* The application's buffers, made here by glgemm. */
static glgemm_status make_buffers(glgemm_engine* engine, glgemm_matrix** made, struct buffers* names) {
  const struct {
    int64_t count;
    int32_t type;
    const void* data;
    uint32_t* name;
  } all[MATRICES] = {{sizeof w1, GLGEMM_U8, w1, &names->w1},
                     {HIDDEN, GLGEMM_F32, b1, &names->b1},
                     {sizeof w2, GLGEMM_U8, w2, &names->w2},
                     {sizeof w2_scales / 2, GLGEMM_F16, w2_scales, &names->w2_scales},
                     {OUTPUTS, GLGEMM_F32, b2, &names->b2},
                     {INPUTS * COLUMNS, GLGEMM_F32, x, &names->x},
                     {HIDDEN * COLUMNS, GLGEMM_F32, NULL, &names->hidden},
                     {OUTPUTS * COLUMNS, GLGEMM_F32, NULL, &names->y}};
  glgemm_status status = GLGEMM_OK;
  for (int i = 0; status == GLGEMM_OK && i < MATRICES; ++i) {
    glgemm_view view;
    status = glgemm_matrix_create(engine, 1, all[i].count, all[i].type, &made[i]);
    if (status == GLGEMM_OK && all[i].data) status = glgemm_matrix_upload(made[i], all[i].data);
    if (status == GLGEMM_OK) status = glgemm_matrix_view(made[i], &view);
    if (status == GLGEMM_OK) *all[i].name = view.buffer;
  }
  return status;
}

int main(void) {
  int wrong = 0;
  struct buffers buffers;
  struct network network;
  glgemm_headless_context* context = NULL;
  glgemm_engine* engine = NULL;
  glgemm_matrix* matrices[MATRICES] = {NULL};
  glgemm_status status = glgemm_headless_context_create(NULL, &context);
  fill();
  if (status == GLGEMM_OK) status = glgemm_engine_create(glgemm_headless_get_proc_address, NULL, &engine);
  if (status == GLGEMM_OK) status = make_buffers(engine, matrices, &buffers);
  if (status == GLGEMM_OK) {
    describe(&network, &buffers);
    status = over_frames(engine, &network);
  }
  if (status == GLGEMM_OK) status = glgemm_matrix_download(matrices[MATRICES - 1], y);
  if (status == GLGEMM_OK) status = compute_on_host(&network);
  if (status != GLGEMM_OK) fprintf(stderr, "%s\n", glgemm_last_error());
  for (int i = 0; i < OUTPUTS * COLUMNS; ++i) wrong += !(y[i] == expected[i]);
  for (int i = 0; i < MATRICES; ++i) glgemm_matrix_destroy(matrices[i]);
  glgemm_engine_release(engine);
  glgemm_engine_destroy(engine);
  glgemm_headless_context_destroy(context);
  return status != GLGEMM_OK || wrong > 0 || frames < 2;
}
