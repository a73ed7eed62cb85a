// A call of a gemm as a value, and what reference BLAS says of it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include <glgemm/gemm.hpp>
#include <glgemm/types.hpp>

namespace glgemm::blas {

/// What a call says of A or B. `conjugate` has no transpose: some BLASes have it and glgemm has not. `unknown` is an error.
enum class Operation { none, transpose, conjugate_transpose, conjugate, unknown };

/// C = alpha op(A) op(B) + beta C, column-major: A and op(A) are stored with the leading dimension `lda`, and so on. A call with
/// row-major matrices is such a product of their transposes, with A and B exchanged.
///
/// alpha and beta are of the elements' type, as pointers, so that the call's own can be handed on.
struct Product {
  Type type = Type::f32;
  Operation op_a = Operation::none;
  Operation op_b = Operation::none;
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

/// The operation that a letter of Fortran's BLAS means (N, T, C, R, in either case), or one of CBLAS's numbers.
Operation operation_of(char letter) noexcept;
Operation operation_of(int number) noexcept;

constexpr bool has_conjugate(const Product& product) noexcept {
  return product.op_a == Operation::conjugate || product.op_b == Operation::conjugate;
}

constexpr Product with_unknown_conjugates(Product product) noexcept {
  for (Operation* op : {&product.op_a, &product.op_b})
    if (*op == Operation::conjugate) *op = Operation::unknown;
  return product;
}

/// Floating-point operations of one multiply-add: 2, or 8 for complex numbers.
constexpr double flops_of_one(Type type) noexcept {
  return is_complex(type) ? 8 : 2;
}
/// Also of sizes that may be wrong: of their magnitudes.
double flops(const Product& product) noexcept;

/// The number of the first parameter of Fortran's gemm that reference BLAS refuses, by its order of checks; 0 if there is none.
int first_wrong(const Product& product) noexcept;

/// Reference BLAS returns at once, and reads and writes nothing.
bool is_nothing(const Product& product) noexcept;

/// The value of alpha or beta.
Scalar scalar_at(Type type, const void* value) noexcept;

}  // namespace glgemm::blas
