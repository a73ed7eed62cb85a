// A call of a gemm as a value, and what reference BLAS says of it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <glgemm/problem.hpp>
#include <glgemm/types.hpp>

namespace glgemm::blas {

/// C = alpha op(A) op(B) + beta C, column-major: A and op(A) are stored with the leading dimension `lda`, and so on. A call with
/// row-major matrices is such a product of their transposes, with A and B exchanged.
///
/// alpha and beta are of the elements' type, as pointers, so that the call's own can be handed on.
struct Product {
  Type type = Type::f32;
  Op op_a = Op::none;
  Op op_b = Op::none;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  const void* alpha = nullptr;
  const void* a = nullptr;
  std::int64_t lda = 0;
  const void* b = nullptr;
  std::int64_t ldb = 0;
  const void* beta = nullptr;
  void* c = nullptr;
  std::int64_t ldc = 0;
};

/// s, d, c and z.
inline constexpr std::array blas_types = {Type::f32, Type::f64, Type::c64, Type::c128};
constexpr std::size_t index_of(Type type) noexcept {
  return static_cast<std::size_t>(std::find(blas_types.begin(), blas_types.end(), type) - blas_types.begin());
}

/// Of one multiply-add: 2, or 8 of complex numbers.
constexpr double flops_of_one(Type type) noexcept {
  return is_complex(type) ? 8 : 2;
}
/// Of sizes that may be wrong, the size.
double flops(const Product& product) noexcept;

/// The op that a letter of Fortran's BLAS means (N, T, C, in either case), or one of CBLAS's numbers. Others are nullopt.
std::optional<Op> op_of_letter(char letter) noexcept;
std::optional<Op> op_of_number(int number) noexcept;
/// The conjugate without a transpose, which some BLASes know and glgemm does not.
bool is_conjugate_alone(char letter) noexcept;
bool is_conjugate_alone(int number) noexcept;

/// The number of the first parameter of Fortran's gemm that reference BLAS refuses, by its order of checks; 0 if there is none.
/// The ops, parameters 1 and 2, are known already.
int first_wrong(const Product& product) noexcept;

/// Reference BLAS returns at once, and reads and writes nothing.
bool is_nothing(const Product& product) noexcept;

}  // namespace glgemm::blas
