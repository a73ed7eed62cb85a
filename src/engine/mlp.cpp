// The public functions for networks.
#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include <glgemm/inspect.hpp>

#include "base/text.hpp"
#include "engine/enqueue.hpp"
#include "engine/execute.hpp"
#include "engine/execute_mlp.hpp"
#include "engine/prepare.hpp"
#include "engine/ready.hpp"
#include "plan/mlp.hpp"

namespace glgemm {

Gemm product_of(const MlpLayer& layer, const BufferView& input, const BufferView& output) {
  Gemm product{.op_a = layer.op, .a = layer.weights, .b = input, .c = output};
  const BiasView& bias = layer.bias;
  if (bias && bias.kind() != Bias::for_each_output)
    refuse_product("a bias for each row or column is a product's; BiasView::for_each_output() is a layer's");
  if (bias) product.epilogue.bias = BiasView::for_each_row(bias.buffer(), bias.offset_bytes(), bias.type());
  product.epilogue.activation = layer.activation;
  return product;
}

MlpProblem problem_of(const Mlp& mlp) {
  MlpProblem result;
  const auto rows = [](const MlpLayer& layer) { return layer.op == Op::none ? layer.weights.rows : layer.weights.columns; };
  const auto inputs = [](const MlpLayer& layer) { return layer.op == Op::none ? layer.weights.columns : layer.weights.rows; };
  const std::size_t count = mlp.layers.size();
  if (count == 0 || count > Mlp::max_layers)
    throw std::invalid_argument(fmt::format("mlp: {} layers; a network has 1 to {}", count, Mlp::max_layers));
  // What weights, or biases, reach over in their buffer; none where that is not one.
  struct Span {
    std::optional<unsigned> buffer{};
    std::int64_t begin = INT64_MAX, end = 0;
    bool together = true;
    void add(unsigned in, std::int64_t from, std::int64_t bytes) {
      together = together && in == buffer.value_or(in);
      buffer = in;
      begin = std::min(begin, from);
      end = std::max(end, from + bytes);
    }
    std::int64_t bytes() const { return !buffer ? 16 : together ? std::max<std::int64_t>(end - begin, 1) : 0; }
  };
  Span weights, biases;
  Type sums = mlp.input.type;
  for (std::size_t i = 0; i < count; ++i) {
    const MlpLayer& layer = mlp.layers[i];
    const bool last = i + 1 == count;
    BufferView input{
        .rows = i > 0 ? rows(mlp.layers[i - 1]) : 0, .columns = mlp.input.columns, .layout = mlp.input.layout, .type = sums};
    if (i == 0) input = mlp.input;
    if (input.rows != inputs(layer))
      throw std::invalid_argument(fmt::format("mlp: layer {} of {} has {} inputs, and {} has {} {}", i, count, inputs(layer),
                                              i == 0 ? "the input" : "the layer before it", input.rows,
                                              i == 0 ? "rows" : "outputs"));
    sums = sum_type(layer.weights.type, input.type);
    BufferView output{.rows = rows(layer), .columns = mlp.input.columns, .layout = mlp.input.layout, .type = sums};
    if (last) output = mlp.output;
    if (output.rows != rows(layer) || output.columns != mlp.input.columns)
      throw std::invalid_argument(fmt::format("mlp: the output is {}, and the last layer gives {}",
                                              size_text(output.rows, output.columns), size_text(rows(layer), mlp.input.columns)));
    result.layers.push_back(of_layer(i, count, [&] { return problem_of(product_of(layer, input, output)); }));
    const Problem& problem = result.layers.back();
    const std::int64_t bytes = layer.weights.quantization ? 0 : elements_of_weights(problem) * element_bytes(layer.weights.type);
    weights.add(layer.weights.buffer, layer.weights.offset_bytes, bytes);
    if (layer.bias) biases.add(layer.bias.buffer(), layer.bias.offset_bytes(), problem.m * element_bytes(problem.c.format.type));
  }
  result.weights_span_bytes = weights.bytes();
  result.biases_span_bytes = biases.bytes();
  result.weights_end_aligned = weights.end % 16 == 0;
  result.output_aligned = mlp.output.offset_bytes % 16 == 0;
  return result;
}

void Engine::run(const Mlp& mlp, const PlanOptions& options, Report* report) {
  state_->check_usable("run");
  std::optional<gl::StateGuard> guard;
  MlpSteps steps(glgemm::prepare(*state_, "run", mlp, options, state_->work, guard));
  run_steps(*this, steps, report);
}

void Engine::prepare(std::span<const Mlp> mlps, const PlanOptions& options) {
  state_->check_usable("prepare");
  for (const Mlp& mlp : mlps) {
    std::optional<gl::StateGuard> guard;
    MlpSteps steps(glgemm::prepare(*state_, "prepare", mlp, options, state_->work, guard, CallBuffers::unchecked));
    run_on_nothing(*state_, steps);
  }
}

std::int64_t Engine::workspace_bytes(const Mlp& mlp, const PlanOptions& options) const {
  return make_plan(*this, problem_of(mlp), options).workspace_bytes;
}

}  // namespace glgemm
