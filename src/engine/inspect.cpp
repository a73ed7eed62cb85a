// What an engine decides, for who inspects it.
#include <glgemm/inspect.hpp>

#include <algorithm>
#include <utility>

#include <glgemm/engine.hpp>

#include "engine/library.hpp"
#include "engine/prepare.hpp"
#include "gl/program_statistics.hpp"

namespace glgemm {
namespace {

/// Compiles programs and collects what the driver tells of them.
class Compiler {
 public:
  explicit Compiler(Engine& engine) : state_(*EngineAccess::state(engine)) {
    state_.check_usable("compile");
    state_.save_bindings("compile", guard_);
  }
  void add(const ProgramKey& program, Stage stage) {
    std::vector<std::string> messages = state_.messages_of(program);
    reports_.push_back({program, stage, parse_statistics(messages), std::move(messages)});
  }
  /// Unless it is there.
  void add_new(const ProgramKey& program, Stage stage) {
    if (std::ranges::find(reports_, program, &ProgramReport::program) == reports_.end()) add(program, stage);
  }
  void add_new(const Plan& plan) {
    for (const Stage stage : plan.stages()) add_new(plan.program(stage), stage);
  }
  std::vector<ProgramReport> take() { return std::move(reports_); }

 private:
  Engine::State& state_;
  std::optional<gl::StateGuard> guard_;
  std::vector<ProgramReport> reports_;
};

}  // namespace

const Limits& limits_of(const Engine& engine) noexcept {
  return EngineAccess::state(engine)->limits;
}

Plan make_plan(const Engine& engine, const Problem& problem, const PlanOptions& options, Explanation* why) {
  return make_plan(problem, inputs_of(*EngineAccess::state(engine), options), options, why);
}

ConvolutionPlan make_plan(const Engine& engine, const ConvolutionProblem& problem, const PlanOptions& options) {
  const Engine::State& state = *EngineAccess::state(engine);
  return make_plan(problem, inputs_of(state, options, by_shaders(state)), options);
}

MlpPlan make_plan(const Engine& engine, const MlpProblem& problem, const PlanOptions& options) {
  const Engine::State& state = *EngineAccess::state(engine);
  return make_plan(problem, inputs_of(state, options, by_shaders(state)), options);
}

void prepare(Engine& engine, std::span<const Problem> problems, const PlanOptions& options) {
  prepare_products(*EngineAccess::state(engine), problems, {}, options);
}

std::vector<StruckOff> struck_off(const Engine& engine) {
  return EngineAccess::state(engine)->struck_off;
}

std::vector<ProgramReport> compile(Engine& engine, const Plan& plan) {
  Compiler compiler(engine);
  for (const Stage stage : plan.stages()) compiler.add(plan.program(stage), stage);
  return compiler.take();
}

std::vector<ProgramReport> compile(Engine& engine, const ConvolutionPlan& plan) {
  Compiler compiler(engine);
  for (const Plan& product : plan.products()) compiler.add_new(product);
  if (plan.program) compiler.add(*plan.program, plan.depthwise ? Stage::depthwise : Stage::copy);
  return compiler.take();
}

std::vector<ProgramReport> compile(Engine& engine, const MlpPlan& plan) {
  Compiler compiler(engine);
  for (const MlpPlan::Group& group : plan.groups) {
    for (const Plan& product : group.products) compiler.add_new(product);
    if (group.program) compiler.add_new(*group.program, Stage::layers);
  }
  return compiler.take();
}

}  // namespace glgemm
