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
    std::optional<gl::StateGuard> guard;
    ConvolutionSteps steps(
        glgemm::prepare(*state_, "prepare", convolution, options, state_->work, guard, CallBuffers::unchecked));
    run_on_nothing(*state_, steps);
  }
}

std::int64_t Engine::workspace_bytes(const Convolution& convolution, const PlanOptions& options) const {
  return make_plan(*this, problem_of(convolution), options).workspace_bytes;
}

}  // namespace glgemm
