/* A BLAS that takes its time: 50 ms for a product, which it does not even compute. Beside it OpenGL wins at any size. A program that has
   in_next_blas() hears of each product, and may leave it. */
#include <unistd.h>

void in_next_blas(int m) __attribute__((weak));

void sgemm_(const char* op_a, const char* op_b, const int* m);
void sgemm_(const char* op_a, const char* op_b, const int* m) {
  (void)op_a, (void)op_b;
  if (in_next_blas) in_next_blas(*m);
  usleep(50000);
}
