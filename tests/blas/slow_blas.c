/* A BLAS that takes its time: 50 ms for a product, which it does not even compute. Beside it OpenGL wins at any size. */
#include <unistd.h>

void sgemm_(void);
void sgemm_(void) {
  usleep(50000);
}
