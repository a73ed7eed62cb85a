// From a product to a call whose programs are ready: the plan, OpenGL's state, the programs and their self-check, what is legal.
#include "engine/prepare.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>


#include "engine/offsets.hpp"
#include "engine/validate.hpp"
#include "kernels/kernels.hpp"

namespace glgemm {
namespace {

/// Whether every alpha is 0, so that A and B are not read.
bool multiplies_nothing(const Gemm& product) {
  if (product.batch.alphas.empty()) return product.alpha.value == 0.0;
  return std::all_of(product.batch.alphas.begin(), product.batch.alphas.end(),
                     [](const Scalar& alpha) { return alpha.value == 0.0; });
}

/// The plan itself, or one of another kernel if the plan's programs are not ready and the caller does not want to wait for them.
Plan ready_plan(Engine::State& state, const Problem& problem, const Plan& plan, const PlanOptions& options) {
  const auto is_ready = [&](const Plan& other) {
    const std::vector<Stage> stages = other.stages();
    return std::all_of(stages.begin(), stages.end(), [&](Stage stage) { return state.is_ready(other.program(stage)); });
  };
  if (!state.options.use_ready_programs || options.kernel || is_ready(plan)) return plan;
  for (const Stage stage : plan.stages()) state.begin_program(plan.program(stage));
  if (is_ready(plan)) return plan;  // from the program cache
  Explanation why;
  make_plan(problem, state.limits, options, &why);
  for (const Explanation::PassedOver& passed : why.passed_over) {
    if (!why_not(problem, passed.kernel, options.experimental->limits.value_or(state.limits)).empty()) continue;
    PlanOptions other = options;
    other.kernel = passed.kernel;
    try {
      if (Plan ready = make_plan(problem, state.limits, other); is_ready(ready)) return ready;
    } catch (const Unsupported&) {  // for example, its workspace is too large
    }
  }
  return plan;
}

/// What a product of the plan may change of the state.
gl::Bindings bindings_of(const Plan& plan) {
  gl::Bindings result = gl::product_bindings;
  if (panels(plan.kernel) == VectorReads::image) result |= gl::image_panels;
  if (plan.vector_reads == VectorReads::image) result |= gl::image_a | gl::image_b;
  for (const Stage stage : plan.stages()) {
    const ProgramKey key = plan.program(stage);
    for (unsigned i = 0; i < gl::storage_bindings; ++i)
      if (kernels::family(key.kernel).declares(key, i)) result |= gl::bit(static_cast<gl::Binding>(kernels::binding_of(key, i)));
  }
  return result;
}

/// Replaces a buffer of the engine's by a larger one if it is too small.
void grow(const gl::Api& api, unsigned& buffer, std::int64_t& had, std::int64_t needed, std::string_view label) {
  if (had >= needed) return;
  const unsigned grown = gl::create_buffer(api, needed);
  gl::delete_buffer(api, buffer);
  buffer = grown;
  had = needed;
  gl::label_buffer(api, grown, label);
}

/// The transposed product, C^T = op(B)^T op(A)^T; see transposed(Problem).
Gemm transposed(const Gemm& product) {
  const auto turn = [](BufferView& view) {
    std::swap(view.rows, view.columns);
    view.layout = view.layout == Layout::row_major ? Layout::column_major : Layout::row_major;
    if (view.indexing) std::swap(view.indexing->rows, view.indexing->columns);
  };
  Gemm result = product;
  std::swap(result.a, result.b);
  std::swap(result.op_a, result.op_b);
  std::swap(result.batch.stride_a, result.batch.stride_b);
  std::swap(result.batch.offsets_a, result.batch.offsets_b);
  for (BufferView* view : {&result.a, &result.b, &result.c}) turn(*view);
  Epilogue& epilogue = result.epilogue;
  if (epilogue.residual) turn(*epilogue.residual);
  const BiasView bias = epilogue.bias;
  if (bias.kind() == Bias::for_each_row) epilogue.bias = BiasView::for_each_column(bias.buffer(), bias.offset_bytes());
  if (bias.kind() == Bias::for_each_column) epilogue.bias = BiasView::for_each_row(bias.buffer(), bias.offset_bytes());
  return result;
}

/// While it lives, a self-check is under way.
class SelfCheckScope {
 public:
  explicit SelfCheckScope(Engine::State& state) : state_(state) { state.checking = true; }
  ~SelfCheckScope() {
    state_.checking = false;
    state_.sizes.clear();  // other buffers may get the names of its buffers
    state_.forget_images();
  }
  SelfCheckScope(const SelfCheckScope&) = delete;
  SelfCheckScope& operator=(const SelfCheckScope&) = delete;

 private:
  Engine::State& state_;
};

/// Whether the programs of the plan pass their self-check or have passed it before. Strikes off the one that does not.
bool passes(Engine::State& state, const Plan& plan) {
  const std::vector<Stage> stages = plan.stages();
  if (!state.options.experimental->self_check || state.checking ||
      std::all_of(stages.begin(), stages.end(), [&](Stage stage) { return state.self_checked(plan.program(stage)); }))
    return true;
  std::optional<Fault> fault;
  {
    const SelfCheckScope checking(state);
    fault = self_check(state, plan);
  }
  if (!fault) {
    for (const Stage stage : stages) state.remember_self_check(plan.program(stage));
    return true;
  }
  state.strike_off({plan.program(fault->stage), std::move(fault->why)});
  return false;
}

/// Compiles the programs of the plan and checks them. Returns false if one is struck off now.
bool compiles_and_passes(Engine::State& state, Prepared& prepared) {
  const Plan& plan = prepared.plan;
  for (const Stage stage : plan.stages()) {
    prepared.programs[static_cast<std::size_t>(stage)] = &state.program(plan.program(stage));
    prepared.rates[static_cast<std::size_t>(stage)] = &state.rate(plan.program(stage));
  }
  return passes(state, plan);
}

}  // namespace

bool gives_items(const Batch& batch) {
  return !batch.offsets_a.empty() || !batch.offsets_b.empty() || !batch.offsets_c.empty() || !batch.offsets_d.empty() ||
         !batch.alphas.empty() || !batch.betas.empty();
}

Problem problem_to_plan(const Gemm& product) {
  Problem problem = Engine::problem(product);
  if (multiplies_nothing(product)) problem.k = 0;  // as in BLAS, A and B are not read
  return problem;
}

PlanOptions with_own(const Engine::State& state, const PlanOptions& options) {
  PlanOptions result = options;
  ExperimentalPlanOptions& own = result.experimental.edit();
  if (own.limits && own.limits->vendor == VendorLibrary::ready) own.limits->vendor = state.limits.vendor;
  if (own.tuning.empty() && !own.untuned) own.tuning = state.tuning;
  for (const StruckOff& each : state.struck_off)
    if (!each.refused || !options.kernel) own.struck_off.push_back(each);  // who names a kernel gets the driver's log
  return result;
}

std::shared_ptr<Prepared> prepared_for(Engine::State& state, const Problem& problem, const PlanOptions& options) {
  for (const auto& known : state.prepared)
    if (known->problem == problem && known->options == options) return known;
  const PlanOptions own = with_own(state, options);
  const Plan best = make_plan(problem, state.limits, own);
  auto made = std::make_shared<Prepared>();
  made->problem = problem;
  made->options = options;
  made->plan = ready_plan(state, problem, best, own);
  made->bindings = bindings_of(made->plan);
  made->work = size(made->plan).work;
  if (made->plan.kernel != best.kernel) return made;  // the best plan replaces it when it is ready
  if (state.prepared.size() >= Engine::State::max_prepared) state.prepared.erase(state.prepared.begin());
  state.prepared.push_back(made);
  return made;
}

bool make_ready(Engine::State& state, Prepared& prepared, bool is_forced) {
  gl::Program*& multiply = prepared.programs[static_cast<std::size_t>(Stage::multiply)];
  if (multiply) return true;
  try {
    if (compiles_and_passes(state, prepared)) return true;
  } catch (const RefusedProgram& refused) {
    multiply = nullptr;
    if (is_forced) throw;
    // The self-check's small product may run other programs that pack and reduce: then this one cannot be checked.
    const std::vector<Stage> stages = prepared.plan.stages();
    const bool has_it =
        std::any_of(stages.begin(), stages.end(), [&](Stage stage) { return prepared.plan.program(stage) == refused.program; });
    state.strike_off({has_it ? refused.program : prepared.plan.program(), refused.reason, true});
  }
  multiply = nullptr;
  return false;
}

Call make_call(const Gemm& product, std::shared_ptr<const Prepared> prepared, WorkBuffers& work) {
  return {.product = prepared->plan.transposed ? transposed(product) : product, .prepared = std::move(prepared), .work = &work};
}

void grow_workspace(Engine::State& state, WorkBuffers& work, std::int64_t needed) {
  if (needed <= work.workspace_bytes) return;
  gl::release_image(state.api, work.panels);
  grow(state.api, work.workspace, work.workspace_bytes, needed, "glgemm workspace");
}

Call legal_call(Engine::State& state, const Gemm& product, std::shared_ptr<const Prepared> prepared, WorkBuffers& work) {
  const Plan& plan = prepared->plan;
  validate_product(product, prepared->problem, plan.workspace.size_bytes,
                   [&](unsigned buffer) { return state.buffer_bytes(buffer); });
  Call call = make_call(product, std::move(prepared), work);
  call.offsets = offsets_on_device(state, call.product, plan.problem);
  if (!product.workspace) grow_workspace(state, work, plan.workspace.size_bytes);
  if (plan.items_in_buffer)
    grow(state.api, work.items, work.items_bytes, product.batch.count * item_bytes(sum_type(plan.problem)), "glgemm items");
  return call;
}

Call prepare(Engine::State& state, const char* what, const Gemm& product, const PlanOptions& options, WorkBuffers& work,
             std::optional<gl::StateGuard>& guard) {
  const Problem problem = problem_to_plan(product);
  for (;;) {  // until all programs compile and pass their self-checks: without those that do not, the plan is another
    std::shared_ptr<Prepared> prepared = prepared_for(state, problem, options);
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
      prepared[i] =
          work_on(products, i, [&](const Gemm& product) { return prepared_for(state, problem_to_plan(product), options); });
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

}  // namespace glgemm
