/* Multiplies two small matrices from C99 with the installed library, on host arrays, on the device, as a job, and streamed from
 * functions, and checks the products. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <glgemm/glgemm_headless.h>

/* Ends the program where a call failed. */
static void check(glgemm_status status, const char* call) {
  if (status == GLGEMM_OK) return;
  fprintf(stderr, "%s: %s\n", call, glgemm_last_error());
  exit(1);
}
#define CHECK(call) check(call, #call)

/* The product's matrices on the device: A, B, C, and the bias. */
enum { A, B, C, BIAS, COUNT };
static const int64_t rows[COUNT] = {3, 2, 3, 1}, columns[COUNT] = {2, 3, 3, 3};

/* A product of matrices on the device; the caller frees them. */
static void on_device(glgemm_engine* engine, const float* a, const float* b, glgemm_matrix** matrices, glgemm_product* product) {
  const float hundreds[3] = {100, 100, 100};
  int i;
  for (i = 0; i < COUNT; ++i) CHECK(glgemm_matrix_create(engine, rows[i], columns[i], GLGEMM_F32, &matrices[i]));
  CHECK(glgemm_matrix_upload(matrices[A], a));
  CHECK(glgemm_matrix_upload(matrices[B], b));
  CHECK(glgemm_matrix_upload(matrices[BIAS], hundreds));
  CHECK(glgemm_product_init(product, sizeof *product));
  CHECK(glgemm_matrix_view(matrices[A], &product->a));
  CHECK(glgemm_matrix_view(matrices[B], &product->b));
  CHECK(glgemm_matrix_view(matrices[C], &product->c));
}

static void take(glgemm_matrix** matrices, float* c) {
  int i;
  CHECK(glgemm_matrix_download(matrices[C], c));
  for (i = 0; i < COUNT; ++i) glgemm_matrix_destroy(matrices[i]);
}

/* C = relu(-A B + 100). */
static void multiply_on_device(glgemm_engine* engine, const float* a, const float* b, float* c) {
  glgemm_matrix* matrices[COUNT];
  glgemm_view bias;
  glgemm_product product;
  glgemm_epilogue epilogue;
  glgemm_fence* fence = NULL;
  int32_t done = 0;
  on_device(engine, a, b, matrices, &product);
  CHECK(glgemm_matrix_view(matrices[BIAS], &bias));
  CHECK(glgemm_epilogue_init(&epilogue, sizeof epilogue));
  product.alpha.re = -1;
  product.epilogue = &epilogue;
  epilogue.bias = glgemm_bias_for_each_column(bias.buffer, 0);
  epilogue.activation = glgemm_activation_relu();
  CHECK(glgemm_gemm(engine, &product, NULL, NULL));
  CHECK(glgemm_fence_create(engine, &fence));
  CHECK(glgemm_fence_wait(fence, GLGEMM_FOREVER, &done));
  if (!done) exit(1);
  glgemm_fence_destroy(fence);
  take(matrices, c);
}

/* C = A B, slice by slice. */
static void multiply_as_job(glgemm_engine* engine, const float* a, const float* b, float* c) {
  glgemm_matrix* matrices[COUNT];
  glgemm_product product;
  glgemm_job* job = NULL;
  glgemm_job_info info;
  int32_t done = 0;
  on_device(engine, a, b, matrices, &product);
  CHECK(glgemm_job_info_init(&info, sizeof info));
  CHECK(glgemm_job_start(engine, &product, NULL, &job));
  while (!done) CHECK(glgemm_job_advance(job, 4000000, &done));
  CHECK(glgemm_job_progress(job, &info));
  if (!info.done) exit(1);
  glgemm_job_destroy(job);
  take(matrices, c);
}

/* A section of the 3 x 2 matrix at `user`. */
static int32_t read_a(const glgemm_section* section, void* to, void* user) {
  const float* a = (const float*)user;
  float* into = (float*)to;
  int64_t i, j;
  for (i = 0; i < section->rows; ++i)
    for (j = 0; j < section->columns; ++j) *into++ = a[(section->row + i) * 2 + section->column + j];
  return 0;
}

/* C = A B on the host's side, in little memory on the device; A by a function. */
static void multiply_streamed(glgemm_engine* engine, float* a, float* b, float* c) {
  glgemm_host_product product;
  glgemm_stream_options options;
  glgemm_stream_report report;
  CHECK(glgemm_host_product_init(&product, sizeof product));
  CHECK(glgemm_stream_options_init(&options, sizeof options));
  CHECK(glgemm_stream_report_init(&report, sizeof report));
  product.a.rows = product.c.rows = 3;
  product.a.columns = product.b.rows = 2;
  product.b.columns = product.c.columns = 3;
  product.a.read = read_a;
  product.a.user = a;
  product.b.data = b;
  product.c.data = c;
  options.device_memory_limit_bytes = 1 << 16;
  CHECK(glgemm_multiply_streamed(engine, &product, &options, &report));
  if (report.bytes_from_device != 9 * (int64_t)sizeof(float)) exit(1);
}

int main(void) {
  float a[6] = {1, 4, 2, 5, 3, 6}, b[6] = {7, 8, 9, 10, 11, 12}, c[4][9];
  const float right[9] = {47, 52, 57, 64, 71, 78, 81, 90, 99}, right_on_device[9] = {53, 48, 43, 36, 29, 22, 19, 10, 1};
  glgemm_headless_context* context = NULL;
  glgemm_engine* engine = NULL;
  glgemm_device_info info;
  glgemm_status status = glgemm_headless_context_create(NULL, &context);
  int i, wrong = 0;
  check(status, status == GLGEMM_UNSUPPORTED ? "no device" : "glgemm_headless_context_create");
  CHECK(glgemm_engine_create(glgemm_headless_get_proc_address, NULL, &engine));
  CHECK(glgemm_multiply(engine, GLGEMM_F32, 3, 3, 2, a, b, c[0], NULL, NULL));
  multiply_on_device(engine, a, b, c[1]);
  multiply_as_job(engine, a, b, c[2]);
  multiply_streamed(engine, a, b, c[3]);
  for (i = 0; i < 4; ++i) wrong |= memcmp(c[i], i == 1 ? right_on_device : right, sizeof c[i]) != 0;
  wrong |= glgemm_multiply(engine, GLGEMM_F32, -1, 1, 1, a, b, c[0], NULL, NULL) != GLGEMM_INVALID_ARGUMENT;
  wrong |= glgemm_api_version() != GLGEMM_API_VERSION;
  CHECK(glgemm_device_info_init(&info, sizeof info));
  CHECK(glgemm_engine_device(engine, &info));
  printf("glgemm %s from C on %s: %s\n", glgemm_version(), info.renderer, wrong ? "WRONG" : "right");
  CHECK(glgemm_engine_release(engine));
  glgemm_engine_destroy(engine);
  glgemm_headless_context_destroy(context);
  return wrong;
}
