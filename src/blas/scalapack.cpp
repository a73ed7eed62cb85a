// How much of k ScaLAPACK's PBLAS gives to a local product at a time.
//
// PBLAS multiplies in steps of the logical block that its pilaenv_ names: 32, whatever the blocks of the matrices. Each step is a
// local product C += A B with that k, on the BLAS. Over a bus to the device C goes both ways for it, 8 m n bytes in f32 for 2 m n
// k flops: with 25 GB/s and k = 32 that is at most 0.2 TFLOP/s. k = 1024 lifts this to 6.4, and makes the messages between
// processes fewer and larger, which does a CPU's products no harm. It takes the memory of 1024 columns of A and rows of B in each
// process.
//
// All processes of a product must name the same block, whatever each one's device and threshold. So it is a constant.
#include "blas/next.hpp"

extern "C" __attribute__((visibility("default"))) int pilaenv_(const int* context, const char* type);

int pilaenv_(const int*, const char*) {
  return 1024;
}
