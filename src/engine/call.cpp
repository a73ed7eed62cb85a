#include "engine/call.hpp"

#include <numeric>
#include <utility>

#include "base/quantization.hpp"
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
  if (bias.kind() == Bias::for_each_row) epilogue.bias = BiasView::for_each_column(bias.buffer(), bias.offset_bytes());
  if (bias.kind() == Bias::for_each_column) epilogue.bias = BiasView::for_each_row(bias.buffer(), bias.offset_bytes());
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

/// The product at a place of a convolution, on its buffers.
Gemm product_at(const ConvolutionCall& call, const ConvolutionPlace& place) {
  const Convolution& convolution = call.convolution;
  const ConvolutionPlan& plan = call.prepared->plan;
  const ConvolutionProblem& problem = plan.problem;
  const ConvolutionPiece& piece = call.prepared->shapes[place.shape].piece;
  const ConvolutionProduct& product = piece.products[place.product];
  Gemm gemm = product_without_buffers(product);
  gemm.alpha = convolution.alpha;
  gemm.beta = 0;

  const std::int64_t input_channel = place.group * (problem.input_channels / problem.groups),
                     output_channel = place.group * (problem.output_channels / problem.groups);
  const TensorSteps in = steps_of(problem.input_layout, problem.input, problem.input_channels),
                    out = steps_of(problem.output_layout, problem.output, problem.output_channels);
  std::int64_t first = product.input.first;
  if (piece.border.size_bytes > 0) {
    const Workspace work = workspace_of(convolution.workspace, *call.work);
    gemm.a.buffer = work.buffer;
    gemm.a.offset_bytes = work.offset_bytes + plan.border_offset_bytes;
    first += input_channel * piece.border.channel;
  } else {
    gemm.a.buffer = convolution.input.buffer;
    gemm.a.offset_bytes = convolution.input.offset_bytes;
    first += place.image * in.image + input_row(plan, place.row) * in.step[plan.axis] + input_channel * in.channel;
  }
  gemm.a.offset_bytes += first * element_bytes(problem.input_type);

  const FilterView& filters = convolution.filters;
  const std::int64_t skipped = product.filters.first + place.group * filters_of_group(problem);
  gemm.b.buffer = filters.buffer;
  gemm.b.offset_bytes = filters.offset_bytes + storage_bytes(problem.filters, skipped);
  gemm.b.scales = filters.scales;
  gemm.b.zeros = filters.zeros;
  if (problem.filters.quantization) {
    const QuantizedBytes before = bytes_before(problem.filters.quantization, gemm.b.ld, output_channel, 0);
    gemm.b.scales.offset_bytes += before.scales;
    gemm.b.zeros.offset_bytes += before.zeros;
  }

  const std::int64_t to =
      product.output.first + place.image * out.image + place.row * out.step[plan.axis] + output_channel * out.channel;
  const auto of_output = [&](const TensorView& tensor) {
    BufferView view = gemm.c;
    view.buffer = tensor.buffer;
    view.offset_bytes = tensor.offset_bytes + to * element_bytes(problem.output_type);
    return view;
  };
  if (convolution.residual) gemm.epilogue.residual = of_output(*convolution.residual);
  gemm.c = of_output(convolution.output);
  if (convolution.bias)
    gemm.epilogue.bias = BiasView::for_each_column(
        convolution.bias->buffer, convolution.bias->offset_bytes + output_channel * element_bytes(problem.output_type));
  gemm.epilogue.activation = convolution.activation;
  gemm.workspace = convolution.workspace;
  return gemm;
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
                .stride_c = product.output.operand.batch_stride,
                .stride_d = product.output.operand.batch_stride};
  return gemm;
}

std::optional<ConvolutionStep> Steps::next_from(ConvolutionCursor& at, double work) const {
  if (convolution_) return next_slice(convolution_->prepared->plan, at, work);
  const std::optional<Step> step = next_slice(product_.prepared->plan, at.at, work);
  return step ? std::optional(ConvolutionStep{{}, *step}) : std::nullopt;
}

std::optional<ConvolutionStep> Steps::next(double work) {
  return next_from(at_, work);
}

std::optional<ConvolutionStep> Steps::least() const {
  ConvolutionCursor at = at_;
  return next_from(at, 0);
}

const Call& Steps::product_of(const ConvolutionStep& step) {
  if (!convolution_ || (product_.prepared && product_at_ == step.place)) return product_;
  const PreparedConvolution::Product& product = convolution_->prepared->shapes[step.place.shape].products[step.place.product];
  product_ = make_call(product_at(*convolution_, step.place), product.prepared, *convolution_->work);
  product_.offsets = product.offsets;
  product_at_ = step.place;
  return product_;
}

const Prepared& Steps::prepared_of(const ConvolutionStep& step) const {
  if (!convolution_) return *product_.prepared;
  return *convolution_->prepared->shapes[step.place.shape].products[step.place.product].prepared;
}

gl::Program& Steps::program_of(const ConvolutionStep& step) const {
  const Stage stage = step.step.stage;
  return is_of_product(stage) ? *prepared_of(step).programs[static_cast<std::size_t>(stage)] : *convolution_->prepared->program;
}

Rate& Steps::rate_of(const ConvolutionStep& step) const {
  const Stage stage = step.step.stage;
  return is_of_product(stage) ? *prepared_of(step).rates[static_cast<std::size_t>(stage)] : *convolution_->prepared->rate;
}

double Steps::all_work() const {
  const auto& work = convolution_ ? convolution_->prepared->work : product_.prepared->work;
  return std::accumulate(work.begin(), work.end(), 0.0);
}

}  // namespace glgemm
