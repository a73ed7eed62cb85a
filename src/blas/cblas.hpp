// What the functions of CBLAS have in common: their types, layouts and parameters' numbers.
#pragma once

#include <type_traits>
#include <utility>

#include "blas/entry.hpp"

namespace glgemm::blas {

/// CBLAS takes real scalars as values, complex ones and all arrays of complex numbers as untyped pointers.
template <class T>
using CScalar = std::conditional_t<std::is_floating_point_v<T>, T, const void*>;
template <class T>
using CElement = std::conditional_t<std::is_floating_point_v<T>, T, void>;

template <class T>
const void* pointer_to(const T& scalar) noexcept {
  if constexpr (std::is_pointer_v<T>)
    return scalar;
  else
    return &scalar;
}

constexpr int row_major_number = 101, column_major_number = 102;

/// A call's product as it is column-major: a row-major one has A and B exchanged.
constexpr Product by_columns(int layout, Product p) noexcept {
  if (layout != row_major_number) return p;
  std::swap(p.op_a, p.op_b);
  std::swap(p.m, p.n);
  std::swap(p.a, p.b);
  std::swap(p.lda, p.ldb);
  return p;
}

/// What reference CBLAS refuses of a product that by_columns() made. Fortran's parameters come one later here. An operation is
/// told by the number that it has in the call.
inline Wrong first_wrong_of_c(int layout, int op_a, int op_b, const Product& product) noexcept {
  const bool is_row_major = layout == row_major_number;
  if (!is_row_major && layout != column_major_number) return {1, true, false, layout};
  const auto is_unknown = [&](bool first) { return (first == is_row_major ? product.op_b : product.op_a) == Operation::unknown; };
  if (is_unknown(true)) return {2, true, is_row_major, op_a};
  if (is_unknown(false)) return {3, true, is_row_major, op_b};
  const int fortran = first_wrong(product);
  return {fortran == 0 ? 0 : fortran + 1, true, is_row_major, 0};
}

}  // namespace glgemm::blas
