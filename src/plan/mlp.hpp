// A network of fully connected layers: which of them share a dispatch, and what the steps are.
#pragma once

#include <fmt/core.h>

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <glgemm/error.hpp>
#include <glgemm/inspect.hpp>

#include "plan/choose.hpp"

namespace glgemm {

inline std::string layer_text(std::size_t layer, std::size_t layers) {
  return fmt::format("mlp: layer {} of {}", layer, layers);
}

/// Calls `work`, which is about a layer as a product; what it refuses names the layer.
template <class Work>
auto of_layer(std::size_t layer, std::size_t layers, const Work& work) {
  const auto message = [&](const std::exception& error) {
    const std::string_view text = error.what(), who = "gemm: ";
    return fmt::format("{}: {}", layer_text(layer, layers), text.starts_with(who) ? text.substr(who.size()) : text);
  };
  try {
    return work();
  } catch (const Unsupported& error) {
    throw Unsupported(message(error));
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(message(error));
  }
}

/// make_plan() by what an engine gives: see choose.hpp.
MlpPlan make_plan(const MlpProblem& problem, const PlannerInputs& inputs, const PlanOptions& options);

/// The problems of the layers of a group.
std::span<const Problem> layers_of(const MlpPlan& plan, const MlpPlan::Group& group);

/// The samples of the piece that begins with this one.
std::int64_t samples_at(const MlpPlan& plan, std::int64_t sample);
/// Which of a group's products is for a piece of so many samples.
std::size_t product_for(const MlpPlan& plan, std::int64_t samples);

/// Where each layer's weights and bias lie in the copies that the plan has of them, in bytes from their beginning.
struct CopiedAt {
  std::int64_t weights = 0, bias = 0;
  std::int64_t weights_bytes = 0, bias_bytes = 0;
};
std::vector<CopiedAt> copied_at(const MlpProblem& problem, std::size_t first, std::size_t count);

/// The elements from the first to behind the last one of a layer's weights as they lie.
std::int64_t elements_of_weights(const Problem& layer);

/// The work of all steps of each group, in multiply-adds.
std::vector<double> work_of(const MlpPlan& plan);

}  // namespace glgemm
