/* The same in C. */
#include <stdio.h>

#include <glgemm/glgemm_headless.h>

int main(void) {
  glgemm_headless_context* context = NULL;
  if (glgemm_headless_context_create(NULL, &context) != GLGEMM_OK) {
    printf("%s\n", glgemm_last_error());
    return 2;
  }
  printf("glgemm %s\n", glgemm_version());
  glgemm_headless_context_destroy(context);
  return 0;
}
