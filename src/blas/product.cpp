// What reference BLAS says of a gemm's parameters.
#include "blas/product.hpp"

#include <algorithm>
#include <cmath>
#include <complex>

namespace glgemm::blas {
namespace {

bool is_value(Type type, const void* scalar, float value) noexcept {
  return with_type(type, [&]<class T>(T) {
    if constexpr (is_complex(type_of<T>()) || std::is_floating_point_v<T>)
      return *static_cast<const T*>(scalar) == T(value);
    else
      return false;  // BLAS has no such type
  });
}

}  // namespace

double flops(const Product& product) noexcept {
  return flops_of_one(product.type) *
         std::abs(static_cast<double>(product.m) * static_cast<double>(product.n) * static_cast<double>(product.k));
}

std::optional<Op> op_of_letter(char letter) noexcept {
  switch (letter) {
    case 'N':
    case 'n':
      return Op::none;
    case 'T':
    case 't':
      return Op::transpose;
    case 'C':
    case 'c':
      return Op::conjugate_transpose;
    default:
      return std::nullopt;
  }
}

std::optional<Op> op_of_number(int number) noexcept {
  switch (number) {
    case 111:
      return Op::none;
    case 112:
      return Op::transpose;
    case 113:
      return Op::conjugate_transpose;
    default:
      return std::nullopt;
  }
}

bool is_conjugate_alone(char letter) noexcept {
  return letter == 'R' || letter == 'r';
}
bool is_conjugate_alone(int number) noexcept {
  return number == 114;
}

int first_wrong(const Product& product) noexcept {
  const auto [type, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc] = product;
  const std::int64_t one = 1;
  if (m < 0) return 3;
  if (n < 0) return 4;
  if (k < 0) return 5;
  if (lda < std::max(one, op_a == Op::none ? m : k)) return 8;
  if (ldb < std::max(one, op_b == Op::none ? k : n)) return 10;
  if (ldc < std::max(one, m)) return 13;
  return 0;
}

bool is_nothing(const Product& product) noexcept {
  return product.m == 0 || product.n == 0 ||
         ((product.k == 0 || is_value(product.type, product.alpha, 0)) && is_value(product.type, product.beta, 1));
}

}  // namespace glgemm::blas
