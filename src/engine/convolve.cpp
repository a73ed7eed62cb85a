// Convolutions: prepared once, then a copy with a border and products for each piece.
#include "engine/convolve.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <utility>

#include <glgemm/fence.hpp>
#include <glgemm/inspect.hpp>
#include <glgemm/stopwatch.hpp>

#include "base/quantization.hpp"
#include "base/rounding.hpp"
#include "engine/depthwise.hpp"
#include "engine/execute.hpp"
#include "engine/library.hpp"
#include "engine/offsets.hpp"
#include "engine/validate.hpp"
#include "gl/program_statistics.hpp"
#include "kernels/interface.hpp"
#include "kernels/kernels.hpp"

namespace glgemm {
namespace {

/// A box of lines: of volumes, planes and lines of the copy.
struct Lines {
  std::int64_t volume, volumes, plane, planes, line, lines;
};

/// Copies images with a border, in as many dispatches as bindings and grids of the device need.
class BorderCopier {
 public:
  BorderCopier(Engine::State& state, const Limits& limits, gl::Program& program, const ProgramKey& key,
               const ConvolutionProblem& problem, const BorderedCopy& border, unsigned from, std::int64_t from_bytes,
               std::int64_t image, const Workspace& to)
      : state_(state), limits_(limits), program_(program), key_(key), problem_(problem), border_(border), to_(to), buffer_(from) {
    const bool last = problem.input_layout == TensorLayout::nhwc;
    const TensorSteps in = steps_of(problem.input_layout, problem.input, problem.input_channels);
    const std::int64_t bytes = element_bytes(problem.input_type);
    // Larger elements are several words, and vectors several elements.
    unit_ = key.vector_reads != VectorReads::none ? 16 : std::min<std::int64_t>(bytes, 4);
    const auto units = [&](std::int64_t elements) { return elements * bytes / unit_; };
    line_ = units(in.step[1]), plane_ = units(in.step[0]), volume_ = units(last ? in.image : in.channel);
    length_ = units(problem.input[2] * in.step[2]);
    lead_ = units(border.first[2] * in.step[2]);
    begin_ = from_bytes + image * in.image * bytes;
    const std::int64_t per_vector = 16 / bytes;
    to_line_ = border.step[1] / per_vector, to_plane_ = border.step[0] / per_vector;
    to_volume_ = (last ? border.image : border.channel) / per_vector;
  }
  void copy(const Lines& lines);

 private:
  struct Range {
    std::int64_t begin, end;
  };
  /// Those of `count` from `begin` on that lie in an image that has `all`.
  static Range inside(std::int64_t begin, std::int64_t count, std::int64_t all) {
    return {std::clamp<std::int64_t>(begin, 0, all), std::clamp<std::int64_t>(begin + count, 0, all)};
  }
  /// What it reads, in units; nothing where all lies in the border.
  Range reads(const Lines& lines) const {
    const Range planes = inside(lines.plane + border_.first[0], lines.planes, problem_.input[0]),
                rows = inside(lines.line + border_.first[1], lines.lines, problem_.input[1]),
                units = inside(lead_, to_line_ * (16 / unit_), length_);
    if (planes.begin >= planes.end || rows.begin >= rows.end || units.begin >= units.end) return {0, 0};
    return {lines.volume * volume_ + planes.begin * plane_ + rows.begin * line_ + units.begin,
            (lines.volume + lines.volumes - 1) * volume_ + (planes.end - 1) * plane_ + (rows.end - 1) * line_ + units.end};
  }
  std::int64_t bind(unsigned buffer, std::int64_t number, std::int64_t begin, std::int64_t size_bytes) {
    const std::int64_t rest = begin % std::max<std::int64_t>(state_.limits.storage_offset_alignment, 16);
    gl::bind_storage(state_.api, kernels::binding_of(key_, static_cast<unsigned>(number)), buffer, begin - rest,
                     round_up(size_bytes + rest, 4));
    return rest;
  }

  Engine::State& state_;
  const Limits& limits_;
  gl::Program& program_;
  const ProgramKey& key_;
  const ConvolutionProblem& problem_;
  const BorderedCopy& border_;
  Workspace to_;
  unsigned buffer_;
  std::int64_t unit_ = 0, line_ = 0, plane_ = 0, volume_ = 0, length_ = 0, lead_ = 0, begin_ = 0;
  std::int64_t to_line_ = 0, to_plane_ = 0, to_volume_ = 0;
};

void BorderCopier::copy(const Lines& lines) {
  const Range read = reads(lines);
  const std::int64_t of_group = workgroup(key_.kernel)[0] * kernels::border_vectors,
                     most_vectors = limits_.groups[0] * of_group;  // of a line, in one dispatch
  const std::array<std::int64_t, 3> groups{ceil_div(std::min(to_line_, most_vectors), of_group), lines.lines,
                                           lines.planes * lines.volumes};
  const std::int64_t most = std::min<std::int64_t>(limits_.storage_block_bytes, std::numeric_limits<std::int32_t>::max()) - 256;
  const bool is_large = (read.end - read.begin) * unit_ > most || groups[1] > limits_.groups[1] ||
                        groups[2] > limits_.groups[2] ||
                        saturating_product({groups[0], groups[1], groups[2]}) > limits_.groups_product;
  const auto halves = [&](std::int64_t Lines::*begin, std::int64_t Lines::*count) {
    Lines first = lines, second = lines;
    first.*count = lines.*count / 2;
    second.*begin += first.*count;
    second.*count -= first.*count;
    copy(first);
    copy(second);
  };
  if (is_large && lines.volumes > 1) return halves(&Lines::volume, &Lines::volumes);
  if (is_large && lines.planes > 1) return halves(&Lines::plane, &Lines::planes);
  if (is_large && lines.lines > 1) return halves(&Lines::line, &Lines::lines);

  const gl::Api& api = state_.api;
  // Where nothing is read, something must be bound all the same: zink drops dispatches without.
  const bool reads_some = read.begin < read.end;
  const unsigned from = reads_some ? buffer_ : to_.buffer;
  const std::int64_t begin = reads_some ? begin_ + read.begin * unit_ : to_.offset_bytes,
                     size_bytes = reads_some ? (read.end - read.begin) * unit_ : 16,
                     rest = key_.vector_reads == VectorReads::image
                                ? gl::bind_image(api, gl::unit_a, state_.operand_images[0], from, begin, size_bytes)
                                : bind(from, kernels::binding_a, begin, size_bytes);
  const std::int64_t to = bind(to_.buffer, kernels::binding_partial, to_.offset_bytes, border_.size_bytes);
  const std::int64_t plane = lines.plane + border_.first[0], line = lines.line + border_.first[1];
  const auto ints = [](auto... numbers) { return std::array{static_cast<int>(numbers)...}; };
  program_.set(api, kernels::at_y0, 0);
  program_.set(api, kernels::at_z0, 0);
  program_.set(api, kernels::at_a, ints(lines.volume * volume_ - read.begin + rest / unit_, line_, plane_, volume_));
  program_.use(api);
  const std::int64_t first = to / 16 + lines.volume * to_volume_ + lines.plane * to_plane_ + lines.line * to_line_;
  for (std::int64_t vector = 0; vector < to_line_; vector += most_vectors) {
    const std::int64_t vectors = std::min(most_vectors, to_line_ - vector);
    program_.set(api, kernels::at_size, ints(vectors, lines.planes, plane, problem_.input[0]));
    program_.set(api, kernels::at_b, ints(lead_ + vector * 16 / unit_, length_, line, problem_.input[1]));
    program_.set(api, kernels::at_c, ints(first + vector, to_line_, to_plane_, to_volume_));
    gl::dispatch(api, {ceil_div(vectors, of_group), groups[1], groups[2]});
  }
}

/// Copies two small images with a border and compares every byte: drivers do miscompile.
/// @throws GlError  a byte is wrong
void check_copy(Engine::State& state, const ConvolutionProblem& like, const ProgramKey& key, gl::Program& program) {
  if (!state.options.experimental->self_check || state.self_checked(key)) return;
  ConvolutionProblem problem;
  problem.batch = 2, problem.input = {2, 3, 5}, problem.input_type = like.input_type;
  problem.input_channels = key.vector_reads == VectorReads::none ? 3 : 16 / element_bytes(problem.input_type);
  const BorderedCopy border = copy_of(problem, {-1, -2, -1}, {2, 3, 6}, problem.batch);
  const TensorSteps in = steps_of(problem.input_layout, problem.input, problem.input_channels);
  const std::int64_t bytes = element_bytes(problem.input_type);
  std::vector<std::byte> images(static_cast<std::size_t>(round_up(in.image * problem.batch * bytes, 4))),
      expected(static_cast<std::size_t>(border.size_bytes)), got(expected.size());
  for (std::size_t i = 0; i < images.size(); ++i) images[i] = static_cast<std::byte>(7 * i + 3);
  for (std::int64_t image = 0; image < problem.batch; ++image)
    for (std::int64_t z = 0; z < problem.input[0]; ++z)
      for (std::int64_t y = 0; y < problem.input[1]; ++y) {
        const std::int64_t from = image * in.image + z * in.step[0] + y * in.step[1],
                           to = image * border.image + (z - border.first[0]) * border.step[0] +
                                (y - border.first[1]) * border.step[1] - border.first[2] * border.step[2];
        std::copy_n(images.begin() + from * bytes, in.step[1] * bytes, expected.begin() + to * bytes);
      }
  unsigned source = gl::create_buffer(state.api, static_cast<std::int64_t>(images.size()), images.data()),
           copied = gl::create_buffer(state.api, border.size_bytes);
  BorderCopier(state, state.limits, program, key, problem, border, source, 0, 0, {copied, 0, 0})
      .copy({0, problem.batch, 0, border.size[0], 0, border.size[1]});
  gl::barrier_before_transfers(state.api);
  gl::read_buffer(state.api, copied, 0, got.data(), border.size_bytes);
  gl::delete_buffer(state.api, source);
  gl::delete_buffer(state.api, copied);
  state.sizes.clear();  // other buffers may get their names
  state.forget_images();
  if (got != expected)
    throw GlError(fmt::format("convolve: {} copies byte {} of a small image wrong on this driver", to_string(key),
                              std::mismatch(got.begin(), got.end(), expected.begin()).first - got.begin()));
  state.remember_self_check(key);
}

BufferView view_of(const Placement& placement, std::int64_t rows, std::int64_t columns, Type type) {
  const Lying lying = lying_of(placement);
  BufferView view{.rows = rows, .columns = columns, .ld = lying.ld, .layout = lying.layout, .type = type};
  if (lying.addressing == Addressing::indexed)
    view.indexing = Indexing{{.values = placement.rows}, {.values = placement.columns}};
  return view;
}

/// The product of the first group of a piece, without its buffers.
Gemm product_without_buffers(const ConvolutionProblem& problem, const ConvolutionProduct& product) {
  Gemm gemm;
  gemm.a = view_of(product.input, product.m, product.k, problem.input_type);
  gemm.c = view_of(product.output, product.m, product.n, problem.output_type);
  if (problem.transposed) {
    gemm.b = view_of(product.filters, product.k, product.n, problem.filters.type);
  } else {
    const FilterMatrix filters = filter_matrix(problem);
    gemm.op_b = filters.op;
    gemm.b = {.rows = filters.rows,
              .columns = filters.columns,
              .ld = filters.ld,
              .type = problem.filters.type,
              .quantization = problem.filters.quantization};
  }
  gemm.batch = {.count = product.images, .stride_a = product.input_stride, .stride_c = product.output_stride};
  gemm.batch.stride_d = gemm.batch.stride_c;
  return gemm;
}

std::shared_ptr<PreparedConvolution> prepared_for(Engine::State& state, const ConvolutionProblem& problem,
                                                  const PlanOptions& options, bool multiplies) {
  for (const auto& known : state.convolutions)
    if (multiplies && known->problem == problem && known->options == options) return known;
  auto made = std::make_shared<PreparedConvolution>();
  made->problem = problem;
  made->options = options;
  PlanOptions own = with_own(state, options);
  ConvolutionProblem planned = problem;
  if (!multiplies) {  // neither input nor filters are read, which products know
    own.kernel = Kernel();
    planned.filters.quantization = {};
  }
  made->plan = make_plan(planned, state.limits, own);
  for (ConvolutionPiece& piece : pieces_of(made->plan)) made->shapes.push_back({std::move(piece), {}});
  made->bindings = gl::product_bindings;
  if (made->plan.depthwise) {
    made->bindings |= depthwise_bindings(*made->plan.program);
    made->depthwise = depthwise_work(problem, options.experimental->limits.value_or(state.limits), *made->plan.program);
  } else if (const auto& key = made->plan.program) {
    if (key->vector_reads == VectorReads::image) made->bindings |= gl::image_a;
    for (const unsigned buffer : {kernels::binding_a, kernels::binding_partial})
      made->bindings |= gl::bit(static_cast<gl::Binding>(kernels::binding_of(*key, buffer)));
  }
  const PlanOptions of_products = options_of_products(made->plan, options);
  std::int64_t needed = 0;
  bool is_best = true;
  for (PreparedConvolution::Shape& shape : made->shapes)
    for (const ConvolutionProduct& product : shape.piece.products) {
      Problem its = problem_of(made->plan, shape.piece, product);
      if (!multiplies) its.k = 0;
      shape.products.push_back({prepared_for(state, its, of_products), nullptr});
      const Prepared& prepared = *shape.products.back().prepared;
      made->bindings |= prepared.bindings;
      needed = std::max(needed, prepared.plan.workspace.size_bytes);
      is_best = is_best && std::any_of(state.prepared.begin(), state.prepared.end(),
                                       [&](const auto& kept) { return kept.get() == &prepared; });
    }
  set_workspace(made->plan, needed);
  if (!is_best || !multiplies) return made;  // a better plan takes its place when its programs are ready
  if (state.convolutions.size() >= Engine::State::max_prepared) state.convolutions.erase(state.convolutions.begin());
  state.convolutions.push_back(made);
  return made;
}

/// Compiles and checks all programs. Returns false if one is struck off now, and the convolution must be planned again.
bool make_ready(Engine::State& state, PreparedConvolution& prepared) {
  prepared.work = 0;
  if (prepared.plan.depthwise) return make_depthwise_ready(state, *prepared.plan.program);
  if (const auto& key = prepared.plan.program) {
    prepared.copy = &state.program(*key);
    check_copy(state, prepared.problem, *key, *prepared.copy);
  }
  for (PreparedConvolution::Shape& shape : prepared.shapes)
    for (std::size_t i = 0; i < shape.products.size(); ++i) {
      PreparedConvolution::Product& product = shape.products[i];
      if (!make_ready(state, *product.prepared, prepared.options.kernel.has_value())) return false;
      const Call call =
          make_call(product_without_buffers(prepared.problem, shape.piece.products[i]), product.prepared, state.work);
      if (!product.offsets) product.offsets = offsets_on_device(state, call.product, product.prepared->plan.problem);
      for (const double work : product.prepared->work)
        prepared.work += work * static_cast<double>(prepared.problem.groups * prepared.plan.pieces) /
                         static_cast<double>(prepared.shapes.size());
    }
  return true;
}

}  // namespace

ConvolutionCall prepare(Engine::State& state, const char* what, const Convolution& convolution, const PlanOptions& options,
                        WorkBuffers& work, std::optional<gl::StateGuard>& guard) {
  const ConvolutionProblem problem = problem_of(convolution);
  for (;;) {
    const auto prepared = prepared_for(state, problem, options, convolution.alpha.value != 0.0);
    guard.reset();
    state.save_bindings(what, guard, prepared->bindings);
    if (!make_ready(state, *prepared)) continue;
    validate_convolution(convolution, problem, prepared->plan.workspace_bytes,
                         [&](unsigned buffer) { return state.buffer_bytes(buffer); });
    if (!convolution.workspace) grow_workspace(state, work, prepared->plan.workspace_bytes);
    return {convolution, prepared, &work};
  }
}

bool ConvolutionSteps::at_end() const {
  const ConvolutionPlan& plan = call_.prepared->plan;
  return plan.depthwise ? has_run_ : plan.pieces == 0 || image_ >= plan.problem.batch;
}

const PreparedConvolution::Shape& ConvolutionSteps::shape() const {
  const ConvolutionPlan& plan = call_.prepared->plan;
  const std::int64_t images = std::min(plan.piece_images, plan.problem.batch - image_),
                     rows = std::min(plan.piece_rows, plan.problem.output[plan.axis] - row_);
  return *std::find_if(call_.prepared->shapes.begin(), call_.prepared->shapes.end(),
                       [&](const auto& shape) { return shape.piece.images == images && shape.piece.rows == rows; });
}

Gemm ConvolutionSteps::product_of_group(const PreparedConvolution::Shape& shape) const {
  const Convolution& convolution = call_.convolution;
  const ConvolutionPlan& plan = call_.prepared->plan;
  const ConvolutionProblem& problem = plan.problem;
  const ConvolutionProduct& product = shape.piece.products[product_];
  const BorderedCopy& border = shape.piece.border;
  const bool copied = border.size_bytes > 0;
  Gemm gemm = product_without_buffers(problem, product);
  gemm.alpha = convolution.alpha;
  gemm.beta = 0;

  const std::int64_t input_channel = group_ * (problem.input_channels / problem.groups),
                     output_channel = group_ * (problem.output_channels / problem.groups);
  const TensorSteps in = steps_of(problem.input_layout, problem.input, problem.input_channels),
                    out = steps_of(problem.output_layout, problem.output, problem.output_channels);
  std::int64_t first = product.input.first;
  if (copied) {
    const Workspace work = convolution.workspace.value_or(Workspace{call_.work->workspace, 0, 0});
    gemm.a.buffer = work.buffer;
    gemm.a.offset_bytes = work.offset_bytes + plan.border_offset_bytes;
    first += input_channel * border.channel;
  } else {
    gemm.a.buffer = convolution.input.buffer;
    gemm.a.offset_bytes = convolution.input.offset_bytes;
    first += image_ * in.image + input_row(plan, row_) * in.step[plan.axis] + input_channel * in.channel;
  }
  gemm.a.offset_bytes += first * element_bytes(problem.input_type);

  const FilterView& filters = convolution.filters;
  const std::int64_t skipped = product.filters.first + group_ * filters_of_group(problem);
  gemm.b.buffer = filters.buffer;
  gemm.b.offset_bytes = filters.offset_bytes + storage_bytes(problem.filters, skipped);
  gemm.b.scales = filters.scales;
  gemm.b.zeros = filters.zeros;
  if (filters.quantization) {
    const QuantizedBytes before = bytes_before(filters.quantization, gemm.b.ld, output_channel, 0);
    gemm.b.scales.offset_bytes += before.scales;
    gemm.b.zeros.offset_bytes += before.zeros;
  }

  const std::int64_t to = product.output.first + image_ * out.image + row_ * out.step[plan.axis] + output_channel * out.channel;
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

std::optional<Call> ConvolutionSteps::next(Engine::State& state) {
  if (at_end()) return {};
  if (const ConvolutionPlan& plan = call_.prepared->plan; plan.depthwise) {
    enqueue_depthwise(state, call_.convolution, call_.prepared->depthwise, *plan.program);
    has_run_ = true;
    return {};
  }
  const ConvolutionPlan& plan = call_.prepared->plan;
  const PreparedConvolution::Shape& shape = this->shape();
  if (group_ == 0 && product_ == 0 && shape.piece.border.size_bytes > 0 && call_.convolution.alpha.value != 0.0)
    enqueue_copy(state, shape.piece.border);
  const PreparedConvolution::Product& product = shape.products[product_];
  Call call = make_call(product_of_group(shape), product.prepared, *call_.work);
  call.offsets = product.offsets;
  if (++product_ < shape.products.size()) return call;
  product_ = 0;
  if (++group_ < plan.problem.groups) return call;
  group_ = 0;
  row_ += plan.piece_rows;
  if (row_ < plan.problem.output[plan.axis]) return call;
  row_ = 0;
  image_ += plan.piece_images;
  return call;
}

void ConvolutionSteps::enqueue_copy(Engine::State& state, const BorderedCopy& border) const {
  const PreparedConvolution& prepared = *call_.prepared;
  const ConvolutionProblem& problem = prepared.problem;
  Workspace to = call_.convolution.workspace.value_or(Workspace{call_.work->workspace, 0, 0});
  to.offset_bytes += prepared.plan.border_offset_bytes;
  BorderedCopy moved = border;
  moved.first[prepared.plan.axis] += input_row(prepared.plan, row_);
  const bool channels_are_volumes = problem.input_layout == TensorLayout::nchw;
  const std::int64_t images = std::min(prepared.plan.piece_images, problem.batch - image_);
  gl::barrier_between_dispatches(state.api, prepared.plan.program->vector_reads == VectorReads::image);
  const TensorView& input = call_.convolution.input;
  BorderCopier(state, prepared.options.experimental->limits.value_or(state.limits), *prepared.copy, *prepared.plan.program,
               problem, moved, input.buffer, input.offset_bytes, image_, to)
      .copy({0, images * (channels_are_volumes ? problem.input_channels : 1), 0, border.size[0], 0, border.size[1]});
}

void Engine::convolve(const Convolution& convolution, const PlanOptions& options, Report* report) {
  state_->check_usable("convolve");
  std::optional<gl::StateGuard> guard;
  ConvolutionSteps steps(glgemm::prepare(*state_, "convolve", convolution, uncut(*state_, options), state_->work, guard));
  const auto run = [&] {
    while (const std::optional<Call> call = steps.next(*state_)) enqueue(*state_, *call, report);
  };
  if (!report) return run();
  *report = {};
  const auto& shapes = steps.call().prepared->shapes;
  if (const ConvolutionPlan& plan = steps.call().prepared->plan; plan.depthwise) report->kernel = to_string(plan.program->kernel);
  if (!shapes.empty()) {
    const std::shared_ptr<const Prepared> first = shapes.front().products.front().prepared;
    report->kernel = to_string(first->plan.kernel);
    report->plan = {first, &first->plan};
  }
  Stopwatch watch(*this);
  watch.start();
  run();
  watch.stop();
  report->kernel_time = watch.elapsed();
}

void Engine::prepare(std::span<const Convolution> convolutions, const PlanOptions& options) {
  state_->check_usable("prepare");
  for (const Convolution& convolution : convolutions) {
    const ConvolutionProblem problem = problem_of(convolution);
    std::optional<gl::StateGuard> guard;
    state_->save_bindings("prepare", guard);
    while (!make_ready(*state_, *prepared_for(*state_, problem, uncut(*state_, options), convolution.alpha.value != 0.0))) {
    }
  }
}

std::vector<ProgramReport> Engine::compile(const ConvolutionPlan& plan) {
  std::vector<ProgramReport> reports;
  const auto add = [&](ProgramReport report) {
    if (std::none_of(reports.begin(), reports.end(), [&](const auto& known) { return known.program == report.program; }))
      reports.push_back(std::move(report));
  };
  for (const Plan& product : plan.products)
    for (ProgramReport& report : compile(product)) add(std::move(report));
  if (!plan.program) return reports;
  std::optional<gl::StateGuard> guard;
  state_->save_bindings("compile", guard);
  std::vector<std::string> messages = state_->messages_of(*plan.program);
  add({*plan.program, plan.depthwise ? Stage::multiply : Stage::pack_a, parse_statistics(messages), std::move(messages)});
  return reports;
}

ConvolutionProblem Engine::problem(const Convolution& convolution) {
  return problem_of(convolution);
}

ConvolutionPlan Engine::plan(const ConvolutionProblem& problem, const PlanOptions& options) const {
  return make_plan(problem, state_->limits, with_own(*state_, uncut(*state_, options)));
}

}  // namespace glgemm
