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
#include "python/work.hpp"

namespace glgemm::python {

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

/// Where elements without gaps lie.  @throws std::invalid_argument  in several buffers
BufferPlace dense_place(const std::string& who, const Placed& dense);
/// The same of an array, or if it has gaps of a copy. `kept` keeps the elements.
BufferPlace dense_place(const std::string& who, const Array& given, KeptElements& kept);
/// Such an array as a convolution's bias, or a layer's.
BiasView dense_bias(const std::string& who, const Array& given, KeptElements& kept);

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

/// alpha op(a) op(b) + beta out of arrays on one device. The result goes into `out` if there is one, else into a new array.
struct DeviceProduct {
  Array a, b;
  std::optional<Array> out{};
  std::optional<Array> bias{};  ///< of the shape (m, 1) or (1, n)
  std::optional<Array> residual{};
};

class PlacedProduct final : public WorkOn<Gemm> {
 public:
  /// A new array is of `c_type`, by default default_type_of_c().
  /// @throws std::invalid_argument, py::type_error  shapes or types do not go together, or the arrays belong to different engines
  PlacedProduct(DeviceProduct product, const Terms& terms, std::optional<Type> c_type);

 private:
  const Gemm& build(const Placed& result) override;
  ExplainedArrays explained() const override;

  DeviceProduct given_;
  Placed a_, b_;
  std::optional<Placed> d_{}, bias_{};
  std::optional<BuiltGemm> built_{};
};

void define_product(py::module_& module);

}  // namespace glgemm::python
