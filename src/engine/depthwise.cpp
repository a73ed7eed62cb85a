#include "engine/depthwise.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <type_traits>
#include <utility>

#include <glgemm/experimental.hpp>

#include "base/elements.hpp"
#include "base/rounding.hpp"
#include "kernels/kernels.hpp"
#include "plan/convolution.hpp"

namespace glgemm {
namespace {

using namespace kernels;  // the numbers of interface.hpp

/// A convolution's buffers and uniforms, and its dispatches.
class DepthwiseRun {
 public:
  DepthwiseRun(Engine::State& state, const Convolution& convolution, const DepthwiseWork& work, const ProgramKey& key)
      : state_(state), convolution_(convolution), key_(key), work_(work), program_(state.program(key)) {}

  void run();

 private:
  /// Binds a part of a buffer and returns the byte of the binding at which it begins.
  std::int64_t bind(Binding binding, unsigned buffer, std::int64_t begin, std::int64_t size_bytes) {
    const std::int64_t rest = begin % std::max<std::int64_t>(state_.limits.storage_offset_alignment, 16);
    gl::bind_storage(state_.api, point(binding), buffer, begin - rest, round_up(size_bytes + rest, 4));
    return rest;
  }
  unsigned point(Binding binding) const { return key_.few_buffers ? binding_of(key_, binding) : binding; }

  template <class... Numbers>
  void set(Location location, Numbers... numbers) {
    program_.set(state_.api, location, std::array<int, sizeof...(Numbers)>{static_cast<int>(numbers)...});
  }
  void set(Location location, const std::array<std::int64_t, 3>& numbers) { set(location, numbers[0], numbers[1], numbers[2]); }

  void constants();
  void bind_images(std::int64_t first, std::int64_t count);
  void dispatch(std::int64_t count);

  Engine::State& state_;
  const Convolution& convolution_;
  const ProgramKey& key_;
  const DepthwiseWork& work_;
  gl::Program& program_;
};

/// What is the same for all dispatches.
void DepthwiseRun::constants() {
  const gl::Api& api = state_.api;
  const ConvolutionProblem& problem = work_.problem;
  set(at_image_size, problem.input);
  set(at_output_size, problem.output);
  set(at_filter_size, problem.filter);
  set(at_strides, problem.stride);
  set(at_dilation, problem.dilation);
  set(at_padding, problem.before);
  set(at_image, work_.input.step[0], work_.input.step[1], work_.input.step[2], work_.input.channel);
  set(at_filter, work_.filters.step[0], work_.filters.step[1], work_.filters.step[2], work_.filters.channel);
  const std::int64_t multiplier = problem.output_channels / problem.input_channels;
  set(at_task, work_.rows, work_.channels, work_.runs, problem.input_layout == TensorLayout::nchw ? -multiplier : multiplier);

  const Type sums = sum_type(problem.input_type, problem.filters.type);
  program_.set(api, at_alpha, sums, convolution_.alpha.value);
  program_.set(api, at_beta, sums, 0.0);
  program_.set(api, at_flags, first_k | last_k | (problem.residual ? add_d : 0) | (problem.bias ? add_bias : 0));
  const FilterView& filters = convolution_.filters;
  const std::int64_t element = element_bytes(problem.filters.type),
                     taps = problem.filter[0] * problem.filter[1] * problem.filter[2] * problem.output_channels;
  const std::int64_t begin = bind(binding_b, filters.buffer, filters.offset_bytes, taps * element);
  set(at_b, begin / (element * work_.vector), 0, 0, 0);
  if (!key_.epilogue) return;
  if (problem.bias) {
    const std::int64_t of_c = element_bytes(problem.output_type);
    const std::int64_t first =
        bind(binding_bias, convolution_.bias->buffer, convolution_.bias->offset_bytes, problem.output_channels * of_c) / of_c;
    set(at_bias, first, 0, 1);
  }
  if (is_complex(sums) || is_integer(sums)) return;
  program_.set(api, at_activation, static_cast<int>(problem.activation));
  program_.set(api, at_low, sums, convolution_.activation.low());
  program_.set(api, at_high, sums, convolution_.activation.high());
}

/// Binds the windows of so many images.
void DepthwiseRun::bind_images(std::int64_t first, std::int64_t count) {
  const ConvolutionProblem& problem = work_.problem;
  const TensorView &input = convolution_.input, &output = convolution_.output;
  const std::int64_t of_a = element_bytes(input.type), of_c = element_bytes(output.type);
  const std::int64_t image_a = work_.input.image * work_.vector * of_a, image_c = work_.output.image * of_c;
  const std::int64_t begin_a = input.offset_bytes + first * image_a, offset_c = first * image_c;
  const std::int64_t a =
      key_.vector_reads == VectorReads::image
          ? gl::bind_image(state_.api, gl::unit_a, state_.operand_images[0], input.buffer, begin_a, count * image_a)
          : bind(binding_a, input.buffer, begin_a, count * image_a);
  set(at_a, a / (of_a * work_.vector), 0, 0, work_.input.image);
  const auto place_c = [&](Location location, Binding binding, const TensorView& view) {
    const std::int64_t begin = bind(binding, view.buffer, view.offset_bytes + offset_c, count * image_c) / of_c;
    set(location, begin, work_.output.step[2], work_.output.channel, work_.output.image);
  };
  place_c(at_c, binding_c, output);
  if (problem.residual) place_c(at_d, binding_d, *convolution_.residual);
  // Where a program declares a block that it does not read, a deleted buffer may still be bound, and zink drops dispatches on it.
  for (const Binding binding : {binding_d, binding_bias})
    if (family(key_.kernel).declares(key_, binding) && !(binding == binding_d ? problem.residual : problem.bias))
      bind(binding, output.buffer, output.offset_bytes, of_c);
}

void DepthwiseRun::dispatch(std::int64_t count) {
  const std::array<std::int64_t, 3> all = work_.groups(count), &most = work_.max_groups;
  for (std::int64_t z = 0; z < all[2]; z += most[2])
    for (std::int64_t y = 0; y < all[1]; y += most[1])
      for (std::int64_t x = 0; x < all[0]; x += most[0]) {
        program_.set(state_.api, at_x0, static_cast<int>(x * work_.workgroup));
        program_.set(state_.api, at_y0, static_cast<int>(y));
        program_.set(state_.api, at_z0, static_cast<int>(z));
        gl::dispatch(state_.api, {std::min(most[0], all[0] - x), std::min(most[1], all[1] - y), std::min(most[2], all[2] - z)});
      }
}

void DepthwiseRun::run() {
  const std::array<std::int64_t, 3> none = work_.groups(work_.problem.batch);
  if (none[0] == 0 || none[1] == 0 || none[2] == 0) return;
  program_.use(state_.api);
  constants();
  gl::barrier_between_dispatches(state_.api, key_.vector_reads == VectorReads::image);
  for (std::int64_t image = 0; image < work_.problem.batch; image += work_.images) {
    const std::int64_t count = std::min(work_.images, work_.problem.batch - image);
    bind_images(image, count);
    dispatch(count);
  }
  if (key_.vector_reads == VectorReads::image && !state_.scoped) gl::release_image(state_.api, state_.operand_images[0]);
}

// ---- The self-check

/// A tensor, filters or a bias of small integers, from byte 16 of a buffer on. What lies around shows when it is overwritten, and
/// is NaN in a float.
class CheckedArray {
 public:
  CheckedArray(const gl::Api& api, Type type, std::int64_t count, unsigned seed)
      : api_(api),
        type_(type),
        bytes_(static_cast<std::size_t>(round_up(count * element_bytes(type), 16) + 32), std::byte{0xff}) {
    const bool is_signed = with_type(type, []<class T>(T) { return !std::is_unsigned_v<T>; });
    for (std::int64_t i = 0; i < count; ++i) {
      seed = seed * 1664525u + 1013904223u;  // Numerical Recipes' quick generator
      values_.push_back(static_cast<double>(seed >> 30) - (is_signed ? 1 : 0));
      store(i, values_.back());
    }
    buffer_ = gl::create_buffer(api, static_cast<std::int64_t>(bytes_.size()), bytes_.data());
  }
  ~CheckedArray() { gl::delete_buffer(api_, buffer_); }
  CheckedArray(const CheckedArray&) = delete;
  CheckedArray& operator=(const CheckedArray&) = delete;

  double operator[](std::int64_t i) const { return values_[static_cast<std::size_t>(i)]; }
  void store(std::int64_t i, double value) { store_element(bytes_.data() + 16 + i * element_bytes(type_), type_, value); }
  unsigned buffer() const { return buffer_; }
  /// Whether the buffer has what was stored.
  bool is_right() const {
    std::vector<std::byte> got(bytes_.size());
    gl::barrier_before_transfers(api_);
    gl::read_buffer(api_, buffer_, 0, got.data(), static_cast<std::int64_t>(got.size()));
    return got == bytes_;
  }

 private:
  const gl::Api& api_;
  Type type_;
  std::vector<std::byte> bytes_;
  std::vector<double> values_;
  unsigned buffer_ = 0;
};

/// A convolution a little larger than what an invocation takes.
ConvolutionProblem small_problem(const ProgramKey& key, FilterLayout layout) {
  const std::int64_t h = parameter(key.kernel, "filter_h"), w = parameter(key.kernel, "filter_w"),
                     stride = parameter(key.kernel, "stride"), run = parameter(key.kernel, "run");
  const bool vectors = key.vector_reads != VectorReads::none, any = h == 0;
  ConvolutionProblem problem{.batch = 2,
                             .input_channels = vectors ? 12 : 3,
                             .output_channels = vectors ? 12 : 6,
                             .output = {1, any ? 3 : h + 2, run + (run > 2 ? run / 2 : 1)},
                             .filter = {1, any ? 2 : h, any ? 3 : w},
                             .stride = {1, stride, stride},
                             .dilation = {1, any ? 2 : 1, 1},
                             .before = {0, 1, 1},
                             .filter_layout = layout,
                             .input_type = key.a.type,
                             .output_type = key.c_type,
                             .filters = key.b,
                             .bias = key.epilogue && (!key.few_buffers || key.bias),
                             .residual = key.epilogue && (!key.few_buffers || key.residual)};
  problem.groups = problem.input_channels;
  // The last element of the output has its filter one element beyond the image.
  for (std::size_t d = 0; d < 3; ++d)
    problem.input[d] = std::max<std::int64_t>(1, (problem.output[d] - 1) * problem.stride[d] +
                                                     (problem.filter[d] - 1) * problem.dilation[d] + 1 - 2 * problem.before[d]);
  const Type sums = sum_type(key.a.type, key.b.type);
  if (key.epilogue && !is_complex(sums) && !is_integer(sums)) problem.activation = ActivationKind::relu;
  return problem;
}

/// Whether the program computes that convolution rightly. Any order of summation gives the same bits.
bool computes_rightly(Engine::State& state, const ProgramKey& key, const ConvolutionProblem& problem) {
  const std::int64_t height = problem.output[1], width = problem.output[2], channels = problem.output_channels,
                     multiplier = channels / problem.input_channels, taps = problem.filter[1] * problem.filter[2];
  const std::int64_t outputs = problem.batch * height * width * channels;
  CheckedArray input(state.api, problem.input_type, problem.batch * problem.input[1] * problem.input[2] * problem.input_channels,
                     1),
      filters(state.api, problem.filters.type, channels * taps, 2), output(state.api, problem.output_type, outputs, 3),
      residual(state.api, problem.output_type, outputs, 4), bias(state.api, problem.output_type, channels, 5);
  Convolution convolution{.alpha = 2};
  convolution.input = {.buffer = input.buffer(), .offset_bytes = 16, .type = problem.input_type};
  convolution.filters = {.buffer = filters.buffer(), .offset_bytes = 16, .type = problem.filters.type};
  convolution.output = {.buffer = output.buffer(), .offset_bytes = 16, .type = problem.output_type};
  if (problem.bias) convolution.bias = BufferPlace{bias.buffer(), 16};
  if (problem.residual) {
    convolution.residual = convolution.output;
    convolution.residual->buffer = residual.buffer();
  }
  for (std::int64_t i = 0; i < outputs; ++i) {
    const std::int64_t o = i % channels, x = i / channels % width, y = i / (channels * width) % height,
                       image = i / (channels * width * height);
    double sum = 0;
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      const std::int64_t row = y * problem.stride[1] + tap / problem.filter[2] * problem.dilation[1] - problem.before[1],
                         column = x * problem.stride[2] + tap % problem.filter[2] * problem.dilation[2] - problem.before[2];
      if (row < 0 || column < 0 || row >= problem.input[1] || column >= problem.input[2]) continue;
      sum += input[((image * problem.input[1] + row) * problem.input[2] + column) * problem.input_channels + o / multiplier] *
             filters[problem.filter_layout == FilterLayout::hwio ? tap * channels + o : o * taps + tap];
    }
    double value = 2 * sum + (problem.residual ? residual[i] : 0) + (problem.bias ? bias[o] : 0);
    if (problem.activation == ActivationKind::relu) value = std::max(value, 0.0);
    output.store(i, value);
  }
  const DepthwiseWork work = depthwise_work(problem, state.limits, key);
  DepthwiseRun(state, convolution, work, key).run();
  return output.is_right();
}

}  // namespace

gl::Bindings depthwise_bindings(const ProgramKey& program) {
  gl::Bindings result = gl::product_bindings;
  if (program.vector_reads == VectorReads::image) result |= gl::image_a;
  for (unsigned i = 0; i < gl::storage_bindings; ++i)
    if (family(program.kernel).declares(program, i)) {
      const unsigned point = program.few_buffers ? binding_of(program, i) : i;
      result |= gl::bit(static_cast<Binding>(point));
    }
  return result;
}

bool make_depthwise_ready(Engine::State& state, const ProgramKey& program) {
  const auto is_program = [&](const StruckOff& each) { return each.program == program; };
  if (std::any_of(state.struck_off.begin(), state.struck_off.end(), is_program)) return false;
  try {
    state.program(program);
  } catch (const RefusedProgram& refused) {
    state.strike_off({program, refused.reason, true});
    return false;
  }
  if (!state.options.experimental->self_check || state.self_checked(program)) return true;
  // A program for all filters that reads vectors takes those with channels innermost.
  const bool hwio_alone = program.vector_reads != VectorReads::none && parameter(program.kernel, "filter_h") == 0;
  for (const FilterLayout layout : {FilterLayout::hwio, FilterLayout::ohwi}) {
    if (layout == FilterLayout::ohwi && hwio_alone) continue;
    const ConvolutionProblem problem = small_problem(program, layout);
    const bool is_right = computes_rightly(state, program, problem);
    state.sizes.clear();  // other buffers may get the names of its buffers
    state.forget_images();
    if (is_right) continue;
    state.strike_off({program, fmt::format("a convolution of {}x{} with filters of {}x{} in integers is wrong", problem.input[1],
                                           problem.input[2], problem.filter[1], problem.filter[2])});
    return false;
  }
  state.remember_self_check(program);
  return true;
}

void enqueue_depthwise(Engine::State& state, const Convolution& convolution, const DepthwiseWork& work,
                       const ProgramKey& program) {
  DepthwiseRun(state, convolution, work, program).run();
}

}  // namespace glgemm
