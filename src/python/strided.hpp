// Where the elements of an array lie, as NumPy says it: a shape, and strides. And what of it op and ld can say.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <glgemm/problem.hpp>
#include <glgemm/types.hpp>

namespace glgemm::python {

using Sizes = std::vector<std::int64_t>;

/// An array; strides and offset are counted in elements.
struct Strided {
  Type type = Type::f32;
  Sizes shape{};
  Sizes strides{};
  std::int64_t offset = 0;  ///< of the element whose indices are all 0

  std::size_t dimensions() const { return shape.size(); }
  std::int64_t size() const;
  /// Of the last two dimensions, which are a matrix; those before them are a batch.
  std::int64_t rows() const { return shape[dimensions() - 2]; }
  std::int64_t columns() const { return shape[dimensions() - 1]; }
  /// The elements before and behind the first that it reaches: the distance to its lowest, and to its highest.
  std::int64_t lowest() const;
  std::int64_t highest() const;
};

/// A dense array of that shape, row after row.
Strided dense(Type type, const Sizes& shape);
/// Whether the elements lie as in a dense array.
bool is_dense(const Strided& array);
std::int64_t product_of(const Sizes& sizes, std::size_t count);
/// "(2, 3)"
std::string text(const Sizes& sizes);

/// How a matrix lies, where layout and ld can say it.
struct MatrixLines {
  Layout layout = Layout::row_major;
  std::int64_t ld = 1;
};
/// For the last two dimensions; none if the strides are negative, overlap, or leave gaps in both directions.
std::optional<MatrixLines> matrix_lines(const Strided& array);

/// An array as one matrix of lines, its batch included.
struct Stacked {
  std::int64_t lines = 0;
  std::int64_t width = 0;
  std::int64_t ld = 0;
  /// The array as it lies when the lines are without gaps; what is repeated by a stride of 0 is still there once.
  Strided packed{};
};
/// None if some dimension does not go on where the one behind it ends.
std::optional<Stacked> stacked(const Strided& array);

/// The offsets of all matrices of a batch whose shape is `batch`, with these strides, in order.
Sizes batch_offsets(const Sizes& batch, const Sizes& strides);

}  // namespace glgemm::python
