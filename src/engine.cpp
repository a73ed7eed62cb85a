// Doing it: from a product to a plan, and from the plan's steps to OpenGL.
#include <glgemm/engine.hpp>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "engine_state.hpp"
#include "kernels.hpp"
#include "validate.hpp"

namespace glgemm {
namespace {

/// A product that has passed every check: what remains is to enqueue it.
struct Call {
  const Gemm* product;
  Plan plan;
};

/// Binds a window of an operand of an item and returns the index, in elements of the binding, at which it begins.
int bind(const Engine::State& state, GLuint binding, unsigned buffer, std::int64_t begin, std::int64_t size_bytes, Type type) {
  if (size_bytes == 0) return 0;  // never read
  const std::int64_t bytes = element_bytes(type);
  const std::int64_t rest = begin % std::max<std::int64_t>(state.limits.storage_offset_alignment, 16);
  const std::int64_t whole_words = (size_bytes + rest + 3) / 4 * 4;  // shaders read 16-bit and 8-bit elements by words
  state.api.BindBufferRange(GL_SHADER_STORAGE_BUFFER, binding, buffer, static_cast<GLintptr>(begin - rest),
                            static_cast<GLsizeiptr>(whole_words));
  return static_cast<int>(rest / bytes);
}

/// One operand's uniform: where its window begins and how far apart its elements are.
std::array<int, 4> place(const Engine::State& state, const Call& call, const Step& step, Role role, GLuint binding,
                         Window window) {
  const Gemm& product = *call.product;
  const Problem& problem = call.plan.problem;
  const BufferView& view = view_of(product, role);
  std::int64_t begin = view.offset_bytes + window.offset_bytes;
  if (problem.items && !call.plan.items_in_buffer)
    begin += item_offset(product.batch, role, step.first_item) * element_bytes(view.type);
  const Strides stride = strides(problem, role);
  const std::int64_t item = step.items > 1 || step.z0 > 0 ? stride.item : 0;
  return {bind(state, binding, view.buffer, begin, window.size_bytes, view.type), static_cast<int>(stride.row),
          static_cast<int>(stride.column), problem.items ? 0 : static_cast<int>(item)};
}

/// The bits of gemm.glsl's `flags`.
enum Flag { conjugate_a = 1, conjugate_b = 2, read_c = 4, first_k = 8, last_k = 16, add_d = 32, add_bias = 64 };

void run(Engine::State& state, gl::Program& program, const Call& call, const Step& step, GLuint workspace,
         std::int64_t workspace_offset) {
  const gl::Api& api = state.api;
  const Gemm& product = *call.product;
  const Problem& problem = call.plan.problem;
  const Type acc = accumulator(problem.type);
  const Batch& batch = product.batch;
  const bool own_scalars = problem.items && !call.plan.items_in_buffer;
  const auto item = static_cast<std::size_t>(step.first_item);
  const Scalar& alpha = own_scalars && !batch.alphas.empty() ? batch.alphas[item] : product.alpha;
  const Scalar& beta = own_scalars && !batch.betas.empty() ? batch.betas[item] : product.beta;
  const bool beta_counts = call.plan.items_in_buffer || beta.value != 0.0;

  program.set(api, 0, static_cast<int>(step.x0));
  program.set(api, 1, static_cast<int>(step.y0));
  program.set(api, 2, static_cast<int>(step.z0));
  program.set(
      api, 3,
      std::array{static_cast<int>(step.m), static_cast<int>(step.n), static_cast<int>(step.k), static_cast<int>(step.items)});
  program.set(api, 4, place(state, call, step, Role::a, gl::binding_a, step.a));
  program.set(api, 5, place(state, call, step, Role::b, gl::binding_b, step.b));
  program.set(api, 6, place(state, call, step, Role::c, gl::binding_c, step.c));
  if (!call.plan.items_in_buffer) {
    program.set(api, 7, acc, alpha.value);
    program.set(api, 8, acc, beta.value);
  }
  program.set(api, 9,
              (problem.a.op == Op::conjugate_transpose ? conjugate_a : 0) |
                  (problem.b.op == Op::conjugate_transpose ? conjugate_b : 0) | (beta_counts ? read_c : 0) |
                  (step.first_k ? first_k : 0) | (step.last_k ? last_k : 0) | (problem.residual ? add_d : 0) |
                  (problem.bias != Bias::none ? add_bias : 0));
  if (call.plan.program().epilogue) {
    const Epilogue& epilogue = product.epilogue;
    if (problem.residual) program.set(api, 10, place(state, call, step, Role::d, gl::binding_d, step.d));
    if (problem.bias != Bias::none) {
      const int first = bind(state, gl::binding_bias, epilogue.bias_buffer, epilogue.bias_offset_bytes + step.bias.offset_bytes,
                             step.bias.size_bytes, problem.c_type);
      program.set(api, 11, problem.bias == Bias::for_each_row ? std::array{first, 1, 0} : std::array{first, 0, 1});
    }
    if (!is_complex(problem.type) && !is_integer(problem.type)) {
      program.set(api, 12, static_cast<int>(problem.activation));
      program.set(api, 13, acc, epilogue.low);
      program.set(api, 14, acc, epilogue.high);
    }
  }
  if (call.plan.workspace_bytes > 0)
    bind(state, gl::binding_partial, workspace, workspace_offset, step.m * step.n * call.plan.piece_batch * element_bytes(acc),
         acc);
  if (step.barrier_before) api.MemoryBarrier(GL_SHADER_STORAGE_BARRIER_BIT);
  api.DispatchCompute(static_cast<GLuint>(step.groups[0]), static_cast<GLuint>(step.groups[1]),
                      static_cast<GLuint>(step.groups[2]));
}

/// Binds C's first element where the program declares a block that this product never reads: what is left bound from elsewhere
/// may be gone, and zink then drops dispatches.
void bind_unused(const Engine::State& state, const Call& call) {
  const Problem& problem = call.plan.problem;
  if (problem.m == 0 || problem.n == 0 || problem.batch == 0) return;  // no dispatch, and perhaps no such element
  const ProgramKey key = call.plan.program();
  const auto bind_if = [&](bool unused, GLuint binding) {
    if (unused)
      bind(state, binding, call.product->c.buffer, call.product->c.offset_bytes, element_bytes(problem.c_type), problem.c_type);
  };
  bind_if(problem.k == 0, gl::binding_a);
  bind_if(problem.k == 0, gl::binding_b);
  bind_if(key.epilogue && !problem.residual, gl::binding_d);
  bind_if(key.epilogue && problem.bias == Bias::none, gl::binding_bias);
  bind_if(key.c_type != accumulator(key.type) && call.plan.workspace_bytes == 0, gl::binding_partial);
}

/// Bytes of gemm.glsl's `struct Item` in std430: four ints, alpha and beta in the accumulator's type; aligned for each type.
std::int64_t item_bytes(Type acc) {
  return 16 + 2 * element_bytes(acc);
}

/// The items of a batch as those.
std::vector<std::byte> pack_items(const Gemm& product, const Problem& problem) {
  const Type acc = accumulator(problem.type);
  const auto scalar_bytes = static_cast<std::size_t>(element_bytes(acc));
  const std::size_t alpha_at = 16, beta_at = alpha_at + scalar_bytes;
  const auto step = static_cast<std::size_t>(item_bytes(acc));
  const Batch& batch = product.batch;
  std::vector<std::byte> bytes(step * static_cast<std::size_t>(batch.count));
  const auto put_scalar = [&](std::byte* to, std::complex<double> x) {
    const auto put = [&](auto... values) {
      std::size_t at = 0;
      ((std::memcpy(to + at, &values, sizeof values), at += sizeof values), ...);
    };
    switch (acc) {
      case Type::f64:
        put(x.real());
        break;
      case Type::c64:
        put(static_cast<float>(x.real()), static_cast<float>(x.imag()));
        break;
      case Type::c128:
        put(x.real(), x.imag());
        break;
      case Type::i32:
        put(static_cast<std::int32_t>(x.real()));
        break;
      case Type::u32:
        put(static_cast<std::uint32_t>(x.real()));
        break;
      default:
        put(static_cast<float>(x.real()));
        break;
    }
  };
  for (std::int64_t i = 0; i < batch.count; ++i) {
    std::byte* const item = bytes.data() + step * static_cast<std::size_t>(i);
    for (const Role role : {Role::a, Role::b, Role::c, Role::d}) {
      const auto offset = static_cast<std::int32_t>(item_offset(batch, role, i));  // inside one window, so an int
      std::memcpy(item + 4 * static_cast<std::size_t>(role), &offset, 4);
    }
    const auto index = static_cast<std::size_t>(i);
    put_scalar(item + alpha_at, batch.alphas.empty() ? product.alpha.value : batch.alphas[index].value);
    put_scalar(item + beta_at, batch.betas.empty() ? product.beta.value : batch.betas[index].value);
  }
  return bytes;
}

/// A problem in which no item has a product: nothing of A and B is read.
bool multiplies_nothing(const Gemm& product) {
  if (product.batch.alphas.empty()) return product.alpha.value == 0.0;
  return std::all_of(product.batch.alphas.begin(), product.batch.alphas.end(),
                     [](const Scalar& alpha) { return alpha.value == 0.0; });
}

Plan plan_of(const Gemm& product, const Limits& limits, const PlanOptions& options) {
  Problem problem = Engine::problem(product);
  if (multiplies_nothing(product)) problem.k = 0;  // as BLAS: A and B are not read
  return make_plan(problem, limits, options);
}

/// The plan, of another kernel if the program of the one that the planner chose would have to be waited for and the caller would
/// rather not.
Plan ready_plan(Engine::State& state, Plan plan, const PlanOptions& options) {
  if (!state.options.use_ready_programs || options.kernel || state.is_ready(plan.program())) return plan;
  state.begin_program(plan.program());
  for (const Kernel& kernel : kernel_table()) {
    if (!why_not(plan.problem, kernel, options.limits.value_or(state.limits)).empty()) continue;
    PlanOptions other = options;
    other.kernel = kernel;
    if (Plan ready = make_plan(plan.problem, state.limits, other); state.is_ready(ready.program())) return ready;
  }
  return plan;
}

/// The workspace that the plan needs: the caller's, or the engine's own.
struct Place {
  GLuint buffer = 0;
  std::int64_t offset = 0;
};

Place workspace_for(const Engine::State& state, const Call& call) {
  if (call.plan.workspace_bytes == 0) return {};
  if (call.product->workspace) return {call.product->workspace->buffer, call.product->workspace->offset_bytes};
  return {state.workspace, 0};
}

/// Replaces a buffer of the engine's by a larger one if need be.
void grow(const gl::Api& api, GLuint& buffer, std::int64_t& had, std::int64_t needed, std::string_view label) {
  if (had >= needed) return;
  const GLuint grown = gl::create_buffer(api, needed, nullptr);
  api.DeleteBuffers(1, &buffer);
  buffer = grown;
  had = needed;
  gl::label(api, GL_BUFFER, grown, label);
}

/// Whether the items of a batch have offsets or scalars of their own.
bool gives_items(const Batch& batch) {
  return !batch.offsets_a.empty() || !batch.offsets_b.empty() || !batch.offsets_c.empty() || !batch.offsets_d.empty() ||
         !batch.alphas.empty() || !batch.betas.empty();
}

/// The storage-buffer bindings that a product may use.
gl::Bindings bindings_of(const Gemm& product) {
  const Epilogue& e = product.epilogue;
  const bool epilogue = e.residual || e.bias != Bias::none || e.activation != Activation::none;
  return bit(gl::binding_a) | bit(gl::binding_b) | bit(gl::binding_c) |
         (epilogue ? bit(gl::binding_d) | bit(gl::binding_bias) : 0) | (gives_items(product.batch) ? bit(gl::binding_items) : 0) |
         (product.c.type != accumulator(product.a.type) ? bit(gl::binding_partial) : 0);
}

/// Everything that may fail, before anything is enqueued. Leaves bindings changed.
Call check(Engine::State& state, const Gemm& product, const PlanOptions& options) {
  Call call{&product, ready_plan(state, plan_of(product, state.limits, options), options)};
  validate_product(product, call.plan.problem, call.plan.workspace_bytes,
                   [&](unsigned buffer) { return gl::buffer_bytes(state.api, buffer); });
  state.program(call.plan.program());
  if (!product.workspace) grow(state.api, state.workspace, state.workspace_bytes, call.plan.workspace_bytes, "glgemm workspace");
  if (call.plan.items_in_buffer)
    grow(state.api, state.items, state.items_bytes, product.batch.count * item_bytes(accumulator(call.plan.problem.type)),
         "glgemm items");
  return call;
}

/// Enqueues a checked product, slice after slice.
void enqueue(Engine::State& state, const Call& call, Report* report) {
  const gl::Api& api = state.api;
  const Plan& plan = call.plan;
  gl::Program& program = state.program(plan.program());
  const Place workspace = workspace_for(state, call);
  const gl::DebugGroup group(api, "glgemm", state.most_debug_groups);
  if (plan.items_in_buffer && plan.problem.batch > 0) {
    const std::vector<std::byte> items = pack_items(*call.product, plan.problem);
    api.InvalidateBufferData(state.items);  // an earlier product may still read what was there
    api.BindBufferBase(GL_SHADER_STORAGE_BUFFER, gl::binding_items, state.items);
    api.BufferSubData(GL_SHADER_STORAGE_BUFFER, 0, static_cast<GLsizeiptr>(items.size()), items.data());
  }
  api.UseProgram(program.id());
  bind_unused(state, call);
  Cursor cursor;
  for (Slice slice = next_slice(plan, cursor); !slice.empty(); slice = next_slice(plan, cursor)) {
    for (const Step& step : slice.steps()) run(state, program, call, step, workspace.buffer, workspace.offset);
    if (!report) continue;
    ++report->slices;
    report->dispatches += slice.count;
  }
}

}  // namespace

Engine::Engine(GetProcAddress get_proc_address, EngineOptions options) : state_(std::make_shared<State>()) {
  if (!get_proc_address) throw std::invalid_argument("Engine: get_proc_address is null");
  State& state = *state_;
  state.api = gl::load(get_proc_address);
  state.device = gl::device_info(state.api);
  state.limits = gl::query_limits(state.api, state.device);
  state.options = std::move(options);
  state.api.GetIntegerv(GL_MAX_DEBUG_GROUP_STACK_DEPTH, &state.most_debug_groups);
  state.mark_context();
}

Engine::~Engine() {
  if (state_ && !state_->released) {
    state_->log("an engine was destroyed without release(): its " + std::to_string(state_->programs.size()) +
                " programs stay with the context");
    state_->forget();
  }
}
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}

const Limits& Engine::limits() const noexcept {
  return state_->limits;
}
const DeviceInfo& Engine::device() const noexcept {
  return state_->device;
}

Problem Engine::problem(const Gemm& product) {
  const auto rows = [](const BufferView& view, Op op) { return op == Op::none ? view.rows : view.columns; };
  const auto columns = [](const BufferView& view, Op op) { return op == Op::none ? view.columns : view.rows; };
  const Batch& batch = product.batch;
  Problem problem;
  problem.m = rows(product.a, product.op_a);
  problem.n = columns(product.b, product.op_b);
  problem.k = columns(product.a, product.op_a);
  problem.type = product.a.type;
  problem.c_type = product.c.type;
  problem.batch = batch.count;
  problem.items = gives_items(batch);
  const std::int64_t inner = rows(product.b, product.op_b);
  if (problem.k != inner)
    throw std::invalid_argument("gemm: op(A) is " + size_text(problem.m, problem.k) + " and op(B) is " +
                                size_text(inner, problem.n) + ": the inner sizes " + std::to_string(problem.k) + " and " +
                                std::to_string(inner) + " differ");
  if (product.c.rows != problem.m || product.c.columns != problem.n)
    throw std::invalid_argument("gemm: op(A) op(B) is " + size_text(problem.m, problem.n) + " and C is " +
                                size_text(product.c.rows, product.c.columns));
  if (product.b.type != problem.type)
    throw std::invalid_argument("gemm: A is " + std::string(to_string(problem.type)) + " and B is " +
                                std::string(to_string(product.b.type)));
  const auto check_count = [&](auto given, const char* what) {
    if (!given.empty() && static_cast<std::int64_t>(given.size()) != batch.count)
      throw std::invalid_argument("gemm: " + std::to_string(given.size()) + " " + what + " for a batch of " +
                                  std::to_string(batch.count));
  };
  check_count(batch.offsets_a, "offsets of A");
  check_count(batch.offsets_b, "offsets of B");
  check_count(batch.offsets_c, "offsets of C");
  check_count(batch.offsets_d, "offsets of D");
  check_count(batch.alphas, "alphas");
  check_count(batch.betas, "betas");
  const auto operand = [&](const BufferView& view, Op op, Role role) {
    Operand result{view.layout, view.ld, op, 0};
    result.batch_stride = problem.items ? largest_offset(batch, role) : stride_of(batch, role);
    return result;
  };
  problem.a = operand(product.a, product.op_a, Role::a);
  problem.b = operand(product.b, product.op_b, Role::b);
  problem.c = operand(product.c, Op::none, Role::c);
  const Epilogue& epilogue = product.epilogue;
  problem.bias = epilogue.bias;
  problem.activation = epilogue.activation;
  if (epilogue.residual) {
    const BufferView& d = *epilogue.residual;
    if (d.rows != problem.m || d.columns != problem.n)
      throw std::invalid_argument("gemm: C is " + size_text(problem.m, problem.n) + " and D is " + size_text(d.rows, d.columns));
    if (d.type != problem.c_type)
      throw std::invalid_argument("gemm: C is " + std::string(to_string(problem.c_type)) + " and D is " +
                                  std::string(to_string(d.type)));
    problem.residual = true;
    problem.d = operand(d, Op::none, Role::d);
  }
  validate(problem);
  return problem;
}

std::int64_t Engine::workspace_bytes(const Gemm& product, const PlanOptions& options) const {
  return plan_of(product, state_->limits, options).workspace_bytes;
}

void Engine::gemm(const Gemm& product, const PlanOptions& options, Report* report) {
  state_->check_usable("gemm");
  std::optional<gl::StateGuard> guard;
  state_->enter("gemm", guard, bindings_of(product));
  const Call call = check(*state_, product, options);
  if (!report) return enqueue(*state_, call, nullptr);
  *report = {call.plan, 0, 0, {}, {}};
  Stopwatch watch(*this);
  watch.start();
  enqueue(*state_, call, report);
  watch.stop();
  report->kernel_time = watch.elapsed();
}

void Engine::gemm(std::span<const Gemm> products, const PlanOptions& options) {
  state_->check_usable("gemm");
  std::optional<gl::StateGuard> guard;
  gl::Bindings bindings = 0;
  for (const Gemm& product : products) bindings |= bindings_of(product);
  state_->enter("gemm", guard, bindings);
  std::vector<Call> calls;
  calls.reserve(products.size());
  for (std::size_t i = 0; i < products.size(); ++i) {
    try {
      calls.push_back(check(*state_, products[i], options));
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument("product " + std::to_string(i) + " of " + std::to_string(products.size()) + ": " +
                                  error.what());
    }
  }
  for (const Call& call : calls) enqueue(*state_, call, nullptr);
}

void Engine::check_multiply(std::int64_t m, std::int64_t k, std::int64_t inner, std::int64_t n, Type type,
                            const PlanOptions& options) const {
  if (k != inner)
    throw std::invalid_argument("multiply: A is " + size_text(m, k) + " and B is " + size_text(inner, n) + ": the inner sizes " +
                                std::to_string(k) + " and " + std::to_string(inner) + " differ");
  Problem problem;
  problem.m = m;
  problem.n = n;
  problem.k = k;
  problem.type = type;
  problem.c_type = accumulator(type);
  make_plan(problem, state_->limits, options);  // refuses before anything is uploaded
}

void Engine::finish_multiply(Report* report, std::chrono::steady_clock::time_point begin) const {
  gl::check_reset(state_->api);
  if (report) report->total_time = std::chrono::steady_clock::now() - begin;
}

void Engine::prepare(std::span<const Problem> problems, const PlanOptions& options) {
  state_->check_usable("prepare");
  std::optional<gl::StateGuard> guard;
  state_->enter("prepare", guard);
  const gl::Api& api = state_->api;
  std::vector<ProgramKey> keys;
  for (const Problem& problem : problems) keys.push_back(make_plan(problem, state_->limits, options).program());
  for (const ProgramKey& key : keys) state_->begin_program(key);
  if (state_->scratch == 0) state_->scratch = gl::create_buffer(api, 256, nullptr);
  for (GLuint i = 0; i < gl::storage_bindings; ++i) api.BindBufferBase(GL_SHADER_STORAGE_BUFFER, i, state_->scratch);
  for (const ProgramKey& key : keys) {
    gl::Program& program = state_->program(key);
    // On a C without elements: some drivers compile at the first dispatch.
    program.set(api, 3, std::array{0, 0, 0, 0});
    api.UseProgram(program.id());
    api.DispatchCompute(1, 1, 1);
  }
}

void Engine::release() {
  if (state_->released) return;
  state_->check_usable("release");
  const gl::Api& api = state_->api;
  for (auto& [key, entry] : state_->programs) entry.program.destroy(api);
  for (const GLuint buffer : {state_->items, state_->workspace, state_->scratch}) api.DeleteBuffers(1, &buffer);
  state_->staging.destroy(api);
  api.DeleteQueries(1, &state_->marker);
  state_->forget();
}

void Engine::abandon() noexcept {
  state_->forget();
  state_->abandoned = true;
}

}  // namespace glgemm
