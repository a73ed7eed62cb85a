// An engine's public functions.
#include <glgemm/engine.hpp>

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <glgemm/device_matrix.hpp>
#include <glgemm/inspect.hpp>
#include <glgemm/tuning.hpp>

#include "base/device_class.hpp"
#include "base/system.hpp"
#include "engine/enqueue.hpp"
#include "engine/execute_product.hpp"
#include "engine/library.hpp"
#include "engine/offsets.hpp"
#include "engine/prepare.hpp"
#include "engine/ready.hpp"
#include "engine/validate.hpp"
#include "gl/arithmetic.hpp"
#include "gl/context.hpp"
#include "kernels/kernels.hpp"
#include "plan/problem.hpp"

namespace glgemm {
namespace {

/// Deletes the engine's own OpenGL objects; its context is current.
void delete_objects(Engine::State& state) noexcept {
  const gl::Api& api = state.api;
  for (auto& [key, entry] : state.programs) entry.program.destroy(api);
  state.work.destroy(api);
  state.clock.destroy(api);
  for (gl::BufferImage& image : state.operand_images) gl::destroy_image(api, image);
  for (unsigned& buffer : state.scratch) gl::delete_buffer(api, buffer);
  for (const auto& offsets : state.offsets) gl::delete_buffer(api, offsets->buffer);
  state.release_library();
  state.staging.destroy(api);
  state.mark.destroy(api);
  state.forget();
}

}  // namespace

Engine::Engine(GetProcAddress get_proc_address, EngineOptions options) : state_(std::make_shared<State>()) {
  if (!get_proc_address) throw std::invalid_argument("Engine: get_proc_address is null");
  check_not_forked("Engine");
  State& state = *state_;
  state.api = gl::load(get_proc_address);
  state.device = gl::device_info(state.api);
  state.limits = gl::query_limits(state.api, state.device);
  gl::check_reset(state.api);  // a lost context has no limits
  if (const std::string why = gl::why_not_executed(state.api); !why.empty()) throw Unsupported("Engine: " + why);
  gl::probe_arithmetic(state.api, state.device, state.limits);
  state.options = std::move(options);
  if (const auto as = variable("GLGEMM_PLAN_AS"); as && !as->empty())
    state.limits = limits_as(parse_device_class(*as), state.limits);
  open_library(state);
  if (state.options.experimental->adjust_limits) state.options.experimental->adjust_limits(state.limits);
  if (state.limits.storage_blocks < 4)
    throw Unsupported(fmt::format("Engine: programs may have {} storage buffers; 4 are needed", state.limits.storage_blocks));
  validate(state.limits);
  state.device.f64 = state.limits.f64;
  state.device.storage_block_bytes = state.limits.storage_block_bytes;
  state.device.vendor_library = state.limits.vendor;
  if (state.options.max_dispatch <= std::chrono::nanoseconds(0))
    throw std::invalid_argument(fmt::format("Engine: max_dispatch is {} ns", state.options.max_dispatch.count()));
  if (state.device.software && state.device.renderer.starts_with("zink"))
    if (const char* inlined = std::getenv("ZINK_INLINE_UNIFORMS"); !inlined || std::string_view(inlined) != "0")
      state.log("zink on a CPU gives wrong products unless ZINK_INLINE_UNIFORMS is 0 before the context is made");
  std::vector<std::string> notes;
  state.tuning = tuning_for(state.device, state.options.tuning, notes);
  for (const std::string& note : notes) state.log(fmt::format("tuning: {}", note));
  state.mark.place(state.api);
  gl::check_reset(state.api);  // a context that was lost since then has no mark
  watch_forks();
  state.listens = state.options.log && !state.options.use_ready_programs;
}

Engine::~Engine() {
  if (!state_ || state_->released || is_forked()) return;
  if (gl::has_current(state_->api) && state_->is_current()) {
    delete_objects(*state_);
    return;
  }
  try {
    state_->log(fmt::format("an engine was destroyed while its context was not current: its {} programs stay with the context",
                            state_->programs.size()));
  } catch (const std::bad_alloc&) {  // a line for developers is not worth the program's end
  }
  state_->forget();
}
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}

const DeviceInfo& Engine::device() const noexcept {
  return state_->device;
}

Problem problem_of(const Gemm& product) {
  const auto rows = [](const BufferView& view, Op op) { return op == Op::none ? view.rows : view.columns; };
  const auto columns = [](const BufferView& view, Op op) { return op == Op::none ? view.columns : view.rows; };
  const Batch& batch = product.batch;
  Problem problem;
  problem.m = rows(product.a, product.op_a);
  problem.n = columns(product.b, product.op_b);
  problem.k = columns(product.a, product.op_a);
  problem.batch = batch.count;
  problem.items = gives_items(batch);
  const std::int64_t inner = rows(product.b, product.op_b);
  if (problem.k != inner)
    refuse_product("op(A) is {} and op(B) is {}: the inner sizes {} and {} differ", size_text(problem.m, problem.k),
                   size_text(inner, problem.n), problem.k, inner);
  if (product.c.rows != problem.m || product.c.columns != problem.n)
    refuse_product("op(A) op(B) is {} and C is {}", size_text(problem.m, problem.n),
                   size_text(product.c.rows, product.c.columns));
  const auto check_count = [&](auto given, const char* what) {
    if (!given.empty() && static_cast<std::int64_t>(given.size()) != batch.count)
      refuse_product("{} {} for a batch of {}", given.size(), what, batch.count);
  };
  check_count(batch.offsets_a, "offsets of A");
  check_count(batch.offsets_b, "offsets of B");
  check_count(batch.offsets_c, "offsets of C");
  check_count(batch.offsets_d, "offsets of D");
  check_count(batch.alphas, "alphas");
  check_count(batch.betas, "betas");
  const auto operand = [&](const BufferView& view, Op op, Role role) {
    check_stride_is_said(batch, role);
    Operand result{{view.type, view.quantization}, view.layout, view.ld, op, 0, view.bands.empty() ? 0 : view.band_lines};
    result.batch_stride = problem.items ? largest_offset(batch, role) : stride_of(batch, role);
    result.aligned = role == Role::c || role == Role::d || view.offset_bytes % 16 == 0;
    if (view.indexing) set_addressing(result, view, role);
    return result;
  };
  problem.a = operand(product.a, product.op_a, Role::a);
  problem.b = operand(product.b, product.op_b, Role::b);
  problem.c = operand(product.c, Op::none, Role::c);
  const Epilogue& epilogue = product.epilogue;
  problem.bias = epilogue.bias.kind();
  if (problem.bias == Bias::for_each_output)
    refuse_product("a bias for each output is a convolution's or a layer's; C has rows and columns");
  if (epilogue.bias && epilogue.bias.type() != product.c.type)
    refuse_product("the bias is {}, and what it is added to is {}", to_string(epilogue.bias.type()), to_string(product.c.type));
  problem.activation = epilogue.activation.kind();
  if (epilogue.residual) {
    const BufferView& d = *epilogue.residual;
    if (d.rows != problem.m || d.columns != problem.n)
      refuse_product("C is {} and D is {}", size_text(problem.m, problem.n), size_text(d.rows, d.columns));
    problem.residual = true;
    problem.d = operand(d, Op::none, Role::d);
    if (const ElementFormat format = std::exchange(problem.d.format, {}); format != problem.c.format)
      refuse_product("C is {} and D is {}", to_string(problem.c.format), to_string(format));
    if (problem.d.addressing == Addressing::indexed && !have_same_tables(product.c, d))
      refuse_product("D is indexed by other tables than C");
  }
  validate(problem);
  if (are_zero(product.alpha, product.batch.alphas)) problem.k = 0;  // as in BLAS, A and B are not read
  return problem;
}

std::int64_t Engine::workspace_bytes(const Gemm& product, const PlanOptions& options) const {
  return make_plan(*this, problem_of(product), options).workspace.size_bytes;
}

std::int64_t Engine::device_memory_bytes() const {
  constexpr std::int64_t unknown = std::int64_t{1} << 30;
  if (state_->limits.cpu) {
    const std::int64_t memory = main_memory_bytes();
    return memory > 0 ? memory / 2 : unknown;
  }
  state_->check_usable("device_memory_bytes");
  const std::int64_t free = gl::free_memory_bytes(state_->api);
  return free > 0 ? free / 8 * 7 : unknown;
}

void Engine::gemm(const Gemm& product, const PlanOptions& options, Report* report) {
  state_->check_usable("gemm", state_->scoped);
  std::optional<gl::StateGuard> guard;
  ProductSteps steps(glgemm::prepare(*state_, "gemm", product, options, {}, state_->work, guard));
  run_steps(*this, steps, report);
}

void Engine::gemm(std::span<const Gemm> products, const PlanOptions& options) {
  state_->check_usable("gemm", state_->scoped);
  std::optional<gl::StateGuard> guard;
  std::vector<Call> calls = glgemm::prepare(*state_, "gemm", products, options, state_->work, guard);
  if (state_->library) state_->library->keeps_mapped = true;
  const std::unique_ptr<Engine::State, void (*)(Engine::State*)> at_end(state_.get(), [](Engine::State* state) {
    if (state->library) state->library->keeps_mapped = false;
  });
  for (Call& call : calls) {
    ProductSteps steps(std::move(call));
    enqueue(*state_, steps, nullptr);
  }
  if (!state_->scoped) state_->unmap_buffers();
}

void Engine::check_multiply(std::int64_t m, std::int64_t k, std::int64_t inner, std::int64_t n, Type a, Type b,
                            const PlanOptions& options) const {
  state_->check_usable("multiply");
  if (k != inner)
    throw std::invalid_argument(fmt::format("multiply: A is {} and B is {}: the inner sizes {} and {} differ", size_text(m, k),
                                            size_text(inner, n), k, inner));
  make_plan(*this, of_types({.m = m, .n = n, .k = k}, a, b, sum_type(a, b)), options);  // refuses before anything is uploaded
}

void Engine::multiply_arrays(std::int64_t m, std::int64_t n, std::int64_t k, Type type_a, const void* a, Type type_b,
                             const void* b, void* c, const PlanOptions& options, Report* report) {
  const auto begin = std::chrono::steady_clock::now();
  DeviceMatrix device_a(*this, m, k, type_a), device_b(*this, k, n, type_b);
  device_a.write(a, type_a, 0, 0, m, k);
  device_b.write(b, type_b, 0, 0, k, n);
  const DeviceMatrix device_c(*this, m, n, sum_type(type_a, type_b));
  gemm({.a = device_a.view(), .b = device_b.view(), .c = device_c.view()}, options, report);
  device_c.read(c, 0, 0, m, n);
  if (report) report->total_time = std::chrono::steady_clock::now() - begin;
}

void Engine::prepare(std::span<const Gemm> products, const PlanOptions& options) {
  std::vector<Problem> problems;
  for (std::size_t i = 0; i < products.size(); ++i)
    problems.push_back(work_on(products, i, [](const Gemm& product) { return problem_of(product); }));
  prepare_products(*state_, problems, products, options);
}

void Engine::release() {
  if (state_->released) return;
  state_->check_usable("release");
  delete_objects(*state_);
}

void Engine::abandon() noexcept {
  state_->forget();
  state_->abandoned = true;
}

}  // namespace glgemm
