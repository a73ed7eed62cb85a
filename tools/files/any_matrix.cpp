// Matrices whose type is known at run time only: see any_matrix.hpp.
#include "files/any_matrix.hpp"

#include <algorithm>
#include <complex>

namespace glgemm::tools {

AnyMatrix::AnyMatrix(Type type, std::int64_t rows, std::int64_t columns)
    : values_(with_type(type, [&]<class T>(T) -> decltype(values_) { return Matrix<T>(rows, columns); })) {}

AnyMatrix::AnyMatrix(Type type, std::int64_t rows, std::int64_t columns, std::span<const std::byte> elements)
    : AnyMatrix(type, rows, columns) {
  const std::span<std::byte> to = bytes();
  std::ranges::copy(elements.first(to.size()), to.begin());
}

std::int64_t AnyMatrix::rows() const noexcept {
  return std::visit([](const auto& x) { return x.rows(); }, values_);
}

std::int64_t AnyMatrix::columns() const noexcept {
  return std::visit([](const auto& x) { return x.columns(); }, values_);
}

std::span<std::byte> AnyMatrix::bytes() noexcept {
  return std::visit([](auto& x) { return std::as_writable_bytes(x.elements()); }, values_);
}

std::span<const std::byte> AnyMatrix::bytes() const noexcept {
  return std::visit([](const auto& x) { return std::as_bytes(x.elements()); }, values_);
}

AnyMatrix rows_of(const AnyMatrix& x, std::int64_t first_row, std::int64_t count) {
  const std::int64_t first_byte = first_row * x.columns() * element_bytes(x.type());
  return {x.type(), count, x.columns(), x.bytes().subspan(static_cast<std::size_t>(first_byte))};
}

Matrix<float> as_float(const AnyMatrix& x) {
  return with_type(x.type(), [&]<class T>(T) {
    Matrix<float> values(x.rows(), x.columns());
    const auto elements = x.as<T>().elements();
    std::transform(elements.begin(), elements.end(), values.elements().begin(), [](T value) {
      if constexpr (requires { value.imag(); })
        return static_cast<float>(std::abs(value));
      else
        return static_cast<float>(value);
    });
    return values;
  });
}

}  // namespace glgemm::tools
