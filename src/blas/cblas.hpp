// What the functions of CBLAS have in common: their types, layouts and ops.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>
#include <type_traits>

#include "blas/next.hpp"
#include "blas/product.hpp"

namespace glgemm::blas {

/// CBLAS takes real scalars as values, complex ones and all arrays of complex numbers as untyped pointers.
template <class T>
struct CTypes {
  using Scalar = const void*;
  using Element = void;
  static const void* pointer(const Scalar& scalar) noexcept { return scalar; }
};
template <class T>
requires std::is_floating_point_v<T>
struct CTypes<T> {
  using Scalar = T;
  using Element = T;
  static const void* pointer(const Scalar& scalar) noexcept { return &scalar; }
};
template <class T>
using CScalar = typename CTypes<T>::Scalar;
template <class T>
using CElement = typename CTypes<T>::Element;

constexpr int row_major_number = 101, column_major_number = 102;

/// The number of the first parameter that reference CBLAS refuses before it looks at sizes; 0 if there is none. A conjugate
/// without a transpose is no fault here.
inline int wrong_option(int layout, int op_a, int op_b) noexcept {
  if (layout != row_major_number && layout != column_major_number) return 1;
  if (!op_of_number(op_a) && !is_conjugate_alone(op_a)) return 2;
  if (!op_of_number(op_b) && !is_conjugate_alone(op_b)) return 3;
  return 0;
}

/// Reports a wrong parameter to cblas_xerbla. Where there is none, `pass` calls the next BLAS's function, which finds it as well.
template <class Pass>
void refuse(const char* routine, bool has_next, int parameter, bool row_major, int value, Pass&& pass) {
  if (report_to_cblas_xerbla(routine, parameter, row_major, value)) return;
  if (!has_next) {
    say("parameter " + std::to_string(parameter) + " to routine " + routine + " was incorrect");
    std::exit(EXIT_FAILURE);
  }
  const InsideNext inside;
  pass();
}

/// The column-major product that a call means.
inline Product product_of(Type type, bool is_row_major, int op_a, int op_b, std::int64_t m, std::int64_t n, std::int64_t k,
                          const void* alpha, const void* a, std::int64_t lda, const void* b, std::int64_t ldb, const void* beta,
                          void* c, std::int64_t ldc) {
  const Op a_is = op_of_number(op_a).value_or(Op::none), b_is = op_of_number(op_b).value_or(Op::none);
  if (is_row_major) return {type, b_is, a_is, n, m, k, alpha, b, ldb, a, lda, beta, c, ldc};
  return {type, a_is, b_is, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc};
}

}  // namespace glgemm::blas
