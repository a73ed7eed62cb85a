// What the vendor calls things: the functions by which buffers change sides and products are enqueued, and the numbers in them.
// Another vendor is another table of this form: AMD's HIP has the same calls under other names.
#pragma once

#include <array>
#include <cstddef>
#include <utility>

#include <glgemm/types.hpp>

#include "base/system.hpp"

namespace glgemm::vendor {

/// A function of a library, which returns 0 or what went wrong.
template <class... A>
struct Function {
  const char* name;
  int (*call)(A...) = nullptr;
};

/// "CUDA Driver API": Context Management, Stream Management, Graphics and OpenGL Interoperability. Those with _v2 are what cuda.h
/// makes of the plain names.
struct Driver {
#ifdef _WIN32
  static constexpr char library[] = "nvcuda.dll";
#else
  static constexpr char library[] = "libcuda.so.1";
#endif
  static constexpr unsigned all_devices = 1;         // CU_GL_DEVICE_LIST_ALL
  static constexpr unsigned independent_stream = 1;  // CU_STREAM_NON_BLOCKING
  Function<unsigned> init{"cuInit"};
  Function<unsigned*, int*, unsigned, unsigned> devices_of_context{"cuGLGetDevices_v2"};
  Function<void**, int> retain_context{"cuDevicePrimaryCtxRetain"};
  Function<int> release_context{"cuDevicePrimaryCtxRelease_v2"};
  Function<void*> push_context{"cuCtxPushCurrent_v2"};
  Function<void**> pop_context{"cuCtxPopCurrent_v2"};
  Function<void**, unsigned> create_stream{"cuStreamCreate"};
  Function<void*> destroy_stream{"cuStreamDestroy_v2"}, wait_for_stream{"cuStreamSynchronize"};
  Function<void**, unsigned, unsigned> register_buffer{"cuGraphicsGLRegisterBuffer"};
  Function<void*> unregister{"cuGraphicsUnregisterResource"};
  Function<unsigned, void**, void*> map{"cuGraphicsMapResources"}, unmap{"cuGraphicsUnmapResources"};
  Function<unsigned long long*, std::size_t*, void*> mapped_pointer{"cuGraphicsResourceGetMappedPointer_v2"};

  template <class F>
  void for_each(const F& f) {
    f(init), f(devices_of_context), f(retain_context), f(release_context), f(push_context), f(pop_context), f(create_stream);
    f(destroy_stream), f(wait_for_stream), f(register_buffer), f(unregister), f(map), f(unmap), f(mapped_pointer);
  }
};

/// "cuBLAS": cublasGemmEx and what it takes. Those with _v2 are what cublas_v2.h makes of the plain names.
struct Multiplier {
#ifdef _WIN32
  static constexpr std::array libraries{"cublas64_13.dll", "cublas64_12.dll", "cublas64_11.dll"};
#else
  static constexpr std::array libraries{"libcublas.so.13", "libcublas.so.12", "libcublas.so.11"};
#endif
  static constexpr int not_transposed = 0, transposed = 1;  // CUBLAS_OP_N, _T
  static constexpr int best_algorithm = -1;                 // CUBLAS_GEMM_DEFAULT
  static constexpr int sums_stay_wide = 16;                 // CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION
  static constexpr int compute_f32 = 68, compute_f64 = 70, compute_i32 = 72,
                       compute_tf32 = 77;  // CUBLAS_COMPUTE_32F, ..._FAST_TF32
  Function<void**> create{"cublasCreate_v2"};
  Function<void*> destroy{"cublasDestroy_v2"};
  Function<void*, void*> set_stream{"cublasSetStream_v2"};
  Function<void*, int> set_mode{"cublasSetMathMode"};
  Function<void*, int, int, int, int, int, const void*, const void*, int, int, const void*, int, int, const void*, void*, int,
           int, int, int>
      multiply{"cublasGemmEx"};
  Function<void*, int, int, int, int, int, const void*, const void*, int, int, long long, const void*, int, int, long long,
           const void*, void*, int, int, long long, int, int, int>
      multiply_items{"cublasGemmStridedBatchedEx"};

  template <class F>
  void for_each(const F& f) {
    f(create), f(destroy), f(set_stream), f(set_mode), f(multiply), f(multiply_items);
  }

  /// CUDA_R_32F, _64F, _16F, _16BF, _8I and _32I of cudaDataType.
  static constexpr int number_of(Type type) {
    constexpr std::pair<Type, int> numbers[] = {{Type::f64, 1}, {Type::f16, 2}, {Type::i8, 3}, {Type::i32, 10}, {Type::bf16, 14}};
    for (const auto& [each, number] : numbers)
      if (each == type) return number;
    return 0;
  }
};

}  // namespace glgemm::vendor
