// The public functions for convolutions.
#include <glgemm/inspect.hpp>

#include "engine/enqueue.hpp"
#include "engine/execute.hpp"
#include "engine/execute_convolution.hpp"
#include "engine/prepare.hpp"
#include "engine/ready.hpp"

namespace glgemm {

void Engine::convolve(const Convolution& convolution, const PlanOptions& options, Report* report) {
  state_->check_usable("convolve");
  std::optional<gl::StateGuard> guard;
  ConvolutionSteps steps(glgemm::prepare(*state_, "convolve", convolution, options, state_->work, guard));
  run_steps(*this, steps, report);
}

void Engine::prepare(std::span<const Convolution> convolutions, const PlanOptions& options) {
  state_->check_usable("prepare");
  for (const Convolution& convolution : convolutions) {
    const ConvolutionProblem problem = problem_of(convolution);
    std::optional<gl::StateGuard> guard;
    state_->save_bindings("prepare", guard);
    std::shared_ptr<PreparedConvolution> prepared;
    do prepared = prepared_for(*state_, problem, options);
    while (!make_ready(*state_, *prepared));
    if (!convolution.workspace) grow_workspace(*state_, state_->work, prepared->plan.workspace_bytes);
    ConvolutionSteps steps({convolution, std::move(prepared), &state_->work});
    run_on_nothing(*state_, steps);
  }
}

}  // namespace glgemm
