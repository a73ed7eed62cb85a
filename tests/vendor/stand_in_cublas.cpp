// A stand-in for libcublas.so.13: products by a plain loop, on memory that the stand-in for CUDA has mapped.
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <glgemm/small_floats.hpp>
#include <type_traits>

#include "vendor/stand_in.hpp"

namespace {

using glgemm::bfloat16;
using glgemm::half;

constexpr int not_initialized = 1, invalid_value = 7, not_supported = 15;
constexpr int f32 = 0, f64 = 1, f16 = 2, i8 = 3, i32 = 10, bf16 = 14;
constexpr int compute_f32 = 68, compute_f64 = 70, compute_i32 = 72, compute_tf32 = 77;
int mode = 0;
void* stream = nullptr;

/// What matrix cores make of a float for TF32.
float tf32(float x) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & ~0x1fffu);
}

struct Operand {
  const void* data;
  int ld;
  bool transposed;
  std::ptrdiff_t at(int i, int j) const { return transposed ? j + std::ptrdiff_t{i} * ld : i + std::ptrdiff_t{j} * ld; }
};

template <class T, class Sum>
Sum get(const void* data, std::ptrdiff_t index, bool fast) {
  T x;
  std::memcpy(&x, static_cast<const std::byte*>(data) + index * static_cast<std::ptrdiff_t>(sizeof x), sizeof x);
  if constexpr (std::is_same_v<T, float>)
    return static_cast<Sum>(fast ? tf32(x) : x);
  else if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>)
    return static_cast<Sum>(static_cast<float>(x));
  else
    return static_cast<Sum>(x);
}

template <class AB, class C, class Sum>
void loop(int m, int n, int k, const void* alpha, const Operand& a, const Operand& b, const void* beta, void* c, int ldc,
          bool fast) {
  using Wide = std::conditional_t<std::is_same_v<Sum, std::int32_t>, std::int64_t, double>;
  const auto by_alpha = get<Sum, Sum>(alpha, 0, false), by_beta = get<Sum, Sum>(beta, 0, false);
  for (int j = 0; j < n; ++j)
    for (int i = 0; i < m; ++i) {
      Wide sum = 0;
      for (int p = 0; p < k; ++p)
        sum +=
            static_cast<Wide>(get<AB, Sum>(a.data, a.at(i, p), fast)) * static_cast<Wide>(get<AB, Sum>(b.data, b.at(p, j), fast));
      const std::ptrdiff_t at = i + std::ptrdiff_t{j} * ldc;
      Wide value = static_cast<Wide>(by_alpha) * sum;
      if (by_beta != 0) value += static_cast<Wide>(by_beta) * static_cast<Wide>(get<C, Sum>(c, at, false));
      C rounded;
      if constexpr (std::is_same_v<C, std::int32_t>)
        rounded = static_cast<std::int32_t>(static_cast<std::uint32_t>(static_cast<std::uint64_t>(value)));
      else if constexpr (std::is_same_v<C, double>)
        rounded = value;
      else
        rounded = C(static_cast<float>(value));
      std::memcpy(static_cast<std::byte*>(c) + at * static_cast<std::ptrdiff_t>(sizeof rounded), &rounded, sizeof rounded);
    }
}

int multiply(int op_a, int op_b, int m, int n, int k, const void* alpha, const void* a, int type_a, int lda, const void* b,
             int type_b, int ldb, const void* beta, void* c, int type_c, int ldc, int compute, int algorithm) {
  if (m < 0 || n < 0 || k < 0 || op_a > 1 || op_b > 1 || lda < std::max(1, op_a ? k : m) || ldb < std::max(1, op_b ? n : k) ||
      ldc < std::max(1, m) || algorithm != -1)
    return invalid_value;
  const Operand x{a, lda, op_a != 0}, y{b, ldb, op_b != 0};
  const bool fast = compute == compute_tf32;
  if (type_a != type_b) return not_supported;
  const auto is = [&](int ab, int result, int computes) { return type_a == ab && type_c == result && compute == computes; };
  const auto run = [&](auto loop_of_types) {
    loop_of_types(m, n, k, alpha, x, y, beta, c, ldc, fast);
    return 0;
  };
  if (is(f32, f32, compute_f32) || is(f32, f32, compute_tf32)) return run(loop<float, float, float>);
  if (is(f64, f64, compute_f64)) return run(loop<double, double, double>);
  if (is(f16, f16, compute_f32)) return run(loop<half, half, float>);
  if (is(f16, f32, compute_f32)) return run(loop<half, float, float>);
  if (is(bf16, bf16, compute_f32)) return run(loop<bfloat16, bfloat16, float>);
  if (is(bf16, f32, compute_f32)) return run(loop<bfloat16, float, float>);
  const auto whole = [](const void* pointer, int ld) {
    return reinterpret_cast<std::uintptr_t>(pointer) % 4 == 0 && ld % 4 == 0;
  };
  if (is(i8, i32, compute_i32) && op_a == 1 && op_b == 0 && whole(a, lda) && whole(b, ldb) && whole(c, ldc) && m % 4 == 0 &&
      k % 4 == 0)
    return run(loop<std::int8_t, std::int32_t, std::int32_t>);
  return not_supported;
}

std::ptrdiff_t bytes(int type) {
  return type == f64 ? 8 : type == f32 || type == i32 ? 4 : type == i8 ? 1 : 2;
}

}  // namespace

#define ENTER \
  if (const int status = stand_in_enter(__func__)) return status

extern "C" {
int cublasCreate_v2(void** handle) {
  ENTER;
  *handle = &mode;
  stand_in_hold(1);
  return 0;
}
int cublasDestroy_v2(void*) {
  ENTER;
  stand_in_hold(-1);
  return 0;
}
int cublasSetStream_v2(void*, void* cuda_stream) {
  ENTER;
  stream = cuda_stream;
  return 0;
}
int cublasSetMathMode(void*, int math_mode) {
  ENTER;
  mode = math_mode;
  return 0;
}
int cublasGemmEx(void* handle, int op_a, int op_b, int m, int n, int k, const void* alpha, const void* a, int type_a, int lda,
                 const void* b, int type_b, int ldb, const void* beta, void* c, int type_c, int ldc, int compute, int algorithm) {
  ENTER;
  if (handle != &mode || !stream || mode != 16) return not_initialized;
  return multiply(op_a, op_b, m, n, k, alpha, a, type_a, lda, b, type_b, ldb, beta, c, type_c, ldc, compute, algorithm);
}
int cublasGemmStridedBatchedEx(void* handle, int op_a, int op_b, int m, int n, int k, const void* alpha, const void* a,
                               int type_a, int lda, long long stride_a, const void* b, int type_b, int ldb, long long stride_b,
                               const void* beta, void* c, int type_c, int ldc, long long stride_c, int items, int compute,
                               int algorithm) {
  ENTER;
  if (handle != &mode || !stream || mode != 16) return not_initialized;
  for (long long i = 0; i < items; ++i) {
    const auto* const of_a = static_cast<const std::byte*>(a) + i * stride_a * bytes(type_a);
    const auto* const of_b = static_cast<const std::byte*>(b) + i * stride_b * bytes(type_b);
    auto* const of_c = static_cast<std::byte*>(c) + i * stride_c * bytes(type_c);
    if (const int status = multiply(op_a, op_b, m, n, k, alpha, of_a, type_a, lda, of_b, type_b, ldb, beta, of_c, type_c, ldc,
                                    compute, algorithm))
      return status;
  }
  return 0;
}
}
