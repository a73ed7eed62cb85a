// From a product or a convolution to a call whose programs are ready: the plan, OpenGL's state, the programs and their
// self-check, what is legal.
#include "engine/prepare.hpp"

#include <algorithm>
#include <utility>

#include <glgemm/error.hpp>

#include "engine/execute.hpp"
#include "engine/execute_product.hpp"
#include "engine/library.hpp"
#include "engine/offsets.hpp"
#include "engine/ready.hpp"
#include "engine/self_check.hpp"
#include "engine/validate.hpp"
#include "gl/arithmetic.hpp"
#include "plan/choose.hpp"

namespace glgemm {
namespace {

/// The plan that is best, or where its programs are not ready and the caller does not want to wait for them, the best one whose
/// programs are: then `is_best` becomes false.
template <class Problem>
auto plan_for(Engine::State& state, const Problem& problem, PlannerInputs inputs, const PlanOptions& options, bool& is_best) {
  auto best = make_plan(problem, inputs, options);
  if (!state.options.use_ready_programs || options.kernel) return best;
  const std::vector<ProgramKey> programs = programs_of(best);
  const auto is_ready = [&](const ProgramKey& program) { return state.is_ready(program); };
  if (std::all_of(programs.begin(), programs.end(), is_ready)) return best;
  for (const ProgramKey& program : programs) state.begin_program(program);
  if (std::all_of(programs.begin(), programs.end(), is_ready)) return best;  // from the program cache
  inputs.why_not = [&](const ProgramKey& program) { return is_ready(program) ? "" : "it is not compiled"; };
  try {
    auto ready = make_plan(problem, inputs, options);
    is_best = false;
    return ready;
  } catch (const Unsupported&) {  // none is ready
    return best;
  }
}

/// Whether the programs of a plan pass their self-check or have passed it before. Strikes off one that does not.
template <class Plan>
bool passes(Engine::State& state, const Plan& plan, const PlanOptions& options, const std::vector<ProgramKey>& programs) {
  if (!state.options.experimental->self_check ||
      std::all_of(programs.begin(), programs.end(), [&](const ProgramKey& program) { return state.self_checked(program); }))
    return true;
  state.check_current();  // whether or not the call has asked: programs would be struck off
  SelfCheck found = self_check(state, plan, limits_for(options, state.limits));
  if (found.fault) {
    gl::check_dispatches_run(state.api, state.running);
    state.strike_off(std::move(*found.fault));
    return false;
  }
  for (const ProgramKey& program : programs)
    if (std::find(found.right.begin(), found.right.end(), program) != found.right.end())
      state.remember_self_check(program);
    else
      state.note_unchecked(program, found.why_not_done);
  return true;
}

/// Has `work` compile and check programs. Returns false if one of them is struck off now.
/// @throws RefusedProgram  the driver refused a program, and `is_forced`
template <class Plan, class Work>
bool is_ready_after(Engine::State& state, const Plan& plan, bool is_forced, const Work& work) {
  try {
    return work();
  } catch (const RefusedProgram& refused) {
    if (is_forced) throw;
    // The self-check's small product may run other programs that pack and reduce: then this one cannot be checked.
    const std::vector<ProgramKey> programs = programs_of(plan);
    const bool has_it = std::find(programs.begin(), programs.end(), refused.program) != programs.end();
    state.strike_off({has_it ? refused.program : programs.back(), refused.reason, true});
    return false;
  }
}

/// What is kept for a problem that was planned before. Else it is planned, and `finish` fills in the rest.
template <class Prepared, class Problem, class Finish>
std::shared_ptr<Prepared> kept_or_made(Engine::State& state, std::vector<std::shared_ptr<Prepared>>& kept, const Problem& problem,
                                       const PlanOptions& options, const PlanConstraints& constraints, const Finish& finish) {
  for (const auto& known : kept)
    if (known->problem == problem && known->options == options && known->constraints == constraints) return known;
  bool is_best = true;
  auto plan = plan_for(state, problem, inputs_of(state, options, constraints), options, is_best);
  auto made = std::make_shared<Prepared>(Prepared{problem, options, constraints, std::move(plan)});
  made->bindings = bindings_of(made->plan);
  finish(*made);
  if (!is_best) return made;  // the best takes its place when its programs are ready
  if (kept.size() >= Engine::State::max_prepared) kept.erase(kept.begin());
  kept.push_back(made);
  return made;
}

}  // namespace

PlannerInputs inputs_of(const Engine::State& state, const PlanOptions& options, const PlanConstraints& constraints) {
  PlannerInputs result(state.limits, options, constraints);
  if (result.limits.vendor == VendorLibrary::ready) result.limits.vendor = state.limits.vendor;  // a test's make no library
  if (result.tuning.empty() && !options.experimental->untuned) result.tuning = state.tuning;
  for (const StruckOff& each : state.struck_off)
    if (!each.refused || !options.kernel) result.struck_off.push_back(each);  // who names a kernel gets the driver's log
  return result;
}

std::shared_ptr<Prepared> prepared_for(Engine::State& state, const Problem& problem, const PlanOptions& options,
                                       const PlanConstraints& constraints) {
  return kept_or_made(state, state.prepared, problem, options, constraints, [](auto& made) { made.work = size(made.plan).work; });
}

std::shared_ptr<PreparedConvolution> prepared_for(Engine::State& state, const ConvolutionProblem& problem,
                                                  const PlanOptions& options) {
  return kept_or_made(state, state.convolutions, problem, options, by_shaders(state), [&](PreparedConvolution& made) {
    made.work = work_of(made.plan);
    for (const ConvolutionPlan::Shape& shape : made.plan.shapes) {
      PreparedConvolution::Shape& prepared = made.shapes.emplace_back();
      prepared.piece = piece_of(made.plan, shape.images, shape.rows);
      for (std::size_t i = 0; i < shape.products.size(); ++i) {
        const Problem problem_of_product = problem_of(made.plan, prepared.piece, prepared.piece.products[i]);
        auto product = std::make_shared<Prepared>(Prepared{problem_of_product, options, made.constraints, shape.products[i]});
        product->work = size(product->plan).work;
        prepared.products.push_back({std::move(product), nullptr});
      }
    }
  });
}

std::shared_ptr<PreparedMlp> prepared_for(Engine::State& state, const MlpProblem& problem, const PlanOptions& options) {
  return kept_or_made(state, state.mlps, problem, options, by_shaders(state), [&](PreparedMlp& made) {
    made.work = work_of(made.plan);
    for (const MlpPlan::Group& group : made.plan.groups) {
      PreparedMlp::Group& prepared = made.groups.emplace_back();
      for (const Plan& plan : group.products) {
        // As the caller would have given the product.
        const Problem product = plan.transposed ? transposed(plan.problem) : plan.problem;
        auto one = std::make_shared<Prepared>(Prepared{product, options, made.constraints, plan});
        one->work = size(plan).work;
        prepared.products.push_back(std::move(one));
      }
    }
  });
}

bool make_ready(Engine::State& state, Prepared& prepared, bool is_forced) {
  if (prepared.is_ready) return true;
  return prepared.is_ready = is_ready_after(state, prepared.plan, is_forced, [&] {
           compile_programs(state, prepared);
           return passes(state, prepared.plan, prepared.options, programs_of(prepared.plan));
         });
}

bool make_ready(Engine::State& state, PreparedConvolution& prepared) {
  const bool is_forced = prepared.options.kernel.has_value();
  if (prepared.plan.program && !prepared.program) {
    const ProgramKey& program = *prepared.plan.program;
    const bool is_ready = is_ready_after(state, prepared.plan, is_forced, [&] {
      state.program(program);
      return passes(state, prepared.plan, prepared.options, {program});
    });
    // Without a program that copies there are no products either.
    if (!is_ready && !prepared.plan.depthwise)
      throw GlError(fmt::format("convolve: {} {}: {}", to_string(program), state.struck_off.back().fault(),
                                state.struck_off.back().reason));
    if (!is_ready) return false;
    prepared.program = &state.program(program);
    prepared.rate = &state.rate(program);
  }
  for (PreparedConvolution::Shape& shape : prepared.shapes)
    for (std::size_t i = 0; i < shape.products.size(); ++i) {
      PreparedConvolution::Product& product = shape.products[i];
      if (!make_ready(state, *product.prepared, is_forced)) return false;
      if (product.offsets) continue;
      const Call call = make_call(product_without_buffers(shape.piece.products[i]), product.prepared, state.work);
      product.offsets = offsets_on_device(state, call.product, product.prepared->plan.problem);
    }
  return true;
}

bool make_ready(Engine::State& state, PreparedMlp& prepared) {
  for (std::size_t i = 0; i < prepared.groups.size(); ++i) {
    PreparedMlp::Group& group = prepared.groups[i];
    for (const std::shared_ptr<Prepared>& product : group.products)
      if (!make_ready(state, *product, false)) return false;
    if (!prepared.plan.groups[i].program || group.program) continue;
    const ProgramKey& program = *prepared.plan.groups[i].program;
    const bool is_ready = is_ready_after(state, prepared.plan, false, [&] {
      state.program(program);
      return passes(state, program, prepared.options, {program});
    });
    if (!is_ready) return false;
    group.program = &state.program(program);
    group.rate = &state.rate(program);
  }
  return true;
}

Call prepare(Engine::State& state, const char* what, const Gemm& product, const PlanOptions& options,
             const PlanConstraints& constraints, WorkBuffers& work, std::optional<gl::StateGuard>& guard) {
  const Problem problem = problem_of(product);
  for (;;) {  // until all programs compile and pass their self-checks: without those that do not, the plan is another
    std::shared_ptr<Prepared> prepared = prepared_for(state, problem, options, constraints);
    guard.reset();
    state.save_bindings(what, guard, prepared->bindings);
    if (make_ready(state, *prepared, options.kernel.has_value())) return legal_call(state, product, std::move(prepared), work);
  }
}

std::vector<Call> prepare(Engine::State& state, const char* what, std::span<const Gemm> products, const PlanOptions& options,
                          WorkBuffers& work, std::optional<gl::StateGuard>& guard) {
  std::vector<std::shared_ptr<Prepared>> prepared(products.size());
  for (bool ready = false; !ready;) {
    gl::Bindings bindings = 0;
    for (std::size_t i = 0; i < products.size(); ++i) {
      prepared[i] = work_on(products, i, [&](const Gemm& product) { return prepared_for(state, problem_of(product), options); });
      bindings |= prepared[i]->bindings;
    }
    guard.reset();
    state.save_bindings(what, guard, bindings);
    ready = std::all_of(prepared.begin(), prepared.end(),
                        [&](const auto& one) { return make_ready(state, *one, options.kernel.has_value()); });
  }
  std::vector<Call> calls;
  calls.reserve(products.size());
  for (std::size_t i = 0; i < products.size(); ++i)
    calls.push_back(
        work_on(products, i, [&](const Gemm& product) { return legal_call(state, product, std::move(prepared[i]), work); }));
  return calls;
}

MlpCall prepare(Engine::State& state, const char* what, const Mlp& mlp, const PlanOptions& options, WorkBuffers& work,
                std::optional<gl::StateGuard>& guard, CallBuffers buffers) {
  const MlpProblem problem = problem_of(mlp);
  for (;;) {
    const auto prepared = prepared_for(state, problem, options);
    guard.reset();
    state.save_bindings(what, guard, prepared->bindings);
    if (!make_ready(state, *prepared)) continue;
    if (buffers == CallBuffers::checked)
      validate_mlp(mlp, problem, prepared->plan.workspace_bytes, [&](unsigned buffer) { return state.buffer_bytes(buffer); });
    if (!mlp.workspace) grow_workspace(state, work, prepared->plan.workspace_bytes);
    return {mlp, prepared, &work};
  }
}

ConvolutionCall prepare(Engine::State& state, const char* what, const Convolution& convolution, const PlanOptions& options,
                        WorkBuffers& work, std::optional<gl::StateGuard>& guard, CallBuffers buffers) {
  const ConvolutionProblem problem = problem_of(convolution);
  for (;;) {
    const auto prepared = prepared_for(state, problem, options);
    guard.reset();
    state.save_bindings(what, guard, prepared->bindings);
    if (!make_ready(state, *prepared)) continue;
    if (buffers == CallBuffers::checked)
      validate_convolution(convolution, problem, prepared->plan.workspace_bytes,
                           [&](unsigned buffer) { return state.buffer_bytes(buffer); });
    if (!convolution.workspace) grow_workspace(state, work, prepared->plan.workspace_bytes);
    return {convolution, prepared, &work};
  }
}

void prepare_products(Engine::State& state, std::span<const Problem> problems, std::span<const Gemm> products,
                      const PlanOptions& options) {
  state.check_usable("prepare");
  std::optional<gl::StateGuard> guard;
  state.save_bindings("prepare", guard);
  const auto plan = [&](const Problem& problem) { return make_plan(problem, inputs_of(state, options), options); };
  for (const Problem& problem : problems)  // so that the driver may compile them at the same time
    for (const ProgramKey& program : programs_of(plan(problem))) state.begin_program(program);
  for (std::size_t i = 0; i < problems.size(); ++i) {
    std::shared_ptr<Prepared> prepared;
    do prepared = std::make_shared<Prepared>(Prepared{problems[i], options, {}, plan(problems[i])});
    while (!make_ready(state, *prepared, options.kernel.has_value()));
    const Gemm product = products.empty() ? Gemm() : products[i];
    if (!product.workspace) grow_workspace(state, state.work, prepared->plan.workspace.size_bytes);
    ProductSteps steps(make_call(product, std::move(prepared), state.work));
    run_on_nothing(state, steps);
  }
}

}  // namespace glgemm
