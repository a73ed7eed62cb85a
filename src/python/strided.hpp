// Where the elements of an array lie: NumPy's shape and strides, and the layout and leading dimension that glgemm has for them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <glgemm/problem.hpp>
#include <glgemm/types.hpp>

#include "python/values.hpp"

namespace glgemm::python {

/// An array; strides, tables and offset are counted in elements.
struct Strided {
  /// What each index of a dimension adds to the offset, where no stride says it.
  using Table = std::shared_ptr<const Sizes>;

  Type type = Type::f32;
  Sizes shape{};
  Sizes strides{};          ///< 0 where there is a table
  std::int64_t offset = 0;  ///< of the element whose indices are all 0, without what tables add
  /// Device arrays alone have them: none, or one for each dimension, which is null where the dimension has a stride.
  std::vector<Table> tables{};

  std::size_t dimensions() const { return shape.size(); }
  std::int64_t size() const;
  /// The last two dimensions are a matrix. The dimensions before them are a batch.
  std::int64_t rows() const { return shape[dimensions() - 2]; }
  std::int64_t columns() const { return shape[dimensions() - 1]; }
  /// What an index of a dimension adds to the offset.
  std::int64_t step(std::size_t dimension, std::int64_t index) const {
    return has_table(dimension) ? (*tables[dimension])[static_cast<std::size_t>(index)] : index * strides[dimension];
  }
  bool has_table(std::size_t dimension) const { return !tables.empty() && tables[dimension]; }
  /// The first dimension with a table.
  std::optional<std::size_t> gathered() const;
  /// A new dimension of size 1.
  void insert(std::size_t dimension);
  /// The distances from the element at `offset` to the ones with the lowest and the highest address.
  std::pair<std::int64_t, std::int64_t> reach() const;
};

/// An array without gaps, row after row.
Strided dense(Type type, const Sizes& shape);
/// Whether the elements lie as in a dense array.
bool is_dense(const Strided& array);
/// @throws std::invalid_argument  an array with these sizes, where one of 0 counts as 1, has too many elements
std::int64_t product_of(const Sizes& sizes);
/// The strides as NumPy has them.
Sizes strides_in_bytes(const Strided& array);
/// "(2, 3)"
std::string text(const Sizes& sizes);

/// The layout and the leading dimension of a matrix.
struct MatrixLines {
  Layout layout = Layout::row_major;
  std::int64_t ld = 1;
};
/// Those of the array's matrices; none if the strides are negative, overlap, or leave gaps in both directions.
std::optional<MatrixLines> matrix_lines(const Strided& array);

/// An array with its batch as one matrix, which has the lines of all of the array's matrices.
struct Stacked {
  std::int64_t lines = 0;
  std::int64_t width = 0;
  std::int64_t ld = 0;
  /// How the array lies once there are no gaps between lines. Matrices that a stride of 0 repeats are stored once.
  Strided packed{};
};
/// None if the matrices' lines do not follow each other at one distance.
std::optional<Stacked> stacked(const Strided& array);

/// The step from each item of a batch, which is an array's shape, to the next one; none if the steps differ or are negative.
std::optional<std::int64_t> even_step(const Strided& batch);
/// What each item's indices add to the offset.
Sizes batch_offsets(const Strided& batch);

}  // namespace glgemm::python
