#include "python/placed.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include <fmt/core.h>

#include "python/weights.hpp"

namespace glgemm::python {

Sizes batch_of(const Strided& array) {
  return {array.shape.begin(), array.shape.end() - 2};
}

std::optional<MatrixLines> lines_of(const Elements& elements, const Strided& matrices) {
  return elements.quantization ? code_lines(matrices) : matrix_lines(matrices);
}

Sizes broadcast(const std::string& who, const Sizes& a, const Sizes& b) {
  Sizes result(std::max(a.size(), b.size()), 1);
  for (std::size_t i = 1; i <= result.size(); ++i) {
    const std::int64_t x = i <= a.size() ? a[a.size() - i] : 1, y = i <= b.size() ? b[b.size() - i] : 1;
    if (x != y && x != 1 && y != 1)
      throw std::invalid_argument(
          fmt::format("{}: the batches {} of A and {} of B cannot be broadcast together", who, text(a), text(b)));
    result[result.size() - i] = x == 1 ? y : x;
  }
  return result;
}

bool can_be_indexed(const Elements& elements, const Strided& matrices) {
  if (elements.quantization || matrices.size() == 0 || (elements.matrix && !elements.matrix->view().bands.empty())) return false;
  const auto [lowest, highest] = matrices.reach();
  const Limits& limits = elements.service->limits();
  return (highest - lowest + 1) * element_bytes(matrices.type) <=
         std::min<std::int64_t>(limits.storage_block_bytes, std::numeric_limits<std::int32_t>::max()) -
             limits.storage_offset_alignment - 16;
}

namespace {

/// How an operand's matrices follow each other in such a batch.
Strided broadcast_batch(const Strided& array, const Sizes& batch) {
  Strided result{array.type, batch, Sizes(batch.size(), 0)};
  const std::size_t own = array.dimensions() - 2;
  for (std::size_t i = 1; i <= own; ++i) {
    if (array.shape[own - i] == 1) continue;
    result.strides[batch.size() - i] = array.strides[own - i];
    if (!array.has_table(own - i)) continue;
    result.tables.resize(batch.size());
    result.tables[batch.size() - i] = array.tables[own - i];
  }
  return result;
}

}  // namespace

BuiltGemm::BuiltGemm(const Placed& a, const Placed& b, const Placed& c, const Terms& terms, const std::optional<Placed>& d)
    : batch_(batch_of(c.layout)), who_(terms.who) {
  gemm.op_a = terms.op_a;
  gemm.op_b = terms.op_b;
  gemm.alpha = scalar(terms.alpha, a.layout.type);
  gemm.beta = scalar(terms.beta, a.layout.type);
  gemm.epilogue.activation = terms.activation;
  gemm.batch.count = product_of(batch_);
  gemm.a = place(a, gemm.batch.stride_a, gemm.batch.offsets_a, offsets_[0]);
  gemm.b = place(b, gemm.batch.stride_b, gemm.batch.offsets_b, offsets_[1]);
  gemm.c = place(c, gemm.batch.stride_c, gemm.batch.offsets_c, offsets_[2]);
  if (d) gemm.epilogue.residual = place(*d, gemm.batch.stride_d, gemm.batch.offsets_d, offsets_[3]);
}

void BuiltGemm::add_bias(const Placed& bias) {
  const Strided& layout = bias.layout;
  const BufferView values = view_of_lines(*bias.elements, layout.type, 1, layout.size(), layout.size(), layout.offset);
  const bool for_columns = layout.rows() == 1 && layout.columns() == gemm.c.columns;
  gemm.epilogue.bias = for_columns ? BiasView::for_each_column(values.buffer, values.offset_bytes)
                                   : BiasView::for_each_row(values.buffer, values.offset_bytes);
}

BufferView BuiltGemm::place(const Placed& operand, std::int64_t& stride, std::span<const std::int64_t>& offsets,
                            Sizes& own_offsets) {
  const Strided& layout = operand.layout;
  const Strided batch = broadcast_batch(layout, batch_);
  std::int64_t lowest = 0;
  if (const auto step = even_step(batch)) {
    stride = *step;
  } else {
    own_offsets = batch_offsets(batch);
    lowest = *std::min_element(own_offsets.begin(), own_offsets.end());
    for (std::int64_t& offset : own_offsets) offset -= lowest;
    offsets = own_offsets;
  }
  const auto its_lines = lines_of(*operand.elements, layout);
  if (!its_lines) return indexed(operand, lowest);
  const MatrixLines lines = *its_lines;
  const bool by_rows = lines.layout == Layout::row_major;
  const std::int64_t count = by_rows ? layout.rows() : layout.columns(), width = by_rows ? layout.columns() : layout.rows();
  BufferView view = view_of_lines(*operand.elements, layout.type, count, width, lines.ld, layout.offset + lowest);
  if (count > 1) view.ld = lines.ld;
  view.layout = lines.layout;
  view.rows = layout.rows();
  view.columns = layout.columns();
  if (!view.bands.empty() && gemm.batch.count != 1)
    throw std::invalid_argument(who_ + ": an array that lies in several buffers is no batch");
  return view;
}

BufferView BuiltGemm::indexed(const Placed& operand, std::int64_t first) {
  const Strided& layout = operand.layout;
  std::int64_t highest = 0;
  const auto table = [&](std::size_t dimension) -> OffsetTable {
    Sizes steps;
    for (std::int64_t i = 0; i < layout.shape[dimension]; ++i) steps.push_back(layout.step(dimension, i));
    const auto [least, most] = std::minmax_element(steps.begin(), steps.end());
    std::vector<std::int32_t>& values = tables_.emplace_back();
    for (const std::int64_t step : steps) values.push_back(static_cast<std::int32_t>(step - *least));
    first += *least;
    highest += *most - *least;
    return {.values = values};
  };
  const Indexing indexing{table(layout.dimensions() - 2), table(layout.dimensions() - 1)};
  BufferView view = view_of_lines(*operand.elements, layout.type, 1, highest + 1, highest + 1, layout.offset + first);
  view.rows = layout.rows();
  view.columns = layout.columns();
  view.ld = 0;
  view.indexing = indexing;
  return view;
}

}  // namespace glgemm::python
