#include "engine/execute_convolution.hpp"

#include "engine/dispatch.hpp"
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
      const Place bias{convolution.bias->buffer, convolution.bias->offset_bytes + step.bias.offset_bytes};
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

}  // namespace

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

void run_step(Engine::State& state, const ConvolutionCall& call, const ConvolutionStep& step, gl::Program& program) {
  Dispatch dispatch(state, *call.prepared->plan.program, program);
  if (step.step.stage == Stage::copy)
    copy(dispatch, call, step);
  else
    convolve(dispatch, call, step.step);
}

}  // namespace glgemm
