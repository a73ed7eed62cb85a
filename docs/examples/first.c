/* The first product from C. */
#include <glgemm/glgemm.h>
#include <glgemm/glgemm_headless.h>
#include <stdio.h>

int main(void) {
  const float a[6] = {1, 4, 2, 5, 3, 6}; /* 3 x 2, row after row */
  const float b[6] = {7, 8, 9, 10, 11, 12};
  float c[9];
  glgemm_headless_context* context = NULL;
  glgemm_engine* engine = NULL;
  if (glgemm_headless_context_create(NULL, &context) != GLGEMM_OK ||
      glgemm_engine_create(glgemm_headless_get_proc_address, NULL, &engine) != GLGEMM_OK ||
      glgemm_multiply(engine, GLGEMM_F32, GLGEMM_F32, 3, 3, 2, a, b, c, NULL, NULL) != GLGEMM_OK) {
    fprintf(stderr, "%s\n", glgemm_last_error());
    return 1;
  }
  printf("%g\n", c[8]); /* 99 */
  glgemm_engine_release(engine);
  glgemm_engine_destroy(engine);
  glgemm_headless_context_destroy(context);
  return 0;
}
