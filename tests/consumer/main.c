/* Multiplies two small matrices from C99 with the installed library, on host arrays, on the device, as a job, and streamed from
 * functions, and checks the products. */
#include <stdio.h>
#include <string.h>

#include <glgemm/glgemm_headless.h>

static int failed(const char* what) {
  fprintf(stderr, "%s: %s\n", what, glgemm_last_error());
  return 1;
}

/* C = A B on host arrays. */
static int multiply(glgemm_engine* engine, const float* a, const float* b, float* c) {
  return glgemm_multiply(engine, GLGEMM_F32, 3, 3, 2, a, b, c, NULL, NULL) == GLGEMM_OK ? 0 : failed("glgemm_multiply");
}

/* C = relu(-A B + 100) on matrices on the device. */
static int multiply_on_device(glgemm_engine* engine, const float* a, const float* b, float* c) {
  const float hundreds[3] = {100, 100, 100};
  glgemm_matrix *on_a = NULL, *on_b = NULL, *on_c = NULL, *bias = NULL;
  glgemm_view bias_view;
  glgemm_product product;
  glgemm_epilogue epilogue;
  glgemm_fence* fence = NULL;
  int32_t done = 0;
  const int ok =
      glgemm_matrix_create(engine, 3, 2, GLGEMM_F32, &on_a) == GLGEMM_OK &&
      glgemm_matrix_create(engine, 2, 3, GLGEMM_F32, &on_b) == GLGEMM_OK &&
      glgemm_matrix_create(engine, 3, 3, GLGEMM_F32, &on_c) == GLGEMM_OK &&
      glgemm_matrix_create(engine, 1, 3, GLGEMM_F32, &bias) == GLGEMM_OK && glgemm_matrix_upload(on_a, a) == GLGEMM_OK &&
      glgemm_matrix_upload(on_b, b) == GLGEMM_OK && glgemm_matrix_upload(bias, hundreds) == GLGEMM_OK &&
      glgemm_matrix_view(bias, &bias_view) == GLGEMM_OK && glgemm_product_init(&product, sizeof product) == GLGEMM_OK &&
      glgemm_epilogue_init(&epilogue, sizeof epilogue) == GLGEMM_OK && glgemm_matrix_view(on_a, &product.a) == GLGEMM_OK &&
      glgemm_matrix_view(on_b, &product.b) == GLGEMM_OK && glgemm_matrix_view(on_c, &product.c) == GLGEMM_OK;
  if (ok) {
    product.alpha.re = -1;
    product.epilogue = &epilogue;
    epilogue.bias = glgemm_bias_for_each_column(bias_view.buffer, 0);
    epilogue.activation = glgemm_activation_relu();
  }
  if (!ok || glgemm_gemm(engine, &product, NULL, NULL) != GLGEMM_OK || glgemm_fence_create(engine, &fence) != GLGEMM_OK ||
      glgemm_fence_wait(fence, GLGEMM_FOREVER, &done) != GLGEMM_OK || !done || glgemm_matrix_download(on_c, c) != GLGEMM_OK)
    return failed("on the device");
  glgemm_fence_destroy(fence);
  glgemm_matrix_destroy(on_a);
  glgemm_matrix_destroy(on_b);
  glgemm_matrix_destroy(on_c);
  glgemm_matrix_destroy(bias);
  return 0;
}

/* C = A B on matrices on the device, slice by slice. */
static int multiply_as_job(glgemm_engine* engine, const float* a, const float* b, float* c) {
  glgemm_matrix *on_a = NULL, *on_b = NULL, *on_c = NULL;
  glgemm_product product;
  glgemm_job* job = NULL;
  glgemm_job_info info;
  int32_t done = 0;
  glgemm_status status = GLGEMM_OK;
  if (glgemm_matrix_create(engine, 3, 2, GLGEMM_F32, &on_a) != GLGEMM_OK ||
      glgemm_matrix_create(engine, 2, 3, GLGEMM_F32, &on_b) != GLGEMM_OK ||
      glgemm_matrix_create(engine, 3, 3, GLGEMM_F32, &on_c) != GLGEMM_OK || glgemm_matrix_upload(on_a, a) != GLGEMM_OK ||
      glgemm_matrix_upload(on_b, b) != GLGEMM_OK || glgemm_product_init(&product, sizeof product) != GLGEMM_OK ||
      glgemm_job_info_init(&info, sizeof info) != GLGEMM_OK || glgemm_matrix_view(on_a, &product.a) != GLGEMM_OK ||
      glgemm_matrix_view(on_b, &product.b) != GLGEMM_OK || glgemm_matrix_view(on_c, &product.c) != GLGEMM_OK ||
      glgemm_job_start(engine, &product, NULL, &job) != GLGEMM_OK)
    return failed("the job's start");
  while (status == GLGEMM_OK && !done) status = glgemm_job_advance(job, 4000000, &done);
  if (status != GLGEMM_OK || glgemm_job_progress(job, &info) != GLGEMM_OK || !info.done ||
      glgemm_matrix_download(on_c, c) != GLGEMM_OK)
    return failed("the job");
  glgemm_job_destroy(job);
  glgemm_matrix_destroy(on_a);
  glgemm_matrix_destroy(on_b);
  glgemm_matrix_destroy(on_c);
  return 0;
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
static int multiply_streamed(glgemm_engine* engine, float* a, float* b, float* c) {
  glgemm_host_product product;
  glgemm_stream_options options;
  glgemm_stream_report report;
  if (glgemm_host_product_init(&product, sizeof product) != GLGEMM_OK ||
      glgemm_stream_options_init(&options, sizeof options) != GLGEMM_OK ||
      glgemm_stream_report_init(&report, sizeof report) != GLGEMM_OK)
    return failed("a struct");
  product.a.rows = product.c.rows = 3;
  product.a.columns = product.b.rows = 2;
  product.b.columns = product.c.columns = 3;
  product.a.read = read_a;
  product.a.user = a;
  product.b.data = b;
  product.c.data = c;
  options.device_memory_limit_bytes = 1 << 16;
  if (glgemm_multiply_streamed(engine, &product, &options, &report) != GLGEMM_OK) return failed("glgemm_multiply_streamed");
  return report.bytes_from_device == 9 * (int64_t)sizeof(float) ? 0 : 1;
}

int main(void) {
  float a[6] = {1, 4, 2, 5, 3, 6};
  float b[6] = {7, 8, 9, 10, 11, 12};
  const float right[9] = {47, 52, 57, 64, 71, 78, 81, 90, 99}, right_on_device[9] = {53, 48, 43, 36, 29, 22, 19, 10, 1};
  float c[9], c_on_device[9], c_of_job[9], c_streamed[9];
  glgemm_headless_context* context = NULL;
  glgemm_engine* engine = NULL;
  glgemm_device_info info;
  glgemm_status status = glgemm_headless_context_create(NULL, &context);
  if (status != GLGEMM_OK) return failed(status == GLGEMM_UNSUPPORTED ? "no device" : "glgemm_headless_context_create");
  if (glgemm_engine_create(glgemm_headless_get_proc_address, NULL, &engine) != GLGEMM_OK) return failed("glgemm_engine_create");
  if (multiply(engine, a, b, c) != 0 || multiply_on_device(engine, a, b, c_on_device) != 0 ||
      multiply_as_job(engine, a, b, c_of_job) != 0 || multiply_streamed(engine, a, b, c_streamed) != 0)
    return 1;
  if (glgemm_multiply(engine, GLGEMM_F32, -1, 1, 1, a, b, c, NULL, NULL) != GLGEMM_INVALID_ARGUMENT) return 1;
  if (glgemm_api_version() != GLGEMM_API_VERSION || glgemm_device_info_init(&info, sizeof info) != GLGEMM_OK ||
      glgemm_engine_device(engine, &info) != GLGEMM_OK)
    return failed("glgemm_engine_device");
  status = memcmp(c, right, sizeof c) == 0 && memcmp(c_on_device, right_on_device, sizeof c) == 0 &&
                   memcmp(c_of_job, right, sizeof c) == 0 && memcmp(c_streamed, right, sizeof c) == 0
               ? 0
               : 1;
  printf("glgemm %s from C on %s: %s\n", glgemm_version(), info.renderer, status == 0 ? "right" : "WRONG");
  if (glgemm_engine_release(engine) != GLGEMM_OK) return failed("glgemm_engine_release");
  glgemm_engine_destroy(engine);
  glgemm_headless_context_destroy(context);
  return status;
}
