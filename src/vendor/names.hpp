// What vendors call things: a table for each vendor, so that another vendor is another table. AMD's HIP has the same calls under other
// names.
#pragma once

#include <array>

#include <glgemm/types.hpp>

namespace glgemm::vendor {

/// The libraries' names where the system looks for them, the newest first, and the functions' names and the numbers in them.
struct Names {
  const char* driver;
  std::array<const char*, 3> multipliers;
  // Of the driver.
  const char *init, *devices_of_context, *retain_context, *release_context, *push_context, *pop_context, *create_stream,
      *destroy_stream, *wait_for_stream, *register_buffer, *unregister, *map, *unmap, *mapped_pointer, *error_name;
  // Of the library that multiplies.
  const char *create, *destroy, *set_stream, *set_mode, *multiply, *multiply_items;
  unsigned all_devices;          ///< what devices_of_context asks for
  unsigned independent_stream;   ///< a stream that does not wait for the default one
  int not_transposed, transposed;
  int best_algorithm;
  int mode;                      ///< sums stay in the type that is asked for
  int compute_f32, compute_f64, compute_i32, compute_tf32;
  int f32, f64, f16, bf16, i8, i32;  ///< types

  constexpr int type(Type its) const {
    switch (its) {
      case Type::f64:
        return f64;
      case Type::f16:
        return f16;
      case Type::bf16:
        return bf16;
      case Type::i8:
        return i8;
      case Type::i32:
        return i32;
      default:
        return f32;
    }
  }
};

/// NVIDIA. Functions: "CUDA Driver API" (Context Management, Stream Management, Graphics Interoperability, OpenGL Interoperability) and
/// "cuBLAS" (cublasGemmEx); those with _v2 are what cuda.h and cublas_v2.h make of the plain names. Numbers: CU_GL_DEVICE_LIST_ALL,
/// CU_STREAM_NON_BLOCKING, CUBLAS_OP_N and CUBLAS_OP_T, CUBLAS_GEMM_DEFAULT, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
/// CUBLAS_COMPUTE_32F, _64F, _32I and _32F_FAST_TF32 of cublasComputeType_t; CUDA_R_32F, _64F, _16F, _16BF, _8I and _32I of cudaDataType.
inline constexpr Names cuda{
#ifdef _WIN32
    "nvcuda.dll",
    {"cublas64_13.dll", "cublas64_12.dll", "cublas64_11.dll"},
#else
    "libcuda.so.1",
    {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11"},
#endif
    "cuInit",
    "cuGLGetDevices_v2",
    "cuDevicePrimaryCtxRetain",
    "cuDevicePrimaryCtxRelease_v2",
    "cuCtxPushCurrent_v2",
    "cuCtxPopCurrent_v2",
    "cuStreamCreate",
    "cuStreamDestroy_v2",
    "cuStreamSynchronize",
    "cuGraphicsGLRegisterBuffer",
    "cuGraphicsUnregisterResource",
    "cuGraphicsMapResources",
    "cuGraphicsUnmapResources",
    "cuGraphicsResourceGetMappedPointer_v2",
    "cuGetErrorName",
    "cublasCreate_v2",
    "cublasDestroy_v2",
    "cublasSetStream_v2",
    "cublasSetMathMode",
    "cublasGemmEx",
    "cublasGemmStridedBatchedEx",
    1,
    1,
    0,
    1,
    -1,
    16,
    68,
    70,
    72,
    77,
    0,
    1,
    2,
    14,
    3,
    10,
};

}  // namespace glgemm::vendor
