#include "engine/enqueue.hpp"

#include <functional>

#include "engine/execute.hpp"
#include "engine/prepare.hpp"
#include "engine/speed.hpp"

namespace glgemm {
namespace {

/// Runs what a library left of a product by whichever program the planner takes.
void run_by_shader(Engine::State& state, Gemm product, PlanOptions options, Report* report) {
  options.kernel.reset();
  set_vendor(state, options, VendorLibrary::not_asked);
  product.workspace.reset();  // which was large enough for the library
  WorkBuffers work;
  const std::unique_ptr<WorkBuffers, std::function<void(WorkBuffers*)>> at_end(
      &work, [&](WorkBuffers* buffers) { buffers->destroy(state.api); });
  std::optional<gl::StateGuard> guard;
  const Call call = prepare(state, "gemm", product, options, work, guard);
  if (report) {
    report->kernel = to_string(call.prepared->plan.kernel);
    report->plan = {call.prepared, &call.prepared->plan};
  }
  enqueue(state, Steps(call), nullptr);
}

/// Enqueues all steps. Returns what a library left.
std::optional<LeftByLibrary> run_all(Engine::State& state, Steps& steps, Report* report) {
  Enqueuer enqueuer(state, steps);
  enqueuer.upload_items();
  const auto count = [&] {
    if (!report) return;
    ++report->slices;
    ++report->dispatches;
  };
  const bool is_by_library = !steps.convolution() && is_library(steps.product().prepared->plan.kernel);
  if (is_by_library || !may_be_long(state, steps)) {
    while (const std::optional<ConvolutionStep> step = steps.next()) {
      enqueuer.run(*step);
      count();
    }
    return enqueuer.left();
  }
  const double longest = seconds(state.options.max_dispatch);
  for (;;) {
    const Enqueuer::Timed timed = enqueuer.run_timed(longest);
    if (!timed.step) return {};
    count();
    state.clock.collect(state.api, timed.is_trial);
    if (timed.is_trial) gl::check_reset(state.api);
  }
}

}  // namespace

void enqueue(Engine::State& state, Steps steps, Report* report) {
  if (const std::optional<LeftByLibrary> left = run_all(state, steps, report))
    run_by_shader(state, left->rest, steps.product().prepared->options, report);
}

}  // namespace glgemm
