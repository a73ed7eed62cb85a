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

/// matrix_lines, or those of codes.
std::optional<MatrixLines> lines_of(const Elements& elements, const Strided& matrices);
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

}  // namespace glgemm::python
