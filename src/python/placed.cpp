#include "python/placed.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include <fmt/core.h>

#include "python/dtype.hpp"
#include "python/weights.hpp"

namespace glgemm::python {

Sizes batch_of(const Strided& array) {
  return {array.shape.begin(), array.shape.end() - 2};
}

std::optional<MatrixLines> lines_of(const Elements& elements, const Strided& matrices) {
  return elements.quantization ? code_lines(matrices) : matrix_lines(matrices);
}

BufferView view_of_matrix(const Placed& matrices, const MatrixLines& lines, std::int64_t first) {
  const Strided& layout = matrices.layout;
  const bool by_rows = lines.layout == Layout::row_major;
  const std::int64_t count = by_rows ? layout.rows() : layout.columns(), width = by_rows ? layout.columns() : layout.rows();
  BufferView view = view_of_lines(*matrices.elements, layout.type, count, width, lines.ld, layout.offset + first);
  if (count > 1) view.ld = lines.ld;
  view.layout = lines.layout;
  view.rows = layout.rows();
  view.columns = layout.columns();
  return view;
}

BufferPlace dense_place(const std::string& who, const Placed& dense) {
  const auto& [elements, layout] = dense;
  if (elements->matrix && !elements->matrix->view().bands.empty())
    throw std::invalid_argument(fmt::format(
        "{}: an array of {} lies in several buffers, since the driver gives none that is so large", who, text(layout.shape)));
  const BufferView view = view_of_lines(*elements, layout.type, 1, layout.size(), layout.size(), layout.offset);
  return {view.buffer, view.offset_bytes};
}

BufferPlace dense_place(const std::string& who, const Array& given, KeptElements& kept) {
  const Array array = is_dense(given.layout) ? given : copied(given);
  return dense_place(who, {kept.emplace_back(elements_of(array)), array.layout});
}

BiasView dense_bias(const std::string& who, const Array& given, KeptElements& kept) {
  const BufferPlace place = dense_place(who, given, kept);
  return BiasView::for_each_output(place.buffer, place.offset_bytes, given.layout.type);
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
  constexpr std::int64_t largest_alignment = 256;  // OpenGL's for what a binding's offset must be a multiple of
  return (highest - lowest + 1) * element_bytes(matrices.type) <=
         std::min<std::int64_t>(elements.service->device().storage_block_bytes, std::numeric_limits<std::int32_t>::max()) -
             largest_alignment - 16;
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
  gemm.epilogue.bias = for_columns ? BiasView::for_each_column(values.buffer, values.offset_bytes, layout.type)
                                   : BiasView::for_each_row(values.buffer, values.offset_bytes, layout.type);
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
  const auto lines = lines_of(*operand.elements, layout);
  if (!lines) return indexed(operand, lowest);
  const BufferView view = view_of_matrix(operand, *lines, lowest);
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

namespace {

std::int64_t inner_rows(const Strided& array, Op op) {
  return op == Op::none ? array.rows() : array.columns();
}
std::int64_t inner_columns(const Strided& array, Op op) {
  return op == Op::none ? array.columns() : array.rows();
}

}  // namespace

Sizes shape_of_result(Strided& a, Strided& b, const Terms& terms) {
  if (a.dimensions() == 0 || b.dimensions() == 0)
    throw std::invalid_argument(terms.who + ": an operand is a scalar, which has no matrix product");
  const bool row = a.dimensions() == 1, column = b.dimensions() == 1;
  if (row) a = at_least_2d(a);
  if (column) b.insert(1);
  const std::int64_t m = inner_rows(a, terms.op_a), k = inner_columns(a, terms.op_a), inner = inner_rows(b, terms.op_b),
                     n = inner_columns(b, terms.op_b);
  if (k != inner)
    throw std::invalid_argument(fmt::format("{}: A is {} and B is {}: the inner sizes {} and {} differ", terms.who, text(a.shape),
                                            text(b.shape), k, inner));
  Sizes shape = broadcast(terms.who, batch_of(a), batch_of(b));
  if (!row) shape.push_back(m);
  if (!column) shape.push_back(n);
  return shape;
}

Strided as_matrices(Strided c, bool row, bool column) {
  if (row) c.insert(c.dimensions() - (column ? 0 : 1));
  if (column) c.insert(c.dimensions());
  return c;
}

Placed placed(const std::string& who, const Array& array, const Strided& matrices, bool may_be_indexed) {
  const std::shared_ptr<const Elements> elements = elements_of(array);
  if (lines_of(*elements, matrices) || (may_be_indexed && can_be_indexed(*elements, matrices))) return {elements, matrices};
  if (elements->quantization)
    throw std::invalid_argument(
        fmt::format("{}: a part of a quantised array has all codes of each row from one to another, and "
                    "rows in rising order; copy() has its numbers",
                    who));
  const Array copy = copied(array.with(matrices));
  return {elements_of(copy), copy.layout};
}

namespace {

/// Whether the product writes where `out` lies. A C that only tables describe is one matrix, apart from all that is read.
bool is_written_in_place(const DeviceProduct& product, const Strided& c) {
  const auto& [a, b, out, bias, residual] = product;
  if (matrix_lines(c)) return true;
  const std::shared_ptr<const Elements> elements = elements_of(*out);
  const auto is_shared = [&](const Array& read) { return elements_of(read) == elements; };
  return c.dimensions() == 2 && can_be_indexed(*elements, c) && !residual && !is_shared(a) && !is_shared(b) &&
         !(bias && is_shared(*bias));
}

}  // namespace

PlacedProduct::PlacedProduct(DeviceProduct product, const Terms& terms, std::optional<Type> c_type)
    : WorkOn(product.a.storage->service, terms, product.out), given_(std::move(product)) {
  auto& [given_a, given_b, out, bias, residual] = given_;
  take_owners({&given_a, &given_b}, {&out, &bias, &residual});
  check_operands(terms.who, given_a, given_b, {&out, &bias, &residual}, "A or B can be quantised, and C, D and the bias cannot");
  Strided a = given_a.layout, b = given_b.layout;
  const bool row = a.dimensions() == 1, column = b.dimensions() == 1;
  const Sizes shape = shape_of_result(a, b, terms);
  const Type type = type_of_c(terms.who, a.type, b.type, out ? std::optional(out->layout.type) : c_type);
  if (out && out->layout.shape != shape)
    throw std::invalid_argument(
        fmt::format("{}: the product is {} and out is {}", terms.who, text(shape), text(out->layout.shape)));

  const bool is_in_place = out && is_written_in_place(given_, as_matrices(out->layout, row, column));
  set_result(shape, as_matrices(is_in_place ? out->layout : dense(type, shape), row, column),
             is_in_place ? out : std::optional<Array>());
  if (!is_direct() && terms.beta != 0.0)
    throw std::invalid_argument(terms.who +
                                ": C has gaps between all elements, or steps back, and is a batch, shares its elements with "
                                "another operand, or there is a residual");
  a_ = placed(terms.who, given_a, a);
  b_ = placed(terms.who, given_b, b);
  if (residual) d_ = placed(terms.who, *residual, as_matrices(residual->layout, row, column), false);
  if (bias) {
    const Array values = is_dense(bias->layout) ? *bias : copied(*bias);
    bias_ = Placed{elements_of(values), values.layout};
  }
}

const Gemm& PlacedProduct::build(const Placed& result) {
  built_.emplace(a_, b_, result, terms(), d_);
  if (bias_) built_->add_bias(*bias_);
  return built_->gemm;
}

ExplainedArrays PlacedProduct::explained() const {
  ExplainedArrays result;
  const auto add = [&](const char* name, const Array& array, const Placed& at) {
    result.add(name, array,
               !lines_of(*at.elements, at.layout)       ? ", by tables of offsets"
               : at.elements != array.storage->elements ? ", copied first"
                                                        : "");
  };
  add("A", given_.a, a_);
  add("B", given_.b, b_);
  return result;
}

void define_product(py::module_& module) {
  module.def(
      "product",
      [](const Terms& terms, const Array& a, const Array& b, const std::optional<Array>& out, const std::optional<Array>& bias,
         const std::optional<Array>& residual, const py::object& dtype) -> std::shared_ptr<Work> {
        return std::make_shared<PlacedProduct>(DeviceProduct{a, b, out, bias, residual}, terms, optional_type(dtype));
      },
      py::arg("terms"), py::arg("a"), py::arg("b"), py::arg("out") = py::none(), py::arg("bias") = py::none(),
      py::arg("residual") = py::none(), py::kw_only(), py::arg("dtype"));
}

}  // namespace glgemm::python
