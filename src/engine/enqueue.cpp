#include "engine/enqueue.hpp"

#include <functional>

#include <glgemm/stopwatch.hpp>

#include "engine/execute.hpp"
#include "engine/execute_product.hpp"
#include "engine/prepare.hpp"

namespace glgemm {
namespace {

/// Runs what a library left of a product by whichever program the planner takes.
void run_by_shader(Engine::State& state, Gemm product, PlanOptions options, Report* report) {
  options.kernel.reset();
  product.workspace.reset();  // which was large enough for the library
  WorkBuffers work;
  const std::unique_ptr<WorkBuffers, std::function<void(WorkBuffers*)>> at_end(
      &work, [&](WorkBuffers* buffers) { buffers->destroy(state.api); });
  std::optional<gl::StateGuard> guard;
  ProductSteps steps(prepare(state, "gemm", product, options, {.by_shaders = true}, work, guard));
  if (report) {
    const std::shared_ptr<const Prepared>& prepared = steps.call().prepared;
    report->kernel = to_string(prepared->plan.kernel);
    report->precision = prepared->plan.precision;
  }
  enqueue(state, steps, nullptr);
}

/// Enqueues all steps. Returns what a library left.
std::optional<LeftByLibrary> run_all(Engine::State& state, Steps& steps, Report* report) {
  Enqueuer enqueuer(state, steps);
  steps.upload(state);
  const auto count = [&] {
    if (!report) return;
    ++report->slices;
    ++report->dispatches;
  };
  const double longest_dispatch = seconds(state.options.max_dispatch);
  if (steps.is_by_library() || steps.longest(state) <= longest_dispatch) {
    while (const std::optional<Runnable> at = steps.next()) {
      enqueuer.run(*at);
      count();
    }
    return enqueuer.left();
  }
  for (;;) {
    const Enqueuer::Timed timed = enqueuer.run_timed(longest_dispatch);
    if (!timed.step) return {};
    count();
    state.clock.collect(state.api, timed.is_trial);
    if (timed.is_trial) gl::check_reset(state.api);
  }
}

}  // namespace

void enqueue(Engine::State& state, Steps& steps, Report* report) {
  if (const std::optional<LeftByLibrary> left = run_all(state, steps, report))
    run_by_shader(state, left->rest, left->options, report);
}

void run_steps(Engine& engine, Steps& steps, Report* report) {
  Engine::State& state = *EngineAccess::state(engine);
  if (!report) return enqueue(state, steps, nullptr);
  *report = {.kernel = steps.kernel(), .precision = steps.precision()};
  Stopwatch watch(engine);
  watch.start();
  enqueue(state, steps, report);
  watch.stop();
  report->kernel_time = watch.elapsed();
}

}  // namespace glgemm
