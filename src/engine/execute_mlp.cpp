#include "engine/execute_mlp.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/rounding.hpp"
#include "engine/dispatch.hpp"
#include "engine/execute_product.hpp"
#include "engine/speed.hpp"
#include "gl/buffers.hpp"

namespace glgemm {
namespace {

using namespace kernels;  // the numbers of interface.hpp

const MlpPlan& plan_of(const MlpCall& call) {
  return call.prepared->plan;
}

/// What a group reads and writes, from the first sample of a piece on: the network's own, or a part of the workspace.
BufferView input_of(const MlpCall& call, std::size_t group, std::int64_t sample) {
  const MlpPlan& plan = plan_of(call);
  const Problem& layer = layers_of(plan, plan.groups[group]).front();
  BufferView view = call.mlp.input;
  if (group > 0) {
    const Workspace workspace = workspace_of(call.mlp.workspace, *call.work);
    view = {.buffer = workspace.buffer, .offset_bytes = workspace.offset_bytes + plan.between[group % 2].offset_bytes};
  } else {
    view.offset_bytes += sample * strides(layer, Role::b).column * element_bytes(view.type);
  }
  view.rows = layer.k;
  view.columns = samples_at(plan, sample);
  view.ld = layer.b.ld;
  view.layout = layer.b.layout;
  view.type = layer.b.format.type;
  return view;
}

BufferView output_of(const MlpCall& call, std::size_t group, std::int64_t sample) {
  const MlpPlan& plan = plan_of(call);
  if (group + 1 < plan.groups.size()) return input_of(call, group + 1, sample);
  const Problem& layer = plan.problem.layers.back();
  BufferView view = call.mlp.output;
  view.offset_bytes += sample * strides(layer, Role::c).column * element_bytes(view.type);
  view.columns = samples_at(plan, sample);
  view.ld = layer.c.ld;
  return view;
}

Gemm product_at(const MlpCall& call, std::size_t group, std::int64_t sample) {
  const MlpLayer& layer = call.mlp.layers[plan_of(call).groups[group].first];
  Gemm product = product_of(layer, input_of(call, group, sample), output_of(call, group, sample));
  product.workspace = call.mlp.workspace;
  return product;
}

/// What some places of a buffer reach over, in bytes.
struct Span {
  unsigned buffer = 0;
  std::int64_t begin = 0, end = 0;
};

/// Where the weights and the biases of a group's layers lie: in a buffer of the application's, or as copies in the workspace.
struct Parameters {
  Span weights, biases;
  std::vector<std::int64_t> weights_at, biases_at;  ///< in bytes of the buffer
};

Parameters parameters_of(const MlpCall& call, const MlpPlan::Group& group) {
  const MlpPlan& plan = plan_of(call);
  const Workspace workspace = workspace_of(call.mlp.workspace, *call.work);
  const std::vector<CopiedAt> copies = copied_at(plan.problem, group.first, group.count);
  Parameters result;
  const auto add = [&](Span& all, std::vector<std::int64_t>& places, const Window& copied, std::int64_t in_copy,
                       const BufferPlace& own, std::int64_t bytes, bool reads_vectors) {
    const bool is_copied = copied.size_bytes > 0;
    const std::int64_t at = is_copied ? workspace.offset_bytes + copied.offset_bytes + in_copy : own.offset_bytes;
    places.push_back(at);
    if (bytes == 0) return;
    if (all.end == 0) all = {is_copied ? workspace.buffer : own.buffer, at, at + bytes};
    all.begin = std::min(all.begin, at);
    // Whole vectors of 16 bytes, where some are read so: what all weights reach over ends with one.
    all.end = std::max(all.end, is_copied || reads_vectors ? round_up(at + bytes, 16) : at + bytes);
  };
  for (std::size_t i = 0; i < group.count; ++i) {
    const MlpLayer& layer = call.mlp.layers[group.first + i];
    add(result.weights, result.weights_at, plan.weights, copies[i].weights, {layer.weights.buffer, layer.weights.offset_bytes},
        copies[i].weights_bytes, (parameter(group.program->kernel, "vectors") & 2) != 0);
    add(result.biases, result.biases_at, plan.biases, copies[i].bias, BufferPlace{layer.bias.buffer(), layer.bias.offset_bytes()},
        copies[i].bias_bytes, false);
  }
  return result;
}

bool reads_image(const ProgramKey& program, int bit) {
  return program.vector_reads == VectorReads::image && (parameter(program.kernel, "vectors") & bit) != 0;
}

/// Runs a step of a program of several layers.
void run_layers(Engine::State& state, const MlpCall& call, const Runnable& at, std::size_t index, std::int64_t sample) {
  const MlpPlan& plan = plan_of(call);
  const MlpPlan::Group& group = plan.groups[index];
  const ProgramKey& program = *group.program;
  const std::span<const Problem> layers = layers_of(plan, group);
  const Problem &front = layers.front(), &back = layers.back();
  const BufferView input = input_of(call, index, sample), output = output_of(call, index, sample);
  const Parameters parameters = parameters_of(call, group);
  Dispatch dispatch(state, program, *at.program);
  const auto bind = [&](gl::Binding binding, int bit, Role image, const Place& from, std::int64_t bytes) {
    if (bit != 0 && reads_image(program, bit))
      return dispatch.bind_image(image == Role::a ? gl::unit_a : gl::unit_b, dispatch.operand_image(image), from, bytes);
    return dispatch.bind(binding, from, bytes);
  };
  const Strides in = strides(front, Role::b), out = strides(back, Role::c);
  dispatch.set(at_size, std::ssize(layers), at.step.n, 0, 0);
  dispatch.set(at_a,
               bind(binding_a, 1, Role::a, {input.buffer, input.offset_bytes}, at.step.b.size_bytes) / element_bytes(input.type),
               in.row, in.column, 0);
  dispatch.set(at_c,
               dispatch.bind(binding_c, {output.buffer, output.offset_bytes}, at.step.c.size_bytes) / element_bytes(output.type),
               out.row, out.column, 0);
  const std::int64_t weights_begin = bind(binding_b, 2, Role::b, {parameters.weights.buffer, parameters.weights.begin},
                                          parameters.weights.end - parameters.weights.begin),
                     biases_begin = dispatch.bind(binding_bias, {parameters.biases.buffer, parameters.biases.begin},
                                                  parameters.biases.end - parameters.biases.begin);
  std::vector<std::array<int, 4>> vectors;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const Problem& layer = layers[i];
    const std::int64_t weight_bytes = element_bytes(layer.a.format.type), bias_bytes = element_bytes(layer.c.format.type),
                       weights = (weights_begin + parameters.weights_at[i] - parameters.weights.begin) / weight_bytes,
                       bias = layer.bias == Bias::none
                                  ? 0
                                  : (biases_begin + parameters.biases_at[i] - parameters.biases.begin) / bias_bytes;
    const Strides stride = strides(layer, Role::a);
    const bool is_in_vectors = layer.k % 4 == 0 && stride.column == 1 && stride.row % 4 == 0 && weights % 4 == 0;
    const Activation& activation = call.mlp.layers[group.first + i].activation;
    const auto bits = [](double x) { return std::bit_cast<int>(static_cast<float>(x)); };
    vectors.push_back({static_cast<int>(layer.k), static_cast<int>(layer.m), static_cast<int>(weights), static_cast<int>(bias)});
    vectors.push_back({static_cast<int>(stride.row), static_cast<int>(stride.column), static_cast<int>(layer.activation),
                       (layer.bias != Bias::none ? has_bias : 0) | (is_in_vectors ? in_vectors : 0)});
    vectors.push_back({bits(activation.low()), bits(activation.high()), 0, 0});
  }
  dispatch.set(at_layers, std::span<const std::array<int, 4>>(vectors));
  dispatch.run(at.step, reads_image(program, 3), {output.buffer, output.offset_bytes});
}

}  // namespace

std::optional<Runnable> MlpSteps::next_from(MlpCursor& at, Here& here, double work) const {
  const PreparedMlp& prepared = *call_.prepared;
  const std::optional<MlpStep> step = next_slice(prepared.plan, at, work);
  if (!step) return {};
  here = {step->group, step->sample};
  const PreparedMlp::Group& group = prepared.groups[step->group];
  if (step->step.stage == Stage::layers) return Runnable{step->step, group.program, group.rate};
  return runnable(*group.products[step->product], step->step);
}

const Call& MlpSteps::product() {
  if (product_.prepared && product_at_ == here_) return product_;
  const MlpPlan& plan = plan_of(call_);
  const auto& products = call_.prepared->groups[here_.group].products;
  product_ = make_call(product_at(call_, here_.group, here_.sample), products[product_for(plan, samples_at(plan, here_.sample))],
                       *call_.work);
  product_at_ = here_;
  return product_;
}

ProgramKey MlpSteps::program_of(const Runnable& at) const {
  return at.product ? at.product->plan.program(at.step.stage) : *plan_of(call_).groups[here_.group].program;
}

Images MlpSteps::images(Engine::State& state, const Runnable& at) {
  if (at.product) return images_of(state, product(), at);
  Images result;
  const MlpPlan::Group& group = plan_of(call_).groups[here_.group];
  const auto add = [&](unsigned unit, int bit, const Place& from, std::int64_t bytes) {
    if (!reads_image(*group.program, bit)) return;
    const std::int64_t size = state.buffer_bytes(from.buffer);
    result[unit] = gl::image_kind(size < 0 ? from.offset_bytes + bytes : size, from.offset_bytes, bytes);
  };
  const BufferView input = input_of(call_, here_.group, here_.sample);
  const Span weights = parameters_of(call_, group).weights;
  add(gl::unit_a, 1, {input.buffer, input.offset_bytes}, at.step.b.size_bytes);
  add(gl::unit_b, 2, {weights.buffer, weights.begin}, weights.end - weights.begin);
  return result;
}

void MlpSteps::run(Engine::State& state, const Runnable& at) {
  if (at.product) return run_step(state, product(), at);
  run_layers(state, call_, at, here_.group, here_.sample);
}

/// Copies the weights and biases that dispatches of several layers read, where they lie in several buffers.
void MlpSteps::upload(Engine::State& state) const {
  const MlpPlan& plan = plan_of(call_);
  if (plan.problem.layers.front().n == 0 || (plan.weights.size_bytes == 0 && plan.biases.size_bytes == 0)) return;
  const Workspace workspace = workspace_of(call_.mlp.workspace, *call_.work);
  gl::barrier_before_transfers(state.api);
  for (const MlpPlan::Group& group : plan.groups) {
    if (!group.program) continue;
    const std::vector<CopiedAt> copies = copied_at(plan.problem, group.first, group.count);
    const auto copy = [&](const Window& to, std::int64_t at, unsigned buffer, std::int64_t from, std::int64_t bytes) {
      if (to.size_bytes == 0 || bytes == 0) return;
      gl::copy_lines(state.api, {buffer, from, bytes}, {workspace.buffer, workspace.offset_bytes + to.offset_bytes + at, bytes},
                     bytes);
    };
    for (std::size_t i = 0; i < group.count; ++i) {
      const MlpLayer& layer = call_.mlp.layers[group.first + i];
      copy(plan.weights, copies[i].weights, layer.weights.buffer, layer.weights.offset_bytes, copies[i].weights_bytes);
      if (layer.bias) copy(plan.biases, copies[i].bias, layer.bias.buffer(), layer.bias.offset_bytes(), copies[i].bias_bytes);
    }
  }
}

const Plan* MlpSteps::plan() const {
  for (const MlpPlan::Group& group : plan_of(call_).groups)
    if (!group.products.empty()) return &group.products.front();
  return nullptr;
}

const ProgramKey* MlpSteps::own_program() const {
  const std::vector<MlpPlan::Group>& groups = plan_of(call_).groups;
  return !groups.empty() && groups.front().program ? &*groups.front().program : nullptr;
}

double MlpSteps::all_work() const {
  const std::vector<double>& work = call_.prepared->work;
  return std::accumulate(work.begin(), work.end(), 0.0);
}

double MlpSteps::longest(const Engine::State& state) const {
  return glgemm::longest(state, *call_.prepared);
}

double MlpSteps::guessed_rate(const Engine::State& state, const Runnable& at) const {
  if (at.product) return Steps::guessed_rate(state, at);
  const PreparedMlp& prepared = *call_.prepared;  // `at` need not be the current step
  const auto group = std::ranges::find(prepared.groups, at.program, &PreparedMlp::Group::program) - prepared.groups.begin();
  return glgemm::guessed_rate(prepared, static_cast<std::size_t>(group));
}

}  // namespace glgemm
