// The public functions for convolutions.
#include <algorithm>

#include <glgemm/inspect.hpp>
#include <glgemm/stopwatch.hpp>

#include "engine/enqueue.hpp"
#include "engine/execute.hpp"
#include "engine/execute_convolution.hpp"
#include "engine/library.hpp"
#include "engine/prepare.hpp"
#include "engine/ready.hpp"
#include "gl/program_statistics.hpp"

namespace glgemm {

void Engine::convolve(const Convolution& convolution, const PlanOptions& options, Report* report) {
  state_->check_usable("convolve");
  std::optional<gl::StateGuard> guard;
  ConvolutionSteps steps(glgemm::prepare(*state_, "convolve", convolution, options, state_->work, guard));
  if (!report) return enqueue(*state_, steps, nullptr);
  *report = {};
  const std::shared_ptr<const PreparedConvolution> prepared = steps.call().prepared;
  if (const ConvolutionPlan& plan = prepared->plan; plan.depthwise) {
    report->kernel = to_string(plan.program->kernel);
  } else if (!plan.products().empty()) {
    report->kernel = to_string(plan.products().front().kernel);
    report->plan = {prepared, &plan.products().front()};
  }
  Stopwatch watch(*this);
  watch.start();
  enqueue(*state_, steps, report);
  watch.stop();
  report->kernel_time = watch.elapsed();
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

std::vector<ProgramReport> Engine::compile(const ConvolutionPlan& plan) {
  state_->check_usable("compile");
  std::vector<ProgramReport> reports;
  const auto add = [&](ProgramReport report) {
    if (std::none_of(reports.begin(), reports.end(), [&](const auto& known) { return known.program == report.program; }))
      reports.push_back(std::move(report));
  };
  for (const Plan& product : plan.products())
    for (ProgramReport& report : compile(product)) add(std::move(report));
  if (!plan.program) return reports;
  std::optional<gl::StateGuard> guard;
  state_->save_bindings("compile", guard);
  std::vector<std::string> messages = state_->messages_of(*plan.program);
  add({*plan.program, plan.depthwise ? Stage::depthwise : Stage::copy, parse_statistics(messages), std::move(messages)});
  return reports;
}

ConvolutionProblem Engine::problem(const Convolution& convolution) {
  return problem_of(convolution);
}

ConvolutionPlan Engine::plan(const ConvolutionProblem& problem, const PlanOptions& options) const {
  return make_plan(problem, inputs_of(*state_, options, uncut(*state_)), options);
}

}  // namespace glgemm
