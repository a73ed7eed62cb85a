/* A program with a xerbla_ of its own and no cblas_xerbla calls cblas_sgemm with a wrong size, and goes on. */
#include <stddef.h>
#include <stdio.h>

void cblas_sgemm(int layout, int op_a, int op_b, int m, int n, int k, float alpha, const float* a, int lda, const float* b, int ldb, float beta,
                 float* c, int ldc);

static int calls = 0;
__attribute__((visibility("default"))) void xerbla_(const char* name, const int* parameter, size_t length) {
  printf("xerbla_: %.*s, parameter %d\n", (int)length, name, *parameter);
  ++calls;
}

int main(void) {
  float x[64] = {0};
  const int row_major = 101, none = 111, wrong = 2;
  cblas_sgemm(row_major, none, none, 4, 4, 4, 1, x, wrong, x, 4, 0, x, 4);
  return calls == 1 ? 0 : 1;
}
