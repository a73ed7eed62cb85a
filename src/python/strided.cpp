#include "python/strided.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace glgemm::python {

std::int64_t product_of(const Sizes& sizes) {
  std::int64_t product = 1;
  double most = 1;
  for (const std::int64_t size : sizes) {
    most *= std::max(1.0, std::abs(static_cast<double>(size)));
    if (most >= 0x1p63) throw std::invalid_argument(text(sizes) + " has more elements than 64 bits count");
    product *= size;
  }
  return product;
}

std::int64_t Strided::size() const {
  return product_of(shape);
}

std::optional<std::size_t> Strided::gathered() const {
  const auto found = std::find_if(tables.begin(), tables.end(), [](const Table& table) { return table != nullptr; });
  return found == tables.end() ? std::nullopt : std::optional(static_cast<std::size_t>(found - tables.begin()));
}

void Strided::insert(std::size_t dimension) {
  const auto at = static_cast<std::ptrdiff_t>(dimension);
  shape.insert(shape.begin() + at, 1);
  strides.insert(strides.begin() + at, 0);
  if (!tables.empty()) tables.insert(tables.begin() + at, nullptr);
}

std::pair<std::int64_t, std::int64_t> Strided::reach() const {
  std::pair<std::int64_t, std::int64_t> reach;
  if (size() == 0) return reach;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (has_table(i)) {
      const auto [least, most] = std::minmax_element(tables[i]->begin(), tables[i]->end());
      reach.first += *least, reach.second += *most;
    } else {
      (strides[i] < 0 ? reach.first : reach.second) += strides[i] * (shape[i] - 1);
    }
  }
  return reach;
}

Strided dense(Type type, const Sizes& shape) {
  product_of(shape);  // so that no stride overflows
  Strided array{type, shape, Sizes(shape.size(), 1)};
  for (std::size_t i = shape.size(); i-- > 1;) array.strides[i - 1] = array.strides[i] * std::max<std::int64_t>(1, shape[i]);
  return array;
}

bool is_dense(const Strided& array) {
  std::int64_t step = 1;
  for (std::size_t i = array.dimensions(); i-- > 0; step *= array.shape[i])
    if (array.has_table(i) || (array.shape[i] != 1 && array.strides[i] != step)) return array.size() == 0;
  return true;
}

Sizes strides_in_bytes(const Strided& array) {
  Sizes strides;
  for (const std::int64_t stride : array.strides) strides.push_back(stride * element_bytes(array.type));
  return strides;
}

std::string text(const Sizes& sizes) {
  std::string result = "(";
  for (std::size_t i = 0; i < sizes.size(); ++i) result += (i > 0 ? ", " : "") + std::to_string(sizes[i]);
  return result + (sizes.size() == 1 ? ",)" : ")");
}

std::optional<MatrixLines> matrix_lines(const Strided& array) {
  const std::size_t n = array.dimensions();
  if (array.has_table(n - 2) || array.has_table(n - 1)) return std::nullopt;
  const std::int64_t rows = array.rows(), columns = array.columns(), row = array.strides[n - 2], column = array.strides[n - 1];
  if ((columns <= 1 || column == 1) && (rows <= 1 || row >= std::max<std::int64_t>(1, columns)))
    return MatrixLines{Layout::row_major, rows <= 1 ? std::max<std::int64_t>(1, columns) : row};
  if ((rows <= 1 || row == 1) && (columns <= 1 || column >= std::max<std::int64_t>(1, rows)))
    return MatrixLines{Layout::column_major, columns <= 1 ? std::max<std::int64_t>(1, rows) : column};
  return std::nullopt;
}

std::optional<Stacked> stacked(const Strided& array) {
  if (array.size() == 0)
    return Stacked{0, array.columns(), std::max<std::int64_t>(1, array.columns()), dense(array.type, array.shape)};
  const std::optional<MatrixLines> matrix = matrix_lines(array);
  if (!matrix || array.gathered()) return std::nullopt;
  const bool by_rows = matrix->layout == Layout::row_major;
  const std::size_t n = array.dimensions();
  Stacked result;
  result.lines = by_rows ? array.rows() : array.columns();
  result.width = by_rows ? array.columns() : array.rows();
  result.ld = matrix->ld;
  result.packed = {array.type, array.shape, Sizes(n, 0)};
  result.packed.strides[n - 1] = by_rows ? 1 : result.width;
  result.packed.strides[n - 2] = by_rows ? result.width : 1;
  for (std::size_t i = n - 2; i-- > 0;) {
    if (array.shape[i] == 1 || array.strides[i] == 0) continue;
    // A matrix of one line may have any ld: take the step of the batch.
    if (result.lines == 1 && array.strides[i] >= result.width) result.ld = array.strides[i];
    if (array.strides[i] != result.lines * result.ld) return std::nullopt;
    result.packed.strides[i] = result.lines * result.width;
    result.lines *= array.shape[i];
  }
  return result;
}

std::optional<std::int64_t> even_step(const Strided& batch) {
  if (batch.gathered()) return std::nullopt;
  std::int64_t step = 0, items = 1;
  for (std::size_t i = batch.dimensions(); i-- > 0; items *= batch.shape[i]) {
    if (batch.shape[i] == 1) continue;
    if (items == 1) step = batch.strides[i];
    if (batch.strides[i] < 0 || batch.strides[i] != step * items) return std::nullopt;
  }
  return step;
}

Sizes batch_offsets(const Strided& batch) {
  Sizes offsets(static_cast<std::size_t>(batch.size()), 0);
  std::size_t repeat = 1;  // of each index of dimension i, in the order of the items
  for (std::size_t i = batch.dimensions(); i-- > 0;) {
    const auto size = static_cast<std::size_t>(batch.shape[i]);
    for (std::size_t item = 0; item < offsets.size(); ++item)
      offsets[item] += batch.step(i, static_cast<std::int64_t>(item / repeat % size));
    repeat *= size;
  }
  return offsets;
}

}  // namespace glgemm::python
