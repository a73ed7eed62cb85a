// What reference BLAS says of a gemm's parameters.
#include "blas/product.hpp"

#include <cmath>
#include <string_view>
#include <type_traits>

namespace glgemm::blas {

Operation operation_of(char letter) noexcept {
  const std::size_t place = std::string_view("NnTtCcRr").find(letter);
  return place == std::string_view::npos ? Operation::unknown : static_cast<Operation>(place / 2);
}

Operation operation_of(int number) noexcept {
  return number >= 111 && number <= 114 ? static_cast<Operation>(number - 111) : Operation::unknown;
}

double flops(const Product& product) noexcept {
  return flops_of_one(product.type) *
         std::abs(static_cast<double>(product.m) * static_cast<double>(product.n) * static_cast<double>(product.k));
}

int first_wrong(const Product& p) noexcept {
  const std::int64_t one = 1;
  const auto keeps_shape = [](Operation op) { return op == Operation::none || op == Operation::conjugate; };
  if (p.op_a == Operation::unknown) return 1;
  if (p.op_b == Operation::unknown) return 2;
  if (p.m < 0) return 3;
  if (p.n < 0) return 4;
  if (p.k < 0) return 5;
  if (p.lda < std::max(one, keeps_shape(p.op_a) ? p.m : p.k)) return 8;
  if (p.ldb < std::max(one, keeps_shape(p.op_b) ? p.k : p.n)) return 10;
  if (p.ldc < std::max(one, p.m)) return 13;
  return 0;
}

bool is_nothing(const Product& p) noexcept {
  const bool adds_nothing = p.k == 0 || scalar_at(p.type, p.alpha) == Scalar(0);
  return p.m == 0 || p.n == 0 || (adds_nothing && scalar_at(p.type, p.beta) == Scalar(1));
}

Scalar scalar_at(Type type, const void* value) noexcept {
  return with_type(type, [&]<class T>(T) -> Scalar {
    if constexpr (is_complex(type_of<T>()) || std::is_floating_point_v<T>)
      return *static_cast<const T*>(value);
    else
      return 0;  // BLAS has no such type
  });
}

}  // namespace glgemm::blas
