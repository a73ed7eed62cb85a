// Matrices in host memory. Needs the standard library only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <glgemm/types.hpp>

namespace glgemm {

/// Which elements are neighbours in memory: elements of a row (C, NumPy) or elements of a column (Fortran, BLAS).
enum class Layout { row_major, column_major };

/// A dense matrix in host memory: rows x columns elements of T, row-major, without gaps.
///
/// Element (i, j), both counted from 0, lies at data()[i * columns() + j]. A matrix may have 0 rows or columns. Copies are deep.
/// Not synchronised: one thread at a time may change a matrix, any number may read it.
template <class T = float>
class Matrix {
 public:
  using value_type = T;

  Matrix() = default;

  /// A rows x columns matrix of zeros.
  /// @throws std::invalid_argument  a size is negative, or rows * columns elements cannot be addressed
  /// @throws std::bad_alloc         the memory could not be had
  Matrix(std::int64_t rows, std::int64_t columns) : rows_(rows), columns_(columns), data_(checked_count(rows, columns)) {}

  /// A rows x columns matrix that takes over `data`, row after row.
  /// @throws std::invalid_argument  a size is negative, or data.size() is not rows * columns
  Matrix(std::int64_t rows, std::int64_t columns, std::vector<T> data) : rows_(rows), columns_(columns), data_(std::move(data)) {
    if (data_.size() != checked_count(rows, columns))
      throw std::invalid_argument("Matrix: " + std::to_string(rows) + "x" + std::to_string(columns) + " does not match " +
                                  std::to_string(data_.size()) + " elements");
  }

  /// The matrix with the given rows: Matrix<float> a{{1, 4}, {2, 5}, {3, 6}} is 3 x 2.
  /// @throws std::invalid_argument  the rows differ in length
  Matrix(std::initializer_list<std::initializer_list<T>> rows)
      : rows_(static_cast<std::int64_t>(rows.size())),
        columns_(rows.size() ? static_cast<std::int64_t>(rows.begin()->size()) : 0) {
    data_.reserve(checked_count(rows_, columns_));
    for (const auto& row : rows) {
      if (static_cast<std::int64_t>(row.size()) != columns_)
        throw std::invalid_argument("Matrix: a row of " + std::to_string(row.size()) + " elements beside one of " +
                                    std::to_string(columns_));
      data_.insert(data_.end(), row.begin(), row.end());
    }
  }

  std::int64_t rows() const noexcept { return rows_; }
  std::int64_t columns() const noexcept { return columns_; }
  /// rows() * columns().
  std::int64_t size() const noexcept { return static_cast<std::int64_t>(data_.size()); }

  T* data() noexcept { return data_.data(); }
  const T* data() const noexcept { return data_.data(); }
  std::span<T> elements() noexcept { return data_; }
  std::span<const T> elements() const noexcept { return data_; }

  /// Element (i, j); the indices are not checked.
  T& operator()(std::int64_t i, std::int64_t j) noexcept { return data_[static_cast<std::size_t>(i * columns_ + j)]; }
  const T& operator()(std::int64_t i, std::int64_t j) const noexcept { return data_[static_cast<std::size_t>(i * columns_ + j)]; }

  /// Same sizes and equal elements (so a NaN makes matrices differ).
  friend bool operator==(const Matrix&, const Matrix&) = default;

 private:
  static std::size_t checked_count(std::int64_t rows, std::int64_t columns) {
    constexpr std::int64_t most = (std::numeric_limits<std::ptrdiff_t>::max)() / static_cast<std::ptrdiff_t>(sizeof(T));
    if (rows < 0 || columns < 0 || (columns > 0 && rows > most / columns))
      throw std::invalid_argument("Matrix: " + std::to_string(rows) + "x" + std::to_string(columns) + " is not a usable size");
    return static_cast<std::size_t>(rows * columns);
  }

  std::int64_t rows_ = 0;
  std::int64_t columns_ = 0;
  std::vector<T> data_;
};

/// The transpose: element (j, i) of the result is element (i, j) of `a`.
template <class T>
Matrix<T> transpose(const Matrix<T>& a) {
  Matrix<T> t(a.columns(), a.rows());
  constexpr std::int64_t block = 32;  // both sides of a block stay in cache
  for (std::int64_t i0 = 0; i0 < a.rows(); i0 += block)
    for (std::int64_t j0 = 0; j0 < a.columns(); j0 += block)
      for (std::int64_t i = i0; i < (std::min)(i0 + block, a.rows()); ++i)
        for (std::int64_t j = j0; j < (std::min)(j0 + block, a.columns()); ++j) t(j, i) = a(i, j);
  return t;
}

}  // namespace glgemm
