#include "engine/call.hpp"

#include <utility>

#include "plan/problem.hpp"

namespace glgemm {
namespace {

/// The transposed product, C^T = op(B)^T op(A)^T; see transposed(Problem).
Gemm transposed(const Gemm& product) {
  const auto turn = [](BufferView& view) {
    std::swap(view.rows, view.columns);
    view.layout = view.layout == Layout::row_major ? Layout::column_major : Layout::row_major;
    if (view.indexing) std::swap(view.indexing->rows, view.indexing->columns);
  };
  Gemm result = product;
  std::swap(result.a, result.b);
  std::swap(result.op_a, result.op_b);
  std::swap(result.batch.stride_a, result.batch.stride_b);
  std::swap(result.batch.offsets_a, result.batch.offsets_b);
  for (BufferView* view : {&result.a, &result.b, &result.c}) turn(*view);
  Epilogue& epilogue = result.epilogue;
  if (epilogue.residual) turn(*epilogue.residual);
  const BiasView bias = epilogue.bias;
  if (bias)
    epilogue.bias = BiasView::of(bias.kind() == Bias::for_each_row ? Bias::for_each_column : Bias::for_each_row, bias.buffer(),
                                 bias.offset_bytes(), bias.type());
  return result;
}

/// The matrix as a view without a buffer.
BufferView view_of(const PlacedMatrix& matrix) {
  const Operand& operand = matrix.operand;
  BufferView view{.rows = matrix.row_count,
                  .columns = matrix.column_count,
                  .ld = operand.ld,
                  .layout = operand.layout,
                  .type = operand.format.type,
                  .quantization = operand.format.quantization};
  if (operand.addressing == Addressing::indexed) view.indexing = Indexing{{.values = matrix.rows}, {.values = matrix.columns}};
  return view;
}

}  // namespace

Call make_call(const Gemm& product, std::shared_ptr<const Prepared> prepared, WorkBuffers& work) {
  return {.product = prepared->plan.transposed ? transposed(product) : product, .prepared = std::move(prepared), .work = &work};
}

Gemm product_without_buffers(const ConvolutionProduct& product) {
  Gemm gemm;
  gemm.a = view_of(product.input);
  gemm.b = view_of(product.filters);
  gemm.op_b = product.filters.operand.op;
  gemm.c = view_of(product.output);
  gemm.batch = {.count = product.images,
                .stride_a = product.input.operand.batch_stride,
                .stride_b = 0,
                .stride_c = product.output.operand.batch_stride,
                .stride_d = product.output.operand.batch_stride};
  return gemm;
}

}  // namespace glgemm
