#include "engine/speed.hpp"

#include <algorithm>

#include "plan/cost_model.hpp"

namespace glgemm {
namespace {

/// The cost model may be wrong by this factor before a step takes longer than it should.
constexpr double safety = 8;

/// Seconds that the cost model expects a product to take.
double modelled_seconds(const Engine::State& state, const Prepared& prepared) {
  return expected_seconds(prepared.plan, prepared.options, state.limits);
}

/// The work of the copies of a convolution, or of a depthwise one.
double own_work(const PreparedConvolution& prepared) {
  return prepared.work[static_cast<std::size_t>(prepared.plan.depthwise ? Stage::depthwise : Stage::copy)];
}

/// Seconds that it expects that to take.
double modelled_seconds(const Engine::State& state, const PreparedConvolution& prepared) {
  return expected_seconds(prepared.plan, limits_for(prepared.options, state.limits), own_work(prepared));
}

}  // namespace

double longest(const Engine::State& state, const Prepared& prepared) {
  double seconds = 0;
  for (std::size_t stage = 0; stage < stage_count; ++stage) {
    if (prepared.work[stage] == 0) continue;
    const Rate* const rate = prepared.rates[stage];
    if (!rate->known()) return safety * modelled_seconds(state, prepared);
    seconds += prepared.work[stage] / rate->per_second;
  }
  return seconds;
}

double longest(const Engine::State& state, const PreparedConvolution& prepared) {
  const ConvolutionPlan& plan = prepared.plan;
  double seconds = 0;
  if (prepared.rate)
    seconds =
        prepared.rate->known() ? own_work(prepared) / prepared.rate->per_second : safety * modelled_seconds(state, prepared);
  for (std::size_t i = 0; i < prepared.shapes.size(); ++i)
    for (const PreparedConvolution::Product& product : prepared.shapes[i].products)
      seconds += longest(state, *product.prepared) * static_cast<double>(pieces_of(plan, plan.shapes[i]) * plan.problem.groups);
  return seconds;
}

double longest(const Engine::State& state, const PreparedMlp& prepared) {
  const MlpPlan& plan = prepared.plan;
  double result = 0;
  for (std::size_t i = 0; i < plan.groups.size(); ++i) {
    const PreparedMlp::Group& group = prepared.groups[i];
    if (group.program)
      result += group.rate->known() ? prepared.work[i] / group.rate->per_second : safety * plan.groups[i].expected_seconds;
    else
      result += longest(state, *group.products.front()) * static_cast<double>(plan.pieces);
  }
  return result;
}

double guessed_rate(const PreparedMlp& prepared, std::size_t group) {
  return prepared.work[group] / std::max(prepared.plan.groups[group].expected_seconds, 1e-9) / safety;
}

double guessed_rate(const Engine::State& state, const PreparedConvolution& prepared) {
  return own_work(prepared) / std::max(modelled_seconds(state, prepared), 1e-9) / safety;
}

double Steps::guessed_rate(const Engine::State& state, const Runnable& at) const {
  const double by_model =
      at.product->work[static_cast<std::size_t>(Stage::multiply)] / std::max(modelled_seconds(state, *at.product), 1e-9);
  return by_model / (at.step.stage == Stage::multiply ? safety : 16 * safety);  // what moves elements does less work in a second
}

}  // namespace glgemm
