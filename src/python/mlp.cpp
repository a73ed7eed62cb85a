#include "python/mlp.hpp"

#include <fmt/core.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>

#include "python/dtype.hpp"
#include "python/job.hpp"
#include "python/views.hpp"

namespace glgemm::python {
namespace {

/// The view of a matrix, or of a copy where no leading dimension describes it.
BufferView place(const std::string& who, const Array& matrix, KeptElements& kept) {
  const Placed at = placed(who, matrix, matrix.layout, false);
  kept.push_back(at.elements);
  return view_of_matrix(at, lines_of(*at.elements, at.layout).value());
}

}  // namespace

PlacedMlp::PlacedMlp(const DeviceMlp& arrays, const Terms& terms, Type type) {
  const auto& [x, layers, out] = arrays;
  const char* const quantised = "the weights can be quantised, and other arrays cannot";
  if (elements_of(x)->quantization) throw py::type_error(fmt::format("{}: {}", terms.who, quantised));
  for (const auto& [weights, bias, activation] : layers) {
    const std::string who = fmt::format("{}: layer {}", terms.who, layers_.size());
    check_operands(who, x, weights, {&bias, &out}, quantised);
    MlpLayer& layer = layers_.emplace_back(MlpLayer{.weights = place(who, weights, kept_), .activation = activation});
    if (bias) layer.bias = dense_place(who, *bias, kept_);
  }
  if (out && !matrix_lines(out->layout))
    throw std::invalid_argument(fmt::format("{}: out has gaps between all elements, or steps back", terms.who));
  result_ = out ? *out : empty(x.storage->service, type, {x.layout.rows(), layers.back().weights.layout.rows()});
  mlp_ = {.layers = layers_,
          .input = place(terms.who, transposed(x), kept_),  // the library has samples as columns
          .output = place(terms.who, transposed(result_), kept_)};
}

namespace {

double work_of(const Mlp& mlp) {
  double work = 0;
  for (const MlpLayer& layer : mlp.layers)
    work += static_cast<double>(layer.weights.rows) * static_cast<double>(layer.weights.columns);
  return work * static_cast<double>(mlp.input.columns);
}

Array run(const DeviceMlp& arrays, const Terms& terms, Type type) {
  const PlacedMlp placed(arrays, terms, type);
  arrays.x.storage->service->run(terms.who.c_str(), [&](Engine& engine, Interrupt& interrupt) {
    const Mlp* const mlp = placed.build(engine);
    if (!mlp) return;
    if (!is_long(work_of(*mlp))) return engine.run(*mlp, terms.options);
    Job job = engine.start(*mlp, terms.options);
    finish(job, interrupt);
  });
  return placed.result();
}

/// Weights, a bias and an activation, each as Python has it.
using GivenLayers = std::vector<std::tuple<Array, std::optional<Array>, py::object>>;

DeviceMlp mlp_of(const Terms& terms, const Array& x, const GivenLayers& layers, const std::optional<Array>& out) {
  DeviceMlp result{.x = x, .layers = {}, .out = out};
  for (const auto& [weights, bias, activation] : layers) {
    const std::string who = fmt::format("{}: layer {}", terms.who, result.layers.size());
    result.layers.push_back({weights, bias, activation_of(who, activation)});
  }
  return result;
}

}  // namespace

void define_mlp(py::module_& module) {
  module.def("mlp", [](const Terms& terms, const Array& x, const GivenLayers& layers, const std::optional<Array>& out,
                       const py::object& dtype) { return run(mlp_of(terms, x, layers, out), terms, type_of_object(dtype)); });
  module.def("start_mlp", [](const Terms& terms, const Array& x, const GivenLayers& layers, const std::optional<Array>& out,
                             const py::object& dtype) {
    return StartedWork::start(mlp_of(terms, x, layers, out), terms, type_of_object(dtype));
  });
}

}  // namespace glgemm::python
