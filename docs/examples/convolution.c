/* A convolution from C. */
#include <glgemm/glgemm.h>
#include <glgemm/glgemm_headless.h>
#include <stdio.h>

/* relu(x * w + bias) for an image of 4 x 4 pixels with 2 channels, and 3 filters of 3 x 3; the output has 4 x 4 pixels too. */
static glgemm_status convolve(glgemm_engine* engine, uint32_t x, uint32_t w, uint32_t bias, uint32_t y) {
  glgemm_convolution convolution;
  glgemm_convolution_init(&convolution, sizeof convolution); /* two dimensions, one image, strides and dilations of 1 */
  convolution.input.buffer = x;
  convolution.input.size[0] = 4; /* height */
  convolution.input.size[1] = 4; /* width */
  convolution.input.channels = 2;
  convolution.filters.buffer = w;
  convolution.filters.size[0] = 3;
  convolution.filters.size[1] = 3;
  convolution.padding = GLGEMM_PADDING_SAME_UPPER;
  convolution.bias = glgemm_bias_for_each_output(bias, 0, GLGEMM_F32);
  convolution.activation = glgemm_activation_relu();
  convolution.output.buffer = y;
  convolution.output.channels = 3;
  glgemm_convolution_output_size(&convolution, convolution.output.size);
  return glgemm_convolve(engine, &convolution, NULL, NULL);
}

static uint32_t buffer_of(const glgemm_matrix* matrix) {
  glgemm_view view;
  return glgemm_matrix_view(matrix, &view) == GLGEMM_OK ? view.buffer : 0;
}

/* A buffer of so many floats. */
static int make(glgemm_engine* engine, int64_t count, const float* data, glgemm_matrix** matrix) {
  return glgemm_matrix_create(engine, 1, count, GLGEMM_F32, matrix) == GLGEMM_OK &&
         (!data || glgemm_matrix_upload(*matrix, data) == GLGEMM_OK);
}

int main(void) {
  const float bias[3] = {0, 100, -300}, right[6] = {44, 144, 0, 78, 178, 0};
  float x[32], w[54], y[48] = {0};
  int i, failed;
  glgemm_headless_context* context = NULL;
  glgemm_engine* engine = NULL;
  glgemm_matrix *on_x = NULL, *on_w = NULL, *on_bias = NULL, *on_y = NULL;
  for (i = 0; i < 32; ++i) x[i] = (float)i;
  for (i = 0; i < 54; ++i) w[i] = 1;
  failed = glgemm_headless_context_create(NULL, &context) != GLGEMM_OK ||
           glgemm_engine_create(glgemm_headless_get_proc_address, NULL, &engine) != GLGEMM_OK || !make(engine, 32, x, &on_x) ||
           !make(engine, 54, w, &on_w) || !make(engine, 3, bias, &on_bias) || !make(engine, 48, NULL, &on_y) ||
           convolve(engine, buffer_of(on_x), buffer_of(on_w), buffer_of(on_bias), buffer_of(on_y)) != GLGEMM_OK ||
           glgemm_matrix_download(on_y, y) != GLGEMM_OK;
  if (failed) fprintf(stderr, "%s\n", glgemm_last_error());
  for (i = 0; i < 6; ++i) failed = failed || y[i] != right[i];
  printf("%g %g\n", (double)y[0], (double)y[1]); /* 44 144 */
  glgemm_matrix_destroy(on_x);
  glgemm_matrix_destroy(on_w);
  glgemm_matrix_destroy(on_bias);
  glgemm_matrix_destroy(on_y);
  glgemm_engine_release(engine);
  glgemm_engine_destroy(engine);
  glgemm_headless_context_destroy(context);
  return failed;
}
