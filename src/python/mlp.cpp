#include "python/mlp.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>

#include "python/dtype.hpp"
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

PlacedMlp::PlacedMlp(DeviceMlp arrays, const Terms& terms, Type type)
    : WorkOn(arrays.x.storage->service, terms, arrays.out), given_(std::move(arrays)) {
  auto& [x, layers, out] = given_;
  take_owners({&x}, {&out});
  for (DeviceMlp::Layer& layer : layers) take_owners({&layer.weights}, {&layer.bias});
  const char* const quantised = "the weights can be quantised, and other arrays cannot";
  if (elements_of(x)->quantization) throw py::type_error(fmt::format("{}: {}", terms.who, quantised));
  for (const auto& [weights, bias, activation] : layers) {
    const std::string who = fmt::format("{}: layer {}", terms.who, mlp_.layers.size());
    check_operands(who, x, weights, {&bias, &out}, quantised);
    MlpLayer& layer = mlp_.layers.emplace_back(MlpLayer{.weights = place(who, weights, kept_), .activation = activation});
    if (bias) layer.bias = dense_bias(who, *bias, kept_);
  }
  if (out && !matrix_lines(out->layout))
    throw std::invalid_argument(fmt::format("{}: out has gaps between all elements, or steps back", terms.who));
  const Sizes shape{x.layout.rows(), layers.back().weights.layout.rows()};
  set_result(shape, out ? out->layout : dense(type, shape), out);
  mlp_.input = place(terms.who, transposed(x), kept_);  // the library has samples as columns
}

const Mlp& PlacedMlp::build(const Placed& result) {
  Placed turned = result;
  std::ranges::reverse(turned.layout.shape);
  std::ranges::reverse(turned.layout.strides);
  mlp_.output = view_of_matrix(turned, matrix_lines(turned.layout).value());
  return mlp_;
}

ExplainedArrays PlacedMlp::explained() const {
  ExplainedArrays result;
  const auto add = [&](const std::string& name, const Array& array) {
    result.add(name, array, lines_of(*elements_of(array), at_least_2d(array.layout)) ? "" : ", copied first");
  };
  add("x", given_.x);
  for (std::size_t i = 0; i < given_.layers.size(); ++i) {
    add(fmt::format("weights of layer {}", i), given_.layers[i].weights);
    if (const auto& bias = given_.layers[i].bias) add(fmt::format("bias of layer {}", i), *bias);
  }
  return result;
}

namespace {

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
  module.def("network",
             [](const Terms& terms, const Array& x, const GivenLayers& layers, const std::optional<Array>& out,
                const py::object& dtype) -> std::shared_ptr<Work> {
               return std::make_shared<PlacedMlp>(mlp_of(terms, x, layers, out), terms, type_of_object(dtype));
             });
}

}  // namespace glgemm::python
