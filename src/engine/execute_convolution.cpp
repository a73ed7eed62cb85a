#include "engine/execute_convolution.hpp"

#include <numeric>

#include "base/quantization.hpp"
#include "engine/dispatch.hpp"
#include "engine/execute_product.hpp"
#include "engine/speed.hpp"
#include "plan/depthwise.hpp"

namespace glgemm {
namespace {

using namespace kernels;  // the numbers of interface.hpp

/// Whether the program reads the input as an image.
bool reads_image(const ConvolutionPlan& plan) {
  return plan.program->vector_reads == VectorReads::image;
}

/// Binds what a step reads of the input. Returns the byte of the binding, or of the image, at which it begins.
std::int64_t bind_input(Dispatch& dispatch, const ConvolutionCall& call, const Step& step) {
  const TensorView& input = call.convolution.input;
  const Place from{input.buffer, input.offset_bytes + step.a.offset_bytes};
  if (reads_image(call.prepared->plan))
    return dispatch.bind_image(gl::unit_a, dispatch.operand_image(Role::a), from, step.a.size_bytes);
  return dispatch.bind(binding_a, from, step.a.size_bytes);
}

void copy(Dispatch& dispatch, const ConvolutionCall& call, const ConvolutionStep& at) {
  const ConvolutionPlan& plan = call.prepared->plan;
  const Step& step = at.step;
  const CopyWork work = copy_work(plan, at.place);
  const Workspace workspace = workspace_of(call.convolution.workspace, *call.work);
  const Place to{workspace.buffer, workspace.offset_bytes + step.c.offset_bytes};
  const std::int64_t first = dispatch.bind(binding_partial, to, step.c.size_bytes) / 16;
  std::int64_t begin = 0;  // where the piece's first image would be in the binding
  if (step.a.size_bytes > 0) {
    const TensorSteps in = steps_of(plan.problem.input_layout, plan.problem.input, plan.problem.input_channels);
    const std::int64_t image = at.place.image * in.image * element_bytes(plan.problem.input_type);
    begin = (bind_input(dispatch, call, step) - (step.a.offset_bytes - image)) / work.unit_bytes;
  } else if (reads_image(plan)) {
    dispatch.bind_image(gl::unit_a, dispatch.operand_image(Role::a), to, 16);
  }
  const std::int64_t volume = step.z0 / work.to_planes;
  dispatch.set(at_size, work.to_line - step.x0, work.to_planes, work.first_plane, work.planes);
  dispatch.set(at_a, begin + volume * work.volume, work.line, work.plane, work.volume);
  dispatch.set(at_b, work.first_unit + step.x0 * 16 / work.unit_bytes, work.length, work.first_line, work.lines);
  dispatch.set(at_c, first + volume * work.to_volume + step.x0, work.to_line, work.to_plane, work.to_volume);
  Step rest = step;  // the volumes and vectors before it are in the uniforms
  rest.x0 = 0;
  rest.z0 %= work.to_planes;
  dispatch.run(rest, reads_image(plan), to);
}

void convolve(Dispatch& dispatch, const ConvolutionCall& call, const Step& step) {
  const ConvolutionPlan& plan = call.prepared->plan;
  const Convolution& convolution = call.convolution;
  const DepthwiseWork work = depthwise_work(plan.problem, *plan.program);
  const ConvolutionProblem& problem = work.problem;
  dispatch.set(at_image_size, problem.input);
  dispatch.set(at_output_size, problem.output);
  dispatch.set(at_filter_size, problem.filter);
  dispatch.set(at_strides, problem.stride);
  dispatch.set(at_dilation, problem.dilation);
  dispatch.set(at_padding, problem.before);
  dispatch.set(at_image, work.input.step[0], work.input.step[1], work.input.step[2], work.input.channel);
  dispatch.set(at_filter, work.filters.step[0], work.filters.step[1], work.filters.step[2], work.filters.channel);
  const std::int64_t multiplier = problem.output_channels / problem.input_channels;
  dispatch.set(at_task, plan.strip_rows, work.channels, work.runs,
               problem.input_layout == TensorLayout::nchw ? -multiplier : multiplier);

  const Type sums = sum_type(problem.input_type, problem.filters.type);
  dispatch.set_scalar(at_alpha, sums, convolution.alpha.value);
  dispatch.set_scalar(at_beta, sums, 0.0);
  dispatch.set(at_flags, first_k | last_k | (problem.residual ? add_d : 0) | (problem.bias ? add_bias : 0));
  dispatch.set(at_a, bind_input(dispatch, call, step) / (element_bytes(problem.input_type) * work.vector), 0, 0,
               work.input.image);
  const FilterView& filters = convolution.filters;
  dispatch.set(at_b,
               dispatch.bind(binding_b, {filters.buffer, filters.offset_bytes + step.b.offset_bytes}, step.b.size_bytes) /
                   (element_bytes(problem.filters.type) * work.vector),
               0, 0, 0);
  const std::int64_t element = element_bytes(problem.output_type);
  const auto place_output = [&](Location location, gl::Binding binding, const TensorView& view, const Window& window) {
    const std::int64_t begin =
        dispatch.bind(binding, {view.buffer, view.offset_bytes + window.offset_bytes}, window.size_bytes) / element;
    dispatch.set(location, begin, work.output.step[2], work.output.channel, work.output.image);
  };
  place_output(at_c, binding_c, convolution.output, step.c);
  if (problem.residual) place_output(at_d, binding_d, *convolution.residual, step.d);
  if (plan.program->epilogue) {
    if (problem.bias) {
      const Place bias{convolution.bias.buffer(), convolution.bias.offset_bytes() + step.bias.offset_bytes};
      dispatch.set(at_bias, dispatch.bind(binding_bias, bias, step.bias.size_bytes) / element, 0, 1);
    }
    if (!is_complex(sums) && !is_integer(sums)) {
      dispatch.set(at_activation, static_cast<int>(problem.activation));
      dispatch.set_scalar(at_low, sums, convolution.activation.low());
      dispatch.set_scalar(at_high, sums, convolution.activation.high());
    }
  }
  dispatch.run(step, reads_image(plan), {convolution.output.buffer, convolution.output.offset_bytes});
}

/// What a step of the convolution's own program reads as images.
Images images_of(Engine::State& state, const ConvolutionCall& call, const Step& step) {
  Images result;
  if (!reads_image(call.prepared->plan)) return result;
  const TensorView& input = call.convolution.input;
  const bool reads = step.a.size_bytes > 0;  // else it shows a vector of the workspace, which nobody reads
  const std::int64_t begin = reads ? input.offset_bytes + step.a.offset_bytes : 0, size = reads ? step.a.size_bytes : 16,
                     bytes = reads ? state.buffer_bytes(input.buffer) : call.work->workspace_bytes;
  result[gl::unit_a] = gl::image_kind(bytes < 0 ? begin + size : bytes, begin, size);
  return result;
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
        convolution.bias.buffer(), convolution.bias.offset_bytes() + output_channel * element_bytes(problem.output_type),
        problem.output_type);
  gemm.epilogue.activation = convolution.activation;
  gemm.workspace = convolution.workspace;
  return gemm;
}

}  // namespace

std::optional<Runnable> ConvolutionSteps::next_from(ConvolutionCursor& at, ConvolutionPlace& place, double work) const {
  const PreparedConvolution& prepared = *call_.prepared;
  const std::optional<ConvolutionStep> step = next_slice(prepared.plan, at, work);
  if (!step) return {};
  place = step->place;
  if (step->step.stage == Stage::copy || step->step.stage == Stage::depthwise)
    return Runnable{step->step, prepared.program, prepared.rate};
  return runnable(*prepared.shapes[place.shape].products[place.product].prepared, step->step);
}

const Call& ConvolutionSteps::product() {
  if (product_.prepared && product_at_ == place_) return product_;
  const PreparedConvolution::Product& product = call_.prepared->shapes[place_.shape].products[place_.product];
  product_ = make_call(product_at(call_, place_), product.prepared, *call_.work);
  product_.offsets = product.offsets;
  product_at_ = place_;
  return product_;
}

ProgramKey ConvolutionSteps::program_of(const Runnable& at) const {
  return at.product ? at.product->plan.program(at.step.stage) : *call_.prepared->plan.program;
}

Images ConvolutionSteps::images(Engine::State& state, const Runnable& at) {
  return at.product ? images_of(state, product(), at) : images_of(state, call_, at.step);
}

void ConvolutionSteps::run(Engine::State& state, const Runnable& at) {
  if (at.product) return run_step(state, product(), at);
  Dispatch dispatch(state, *call_.prepared->plan.program, *at.program);
  if (at.step.stage == Stage::copy)
    copy(dispatch, call_, {place_, at.step});
  else
    convolve(dispatch, call_, at.step);
}

const Plan* ConvolutionSteps::plan() const {
  const std::vector<Plan>& products = call_.prepared->plan.products();
  return products.empty() ? nullptr : &products.front();
}

const ProgramKey* ConvolutionSteps::own_program() const {
  const ConvolutionPlan& plan = call_.prepared->plan;
  return plan.depthwise ? &*plan.program : nullptr;
}

double ConvolutionSteps::all_work() const {
  return std::accumulate(call_.prepared->work.begin(), call_.prepared->work.end(), 0.0);
}

double ConvolutionSteps::longest(const Engine::State& state) const {
  return glgemm::longest(state, *call_.prepared);
}

double ConvolutionSteps::guessed_rate(const Engine::State& state, const Runnable& at) const {
  return at.product ? Steps::guessed_rate(state, at) : glgemm::guessed_rate(state, *call_.prepared);
}

}  // namespace glgemm
