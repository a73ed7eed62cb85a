#include "plan/depthwise.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include "base/device_class.hpp"
#include "base/rounding.hpp"
#include "kernels/kernels.hpp"

namespace glgemm {
namespace {

constexpr std::size_t h_axis = 1, w_axis = 2;

/// The convolution as it runs. Of images of one dimension the rows are one element long then: an invocation goes down them, and
/// reads each element once.
ConvolutionProblem upright(ConvolutionProblem problem) {
  const auto is_flat = [](const auto& sizes) { return sizes[0] == 1 && sizes[h_axis] == 1; };
  if (problem.input_layout == TensorLayout::nhwc && problem.output_layout == TensorLayout::nhwc && is_flat(problem.input) &&
      is_flat(problem.output) && is_flat(problem.filter))
    for (auto member : {&ConvolutionProblem::input, &ConvolutionProblem::output, &ConvolutionProblem::filter,
                        &ConvolutionProblem::stride, &ConvolutionProblem::dilation, &ConvolutionProblem::before})
      std::swap((problem.*member)[h_axis], (problem.*member)[w_axis]);
  return problem;
}

Type depthwise_sums(const ConvolutionProblem& problem) {
  return sum_type(problem.input_type, problem.filters.type);
}

/// The channels of a vector of 16 bytes of the sums.
std::int64_t channels_of_vector(const ConvolutionProblem& problem) {
  return 16 / element_bytes(depthwise_sums(problem));
}

/// Whether channels can be read and written by vectors.
bool lies_in_vectors(const ConvolutionProblem& problem) {
  return !is_complex(depthwise_sums(problem)) && problem.input_layout == TensorLayout::nhwc &&
         problem.output_layout == TensorLayout::nhwc && problem.input_channels == problem.output_channels &&
         problem.output_channels % channels_of_vector(problem) == 0 && problem.input_aligned && problem.filters_aligned &&
         problem.output_aligned;
}

/// The filter's sizes along height and width if programs are written out for them.
bool is_written_out(const ConvolutionProblem& problem) {
  const auto& [filter, stride, dilation] = std::tie(problem.filter, problem.stride, problem.dilation);
  return filter[0] == 1 && std::max(filter[h_axis], filter[w_axis]) <= 7 && (dilation[h_axis] == 1 || filter[h_axis] == 1) &&
         (dilation[w_axis] == 1 || filter[w_axis] == 1) && stride[h_axis] <= 2 &&
         (stride[h_axis] == stride[w_axis] || problem.output[w_axis] == 1);
}

/// The most neighbours along the width for which an invocation has registers, of `words` for each element; 0: for none.
int most_of_run(const ConvolutionProblem& problem, std::int64_t words, int most, const Limits& limits) {
  // The first generations of Adreno 6xx have half of the registers for the waves that their compiler takes.
  const bool is_adreno = is_between(limits.device_class, DeviceClass::adreno_5xx, DeviceClass::adreno_6xx);
  // The compilers for Raspberry Pi and Midgard have 64, and need some of them for addresses.
  const bool needs_more = limits.device_class == DeviceClass::arm_midgard ||
                          is_between(limits.device_class, DeviceClass::broadcom_v3d4, DeviceClass::broadcom_v3d7);
  const std::int64_t registers = is_adreno ? 128 : needs_more ? 50 : traits(limits).max_registers;
  const std::int64_t h = problem.filter[h_axis], w = problem.filter[w_axis], stride = problem.stride[h_axis];
  for (int run = most; run > 0; run /= 2) {
    const std::int64_t held = h * w + ceil_div(h, stride) * run + (run - 1) * stride + w;
    if (held * words + 24 <= registers * 7 / 8) return run;
  }
  return 0;
}

struct DepthwiseChoice {
  bool vectors = false;
  int run = 0;  ///< 0: a program for all filters
};

DepthwiseChoice choose_depthwise(const ConvolutionProblem& problem, const Limits& limits) {
  const bool vectors = lies_in_vectors(problem);
  // Such a program reads filters by vectors of channels.
  const bool any_by_vector = vectors && (problem.filter_layout == FilterLayout::hwio || volume(problem.filter) == 1);
  if (!is_written_out(problem)) return {any_by_vector, 0};
  const std::int64_t words = element_bytes(depthwise_sums(problem)) / 4, taps = volume(problem.filter);
  int widest = limits.cpu ? 8 : problem.input_layout == TensorLayout::nchw ? 1 : 4;
  while (widest > 1 && widest > problem.output[w_axis]) widest /= 2;
  if (limits.cpu) {
    // Compilers take seconds for more.
    const int run = std::min(widest, taps <= 9 ? 8 : 4);
    if (taps <= 25) return {vectors, run};
    return any_by_vector ? DepthwiseChoice{true, 0} : DepthwiseChoice{false, run};
  }
  if (const int run = vectors ? most_of_run(problem, 4, widest, limits) : 0; run > 0) return {true, run};
  if (const int run = most_of_run(problem, words, widest, limits); run > 0) return {false, run};
  return {any_by_vector, 0};
}

/// The bytes of an image's elements.
std::int64_t image_bytes(const Three& size, std::int64_t channels, Type type) {
  return saturating_product({volume(size), channels, element_bytes(type)});
}

}  // namespace

std::int64_t window_bytes(const Limits& limits) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  return std::min(limits.storage_block_bytes, most) / 4 * 4 - std::max<std::int64_t>(limits.storage_offset_alignment, 256);
}

std::string why_not_depthwise(const ConvolutionProblem& problem, const Limits& limits) {
  if (problem.groups != problem.input_channels || problem.groups < 2)
    return fmt::format("{} groups of {} channels", problem.groups, problem.input_channels);
  if (problem.transposed) return "it is transposed";
  if (problem.filters.quantization) return "its filters are quantised";
  if (problem.bias && problem.residual && limits.storage_blocks < 6)
    return fmt::format("with a bias and a residual it may have 6 storage buffers, and the driver allows {}",
                       limits.storage_blocks);
  for (std::size_t d = 0; d < 3; ++d) {
    const std::int64_t last = problem.output[d] * problem.stride[d] + problem.filter[d] * problem.dilation[d];
    if (problem.input[d] == 0 || std::max(last, problem.before[d]) > std::numeric_limits<std::int32_t>::max() / 2)
      return fmt::format("images are {} long, and filters reach as far as {}", problem.input[d], last);
  }
  const std::int64_t largest = std::max({image_bytes(problem.input, problem.input_channels, problem.input_type),
                                         image_bytes(problem.output, problem.output_channels, problem.output_type),
                                         image_bytes(problem.filter, problem.output_channels, problem.filters.type)});
  if (largest > window_bytes(limits))
    return fmt::format("an image or the filters take {} bytes, and a binding has {}", largest, window_bytes(limits));
  if (const std::int64_t taps = volume(problem.filter); limits.loop_iterations > 0 && 2 * taps + 1000 > limits.loop_iterations)
    return fmt::format("filters have {} elements, and loops at most {} turns", taps, limits.loop_iterations);
  return {};
}

ProgramKey depthwise_program(const ConvolutionProblem& as_given, const Limits& limits) {
  const ConvolutionProblem problem = upright(as_given);
  const DepthwiseChoice choice = choose_depthwise(problem, limits);
  ProgramKey key{.kernel = kernels::depthwise(),
                 .a = {problem.input_type},
                 .b = problem.filters,
                 .c_type = problem.output_type,
                 .epilogue = problem.bias || problem.residual || problem.activation != ActivationKind::none};
  const auto set = [&](const char* name, std::int64_t value) { key.kernel = with(key.kernel, name, static_cast<int>(value)); };
  set("filter_h", choice.run > 0 ? problem.filter[h_axis] : 0);
  set("filter_w", choice.run > 0 ? problem.filter[w_axis] : 0);
  set("stride", choice.run > 0 ? problem.stride[h_axis] : 1);
  set("run", std::max(1, choice.run));
  set("workgroup", limits.cpu ? 8 : 64);
  if (choice.vectors) {
    const std::int64_t image = image_bytes(problem.input, problem.input_channels, problem.input_type),
                       bytes = problem.batch * image;
    const bool as_image = limits.cpu && bytes >= kernels::min_image_bytes && image % 16 == 0 &&
                          bytes + 256 <= std::min(limits.image_buffer_bytes, window_bytes(limits));
    key.vector_reads = as_image ? VectorReads::image : VectorReads::storage;
  }
  key.halves_by_integers = !limits.unpacks_halves && (kernels::unpacks_halves(key.a) || kernels::unpacks_halves(key.b));
  key.few_buffers = limits.storage_blocks < 8;
  key.residual = key.few_buffers && problem.residual;
  key.bias = key.few_buffers && problem.bias;
  return key;
}

DepthwiseWork depthwise_work(const ConvolutionProblem& as_given, const ProgramKey& program) {
  DepthwiseWork work{.problem = upright(as_given)};
  const ConvolutionProblem& problem = work.problem;
  const std::int64_t channels = problem.output_channels;
  work.vector = program.vector_reads == VectorReads::none ? 1 : channels_of_vector(problem);
  work.channels = channels / work.vector;
  work.runs = ceil_div(problem.output[w_axis], parameter(program.kernel, "run"));
  work.input = steps_of(problem.input_layout, problem.input, problem.input_channels);
  work.output = steps_of(problem.output_layout, problem.output, channels);
  // A depthwise filter has one input channel.
  const std::int64_t tap = problem.filter_layout == FilterLayout::hwio ? channels : 1;
  work.filters = {{problem.filter[h_axis] * problem.filter[w_axis] * tap, problem.filter[w_axis] * tap, tap},
                  tap == 1 ? volume(problem.filter) : 1,
                  0};
  if (work.vector > 1) {
    for (std::int64_t& step : work.input.step) step /= work.vector;
    work.input.image /= work.vector;
    if (tap > 1)
      for (std::int64_t& step : work.filters.step) step /= work.vector;
  }
  return work;
}

void plan_depthwise(ConvolutionPlan& plan, const Limits& limits, const ProgramKey& program) {
  plan.depthwise = true;
  plan.program = program;
  const DepthwiseWork work = depthwise_work(plan.problem, program);
  const ConvolutionProblem& problem = work.problem;
  const std::int64_t height = problem.output[h_axis], in_a_row = work.channels * work.runs,
                     layers = problem.batch * problem.output[0], workgroup = glgemm::workgroup(program.kernel)[0];
  // Each strip of rows reads the rows between it and the next twice, so that strips are as long as they may be while all of the
  // device is busy.
  const std::int64_t at_a_time =
      limits.cpu ? limits.concurrent_groups * 4 * workgroup : std::int64_t{traits(limits).compute_units} * 512;
  const std::int64_t strips = std::clamp<std::int64_t>(ceil_div(at_a_time, std::max<std::int64_t>(1, in_a_row * layers)), 1,
                                                       std::max<std::int64_t>(1, height));
  const bool takes_all_filters = parameter(program.kernel, "filter_h") == 0;
  plan.strip_rows = std::max<std::int64_t>(limits.cpu ? 1 : 4, ceil_div(height, strips));
  if (takes_all_filters && !limits.cpu) plan.strip_rows = 1;
  if (limits.loop_iterations > 0) {
    const std::int64_t run = parameter(program.kernel, "run");
    const std::int64_t of_a_row =
        2 + (takes_all_filters ? 2 * volume(problem.filter) : 0) + (program.epilogue ? run * work.vector * 90 : run);
    plan.strip_rows = std::clamp<std::int64_t>((limits.loop_iterations - 20) / of_a_row, 1, plan.strip_rows);
  }
  const std::int64_t largest = std::max({std::int64_t{1}, image_bytes(problem.input, problem.input_channels, problem.input_type),
                                         image_bytes(problem.output, problem.output_channels, problem.output_type)});
  plan.piece_images = std::clamp<std::int64_t>(window_bytes(limits) / largest, 1, problem.batch);
  plan.piece_rows = plan.problem.output[plan.axis];
}

}  // namespace glgemm
