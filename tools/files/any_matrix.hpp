// Matrices in host memory whose type is known at run time only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <variant>

#include <glgemm/matrix.hpp>
#include <glgemm/types.hpp>

namespace glgemm::tools {

/// A Matrix of one of glgemm's types.
class AnyMatrix {
 public:
  /// Of f32, without elements.
  AnyMatrix() = default;
  template <class T>
  AnyMatrix(Matrix<T> values) : values_(std::move(values)) {}
  /// Zeros.
  AnyMatrix(Type type, std::int64_t rows, std::int64_t columns);
  /// A copy of the elements that lie from the first of these bytes on, row after row; there must be enough.
  AnyMatrix(Type type, std::int64_t rows, std::int64_t columns, std::span<const std::byte> elements);

  Type type() const noexcept { return all_types[values_.index()]; }
  std::int64_t rows() const noexcept;
  std::int64_t columns() const noexcept;
  /// The elements, row after row.
  std::span<std::byte> bytes() noexcept;
  std::span<const std::byte> bytes() const noexcept;

  /// @throws std::bad_variant_access  T is not its type
  template <class T>
  Matrix<T>& as() {
    return std::get<Matrix<T>>(values_);
  }
  template <class T>
  const Matrix<T>& as() const {
    return std::get<Matrix<T>>(values_);
  }
  friend bool operator==(const AnyMatrix&, const AnyMatrix&) = default;

 private:
  template <std::size_t... i>
  static std::variant<Matrix<host_t<all_types[i]>>...> values_of(std::index_sequence<i...>);

  decltype(values_of(std::make_index_sequence<all_types.size()>())) values_;
};

/// The rows [first_row, first_row + count) of x.
AnyMatrix rows_of(const AnyMatrix& x, std::int64_t first_row, std::int64_t count);

/// For a picture: complex numbers by their magnitude.
Matrix<float> as_float(const AnyMatrix& x);

}  // namespace glgemm::tools
