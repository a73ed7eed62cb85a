// A product of arrays as the library takes it: where the matrices of each of them lie.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <glgemm/gemm.hpp>

#include "python/product.hpp"
#include "python/service.hpp"
#include "python/strided.hpp"

namespace glgemm::python {

/// Matrices in a buffer.
struct Placed {
  std::shared_ptr<const Elements> elements;
  Strided layout;
};

Sizes batch_of(const Strided& array);
/// The shape of all items, as NumPy broadcasts.
Sizes broadcast(const std::string& who, const Sizes& a, const Sizes& b);

/// As NumPy's matmul: a vector is a row of A, or a column of B, and its dimension is left out of the result.
/// @throws std::invalid_argument  the shapes do not go together
Sizes shape_of_result(Strided& a, Strided& b, const Terms& terms);
/// The result with the dimensions of size 1 that NumPy leaves out for vectors.
Strided as_matrices(Strided c, bool row, bool column);
/// The array as these matrices. They are copied if neither a leading dimension nor, where those may be, tables describe them.
Placed placed(const std::string& who, const Array& array, const Strided& matrices, bool may_be_indexed = true);

/// The elements that a call needs.
using KeptElements = std::vector<std::shared_ptr<const Elements>>;
/// Where the elements of an array without gaps lie: of the array itself, or if it has gaps of a copy. `kept` keeps them.
BufferPlace dense_place(const std::string& who, const Array& given, KeptElements& kept);

/// matrix_lines, or lines of codes.
std::optional<MatrixLines> lines_of(const Elements& elements, const Strided& matrices);
/// The view of the first of these matrices, whose lines are those; it begins `first` elements behind the layout's offset.
BufferView view_of_matrix(const Placed& matrices, const MatrixLines& lines, std::int64_t first = 0);
/// Whether tables of offsets can say where the elements of these matrices lie.
bool can_be_indexed(const Elements& elements, const Strided& matrices);

/// A product, and the offsets to which it refers.
class BuiltGemm {
 public:
  BuiltGemm(const Placed& a, const Placed& b, const Placed& c, const Terms& terms, const std::optional<Placed>& d = {});
  BuiltGemm(const BuiltGemm&) = delete;
  BuiltGemm& operator=(const BuiltGemm&) = delete;

  /// The bias is dense, with the shape (m, 1) or (1, n).
  void add_bias(const Placed& bias);

  Gemm gemm{};

 private:
  /// The view of an operand's first matrix. Sets where the batch's other matrices lie: by a stride, or by an offset for each.
  BufferView place(const Placed& operand, std::int64_t& stride, std::span<const std::int64_t>& offsets, Sizes& own_offsets);
  /// The view of matrices whose first one begins `first` elements from the operand's, by tables of offsets.
  BufferView indexed(const Placed& operand, std::int64_t first);

  Sizes batch_;
  const std::string& who_;
  std::array<Sizes, 4> offsets_{};
  std::vector<std::vector<std::int32_t>> tables_{};  // which may move, their numbers do not
};

/// A product of arrays that was checked, with each operand where kernels read it. It keeps the operands' elements.
class PlacedProduct {
 public:
  /// @throws std::invalid_argument, py::type_error  as multiply()
  PlacedProduct(const DeviceProduct& product, const Terms& terms, std::optional<Type> c_type);

  /// The product, which lives as long as this does; null if C has no elements. To be called by work, once.
  const Gemm* build(Engine& engine);
  /// Whether C is where `out` lies, and not in a new array, from which it is yet to be copied there.
  bool is_direct() const noexcept { return out_.has_value(); }
  /// What build() writes: `out`, or a new array.
  Array result() const { return out_ ? *out_ : array_of(c_.elements, dense(c_.layout.type, shape_)); }

 private:
  const Terms terms_;
  std::shared_ptr<Service> service_;
  Placed a_, b_, c_;
  std::optional<Placed> d_{}, bias_{};
  std::optional<Array> out_{};
  Sizes shape_;
  std::optional<BuiltGemm> built_{};
};

}  // namespace glgemm::python
