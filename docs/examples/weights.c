/* A quantised operand from C. */
#include <glgemm/glgemm.h>
#include <glgemm/glgemm_headless.h>
#include <stdio.h>

/* y = w x for a matrix w of rows x columns, in blocks of q8_0. */
static glgemm_status multiply(glgemm_engine* engine, uint32_t w, int64_t rows, int64_t columns, uint32_t x, uint32_t y) {
  glgemm_quantization quantization;
  glgemm_product product;
  glgemm_quantization_init(&quantization, sizeof quantization);
  glgemm_product_init(&product, sizeof product);
  quantization.format = GLGEMM_Q8_0;
  product.quantization_a = &quantization; /* a's elements are codes, which stand for floats */
  product.a.buffer = w;
  product.a.rows = rows;
  product.a.columns = columns;
  product.b.buffer = x;
  product.b.rows = columns;
  product.b.columns = 1;
  product.c.buffer = y;
  product.c.rows = rows;
  product.c.columns = 1;
  return glgemm_gemm(engine, &product, NULL, NULL);
}

static uint32_t buffer_of(const glgemm_matrix* matrix) {
  glgemm_view view;
  return glgemm_matrix_view(matrix, &view) == GLGEMM_OK ? view.buffer : 0;
}

int main(void) {
  unsigned char block[34] = {0x00, 0x3c}; /* the scale 1, and 32 codes */
  float x[32], y = 0;
  int i, failed;
  glgemm_headless_context* context = NULL;
  glgemm_engine* engine = NULL;
  glgemm_matrix *on_w = NULL, *on_x = NULL, *on_y = NULL;
  for (i = 0; i < 32; ++i) {
    block[2 + i] = (unsigned char)(i + 1);
    x[i] = 2;
  }
  failed = glgemm_headless_context_create(NULL, &context) != GLGEMM_OK ||
           glgemm_engine_create(glgemm_headless_get_proc_address, NULL, &engine) != GLGEMM_OK ||
           glgemm_matrix_create(engine, 1, 34, GLGEMM_U8, &on_w) != GLGEMM_OK ||
           glgemm_matrix_create(engine, 32, 1, GLGEMM_F32, &on_x) != GLGEMM_OK ||
           glgemm_matrix_create(engine, 1, 1, GLGEMM_F32, &on_y) != GLGEMM_OK || glgemm_matrix_upload(on_w, block) != GLGEMM_OK ||
           glgemm_matrix_upload(on_x, x) != GLGEMM_OK ||
           multiply(engine, buffer_of(on_w), 1, 32, buffer_of(on_x), buffer_of(on_y)) != GLGEMM_OK ||
           glgemm_matrix_download(on_y, &y) != GLGEMM_OK;
  if (failed) fprintf(stderr, "%s\n", glgemm_last_error());
  printf("%g\n", (double)y); /* 1056 */
  glgemm_matrix_destroy(on_w);
  glgemm_matrix_destroy(on_x);
  glgemm_matrix_destroy(on_y);
  glgemm_engine_release(engine);
  glgemm_engine_destroy(engine);
  glgemm_headless_context_destroy(context);
  return failed || y != 1056;
}
