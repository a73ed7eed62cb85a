// Runs the pieces of a streamed product on one engine.
#include "stream/streaming.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "base/elements.hpp"
#include "base/quantization.hpp"
#include "engine/validate.hpp"
#include "kernels/kernels.hpp"
#include "plan/piece.hpp"
#include "stream/stream_plan.hpp"

namespace glgemm {
namespace {

/// Adds `factor` times the numbers at `x` to those at `sum`; all are of the accumulator's type. Integers wrap.
void add_scaled(Type accumulator, std::byte* sum, const std::byte* x, std::complex<double> factor, std::int64_t count) {
  with_type(accumulator, [&]<class T>(T) {
    using A = accumulator_t<T>;
    using Sum = typename std::conditional_t<std::is_integral_v<A>, std::make_unsigned<A>, std::type_identity<A>>::type;
    const Sum scale = to_element<Sum>(factor);
    for (std::int64_t i = 0; i < count; ++i, sum += sizeof(Sum), x += sizeof(Sum)) {
      Sum total, term;
      std::memcpy(&total, sum, sizeof(Sum));
      std::memcpy(&term, x, sizeof(Sum));
      total += scale * term;
      std::memcpy(sum, &total, sizeof(Sum));
    }
  });
}

std::size_t index_of(Role role) {
  return static_cast<std::size_t>(role);
}

/// Whether all of an operand's window is on the device when the plan has run. It is not if the plan cuts the window, and packs
/// the panels of one cut after the other into the same memory.
bool stays(const Plan& plan, Role as_run) {
  if (!plan.packs(as_run)) return true;
  const Problem& window = plan.problem;
  return plan.piece_k >= window.k && plan.piece_n >= window.n && (as_run == Role::b || plan.piece_m >= window.m);
}

}  // namespace

// ---- One engine

Streamer::Streamer(Engine& engine, const HostGemm& product, const StreamPlan& plan, const StreamOptions& options,
                   StreamReport& report)
    : state_(*EngineAccess::state(engine)), product_(product), plan_(plan), options_(options), report_(report) {
  state_.check_usable("multiply");
  if (plan.window.precision != Precision::standard && product.epilogue.residual && product.beta.value != 0.0)
    throw Unsupported("multiply: with both beta and a residual, which the host adds up, a streamed product is not " +
                      std::string(to_string(plan.window.precision)));
  try {
    make_buffers();
  } catch (...) {
    destroy();
    throw;
  }
}

Streamer::~Streamer() {
  if (!lost_ && !state_.is_gone()) destroy();
}

void Streamer::make_buffers() {
  const gl::Api& api = state_.api;
  const gl::StateGuard guard(api, gl::copy_bindings);
  const std::int64_t acc = element_bytes(sum_type(plan_.problem));
  const auto words = [](std::int64_t bytes) { return (bytes + 3) / 4 * 4; };
  c_ = gl::create_buffer(api, words(plan_.piece_m * plan_.piece_n * acc));
  gl::label_buffer(api, c_, "glgemm streamed C");
  for (const Role role : {Role::a, Role::b}) {
    const std::int64_t rows = role == Role::a ? plan_.piece_m : plan_.piece_n;
    if (has_window(plan_.window, role))
      windows_[index_of(role)] = gl::create_buffer(api, words(window_bytes(plan_.problem, role, rows, plan_.piece_k)));
  }
  if (plan_.problem.bias != Bias::none)
    bias_ = gl::create_buffer(api, (plan_.problem.bias == Bias::for_each_row ? plan_.piece_m : plan_.piece_n) * acc);
  if (plan_.window.workspace.size_bytes > 0) {
    work_.workspace_bytes = plan_.window.workspace.size_bytes + kernels::workspace_padding;
    work_.workspace = gl::create_buffer(api, work_.workspace_bytes);
    gl::label_buffer(api, work_.workspace, "glgemm streamed workspace");
  }
  strips_.resize(static_cast<std::size_t>(plan_.strips));
  for (StripBuffer& strip : strips_) {
    if (gl::maps_buffers(api)) {
      const gl::MappedBuffer mapped = gl::create_mapped_buffer(api, plan_.strip_bytes);
      strip.buffer = mapped.buffer;
      strip.memory = mapped.memory;
    } else {
      strip.buffer = gl::create_buffer(api, plan_.strip_bytes);
      strip.copy.resize(static_cast<std::size_t>(plan_.strip_bytes));
      strip.memory = strip.copy.data();
    }
  }
  staging_.resize(static_cast<std::size_t>(plan_.strip_bytes));
  if (plan_.problem.residual) added_.resize(staging_.size());
}

void Streamer::destroy() noexcept {
  const gl::Api& api = state_.api;
  state_.sizes.clear();  // a scope remembers them by names that new buffers may get
  state_.forget_images();
  for (StripBuffer& strip : strips_) {
    strip.in_use.destroy(api);
    gl::delete_buffer(api, strip.buffer);
  }
  for (unsigned* buffer : {&c_, &bias_, &windows_[0], &windows_[1]}) gl::delete_buffer(api, *buffer);
  work_.destroy(api);
}

void Streamer::through_strip(std::int64_t bytes, const std::function<void(std::byte*)>& fill,
                             const std::function<void(const StripBuffer&)>& then_use) {
  const gl::Api& api = state_.api;
  StripBuffer& strip = strips_[next_strip_];
  next_strip_ = (next_strip_ + 1) % strips_.size();
  if (strip.in_use) wait(std::exchange(strip.in_use, {}));
  const Timer timer(report_.transfer_time);
  fill(strip.memory);
  if (!strip.copy.empty()) gl::write_buffer(api, strip.buffer, 0, strip.memory, bytes);
  then_use(strip);
  strip.in_use = gl::Sync(api);
  if (strips_.size() > 1) gl::flush(api);  // the device begins while the next strip is filled
  report_.bytes_to_device += bytes;
}

void Streamer::bring(const HostMatrix& matrix, const Section& whole, Type type, unsigned target,
                     const std::function<void(const Section&, std::byte*)>& read) {
  const gl::Api& api = state_.api;
  const std::int64_t bytes = element_bytes(type);
  for_each_part(whole, matrix.layout, plan_.strip_bytes / bytes, [&](const Section& section, std::int64_t offset) {
    const std::int64_t size = section.rows * section.columns * bytes;
    through_strip(
        size, [&](std::byte* to) { read(section, to); },
        [&](const StripBuffer& strip) {
          gl::copy_lines(api, {strip.buffer}, {target, offset * bytes}, size);
        });
  });
}

void Streamer::bring_codes(const HostMatrix& matrix, const Section& whole, unsigned target) {
  const gl::Api& api = state_.api;
  const Quantization& quantization = matrix.quantization;
  const bool by_rows = matrix.layout == Layout::row_major;
  const std::int64_t lines = by_rows ? whole.rows : whole.columns, width = by_rows ? whole.columns : whole.rows;
  const QuantizedLayout there = quantized_layout(quantization, lines, width);
  for_each_part(whole, matrix.layout, max_codes(quantization, width, plan_.strip_bytes),
                [&](const Section& part, std::int64_t offset) {
                  const QuantizedLayout here = by_rows ? quantized_layout(quantization, part.rows, part.columns)
                                                       : quantized_layout(quantization, part.columns, part.rows);
                  const QuantizedBytes before = bytes_before(quantization, width, offset / width, offset % width);
                  through_strip(
                      here.size_bytes,
                      [&](std::byte* to) {
                        matrix.read_codes(part, {to, here.bytes.scales > 0 ? to + here.scales : nullptr,
                                                 here.bytes.zeros > 0 ? to + here.zeros : nullptr});
                      },
                      [&](const StripBuffer& strip) {
                        const auto copy = [&](std::int64_t from, std::int64_t at, std::int64_t bytes) {
                          if (bytes > 0) gl::copy_lines(api, {strip.buffer, from}, {target, at}, bytes);
                        };
                        copy(0, before.codes, here.bytes.codes);
                        copy(here.scales, there.scales + before.scales, here.bytes.scales);
                        copy(here.zeros, there.zeros + before.zeros, here.bytes.zeros);
                      });
                });
}

void Streamer::bring_wide(const HostMatrix& matrix, const Section& whole, unsigned target, const HostMatrix* add_beta_times) {
  const Type wide = sum_type(plan_.problem);
  if (matrix.type == wide && !add_beta_times) return bring(matrix, whole, wide, target, matrix.read);
  bring(matrix, whole, wide, target, [&](const Section& section, std::byte* to) {
    const std::int64_t count = section.rows * section.columns;
    read_wide(matrix, section, staging_.data());
    if (add_beta_times) {
      read_wide(*add_beta_times, section, added_.data());
      add_scaled(wide, staging_.data(), added_.data(), product_.beta.value, count);
    }
    std::memcpy(to, staging_.data(), static_cast<std::size_t>(count * element_bytes(wide)));
  });
}

void Streamer::bring_c(const Section& piece) {
  const std::optional<HostMatrix>& residual = product_.epilogue.residual;
  const bool adds = product_.beta.value != 0.0;
  if (residual)
    bring_wide(*residual, piece, c_, adds ? &product_.c : nullptr);
  else if (adds)
    bring_wide(product_.c, piece, c_);
  const HostBias& bias = product_.epilogue.bias;
  if (bias.kind() == Bias::for_each_row) bring_wide(bias.values(), {piece.row, 0, piece.rows, 1}, bias_);
  if (bias.kind() == Bias::for_each_column) bring_wide(bias.values(), {0, piece.column, 1, piece.columns}, bias_);
}

void Streamer::wait(gl::Sync sync) {
  const Timer timer(report_.compute_time);
  sync.wait(state_.api);
  sync.destroy(state_.api);
  gl::check_reset(state_.api);
}

void Streamer::fetch_c(const Section& piece) {
  const HostMatrix& c = product_.c;
  const gl::Api& api = state_.api;
  const std::int64_t acc = element_bytes(sum_type(plan_.problem));
  const Timer timer(report_.transfer_time);
  gl::barrier_before_transfers(api);
  for_each_part(piece, c.layout, plan_.strip_bytes / acc, [&](const Section& section, std::int64_t offset) {
    const std::int64_t count = section.rows * section.columns;
    gl::read_buffer(api, c_, offset * acc, staging_.data(), count * acc);
    report_.bytes_from_device += count * acc;
    convert_sums(c.type, staging_.data(), count);
    wrote_ = true;
    c.write(section, staging_.data());
  });
}

std::shared_ptr<Prepared> Streamer::prepare_window(const Section& piece, std::int64_t k, bool last) {
  const auto [problem, plan_options, constraints] = window_problem(plan_, options_.plan, piece.rows, piece.columns, k, last);
  std::shared_ptr<Prepared> prepared = prepared_for(state_, problem, plan_options, constraints);
  if (!make_ready(state_, *prepared, options_.plan.kernel.has_value()))
    throw GlError(fmt::format("multiply: {} {}: {}", to_string(prepared->plan.kernel), state_.struck_off.back().fault(),
                              state_.struck_off.back().reason));
  return prepared;
}

Gemm Streamer::window_product(const Problem& window, bool first) const {
  const auto view = [&](Role role, unsigned buffer) {
    const HostMatrix& matrix = operand(role);
    const Section section = stored(role, {0, role == Role::a ? window.m : window.n, 0, window.k});
    BufferView result{.buffer = buffer,
                      .rows = section.rows,
                      .columns = section.columns,
                      .layout = matrix.layout,
                      .type = matrix.type,
                      .quantization = matrix.quantization};
    if (result.quantization) {
      const QuantizedLayout at = quantized_layout(result.quantization, role == Role::a ? window.m : window.n, window.k);
      result.scales = {buffer, at.scales};
      result.zeros = {buffer, at.zeros};
    }
    return result;
  };
  Gemm product{
      .op_a = product_.op_a,
      .op_b = product_.op_b,
      .alpha = product_.alpha,
      .a = view(Role::a, windows_[0]),
      .b = view(Role::b, windows_[1]),
      .beta = first && !product_.epilogue.residual ? product_.beta : Scalar(1),
      .c = {.buffer = c_, .rows = window.m, .columns = window.n, .layout = product_.c.layout, .type = window.c.format.type}};
  product.epilogue.bias = BiasView::of(window.bias, bias_, 0, window.c.format.type);
  if (window.activation != ActivationKind::none) product.epilogue.activation = product_.epilogue.activation;
  return product;
}

Streamer::WindowParts Streamer::bring_parts(const Plan& plan, const Section& piece, std::int64_t k0, std::int64_t k) {
  WindowParts parts;
  for (const Role role : {Role::a, Role::b}) {
    const Role as_run = role_as_run(plan, role);
    const bool packed = plan.packs(as_run);
    const std::int64_t offset = packed ? (as_run == Role::a ? plan.workspace.panels_a : plan.workspace.panels_b).offset_bytes : 0;
    OperandPart& part = parts[index_of(role)];
    part = role == Role::a ? OperandPart{piece.row, piece.rows, k0, k, offset}
                           : OperandPart{piece.column, piece.columns, k0, k, offset};
    std::optional<OperandPart>& resident = resident_[index_of(role)];
    if (resident != part || !stays(plan, as_run)) resident.reset();
    if (resident || k == 0 || !has_window(plan, role)) continue;
    const HostMatrix& matrix = operand(role);
    const Section section = stored(role, part);
    if (matrix.quantization)
      bring_codes(matrix, section, windows_[index_of(role)]);
    else
      bring(matrix, section, matrix.type, windows_[index_of(role)], matrix.read);
  }
  return parts;
}

void Streamer::pack_strip(Enqueuer& enqueuer, ProductSteps& steps, Role role, const OperandPart& part) {
  const HostMatrix& matrix = operand(role);
  const std::int64_t bytes = element_bytes(matrix.type);
  const Runnable next = *steps.next(static_cast<double>(plan_.strip_bytes / bytes));
  const Step& step = next.step;
  const PackedPart packed = packed_part(steps.call().prepared->plan, step);
  const std::int64_t row0 = step.stage == Stage::pack_a ? step.m0 : step.n0;
  const Section section = stored(role, {part.row + row0 + packed.row, packed.rows, part.k0 + step.k0 + packed.k0, packed.k});
  const std::int64_t count = section.rows * section.columns;
  through_strip(
      count * bytes,
      [&](std::byte* to) {
        if (count > 0) matrix.read(section, to);
      },
      [&](const StripBuffer& buffer) {
        Strip strip;
        strip.buffer = buffer.buffer;
        strip.size_bytes = std::max<std::int64_t>(4, count * bytes);
        const bool by_rows = matrix.layout == Layout::row_major;
        const std::int64_t row = by_rows ? section.columns : 1, column = by_rows ? 1 : section.rows;
        const bool rows_first = (role == Role::a) == (op(role) == Op::none);
        strip.row = rows_first ? row : column;
        strip.k = rows_first ? column : row;
        strip.first = -(packed.row * strip.row + packed.k0 * strip.k);
        steps.call().strip = &strip;
        enqueuer.run(next);
        steps.call().strip = nullptr;
      });
}

void Streamer::run_steps(ProductSteps& steps, const WindowParts& parts) {
  const Plan& plan = steps.call().prepared->plan;
  Enqueuer enqueuer(state_, steps);
  const double max_seconds = seconds(state_.options.max_dispatch);
  while (const std::optional<Runnable> next = steps.least()) {
    const Stage stage = next->step.stage;
    const bool packs = stage == Stage::pack_a || stage == Stage::pack_b;
    const Role role = role_as_run(plan, stage == Stage::pack_a ? Role::a : Role::b);
    if (packs && resident_[index_of(role)]) {
      steps.next();
    } else if (packs && !has_window(plan, role)) {
      pack_strip(enqueuer, steps, role, parts[index_of(role)]);
    } else {
      const Timer timer(report_.compute_time);
      const Enqueuer::Timed timed = enqueuer.run_timed(max_seconds);
      state_.clock.collect(state_.api, timed.is_trial);
    }
  }
}

void Streamer::run_window(const Section& piece, std::int64_t k0, std::int64_t k) {
  const std::shared_ptr<Prepared> prepared = prepare_window(piece, k, k0 + k == plan_.problem.k);
  ProductSteps steps(make_call(window_product(prepared->problem, k0 == 0), prepared, work_));
  const Plan& plan = prepared->plan;
  const WindowParts parts = bring_parts(plan, piece, k0, k);
  run_steps(steps, parts);
  for (const Role role : {Role::a, Role::b})
    if (stays(plan, role_as_run(plan, role))) resident_[index_of(role)] = parts[index_of(role)];
  ++report_.windows;
}

void Streamer::run_on_device(const Section& piece, const std::function<void(double share)>& window_done) {
  const std::int64_t k = plan_.problem.k;
  bring_c(piece);
  std::int64_t k0 = 0;
  do {
    const std::int64_t length = std::min(plan_.piece_k, k - k0);
    run_window(piece, k0, length);
    k0 += length;
    if (window_done) window_done(k == 0 ? 1 : static_cast<double>(k0) / static_cast<double>(k));
  } while (k0 < k);
  wait(gl::Sync(state_.api));
  fetch_c(piece);
  ++report_.pieces;
}

void Streamer::run(const Section& piece, const std::function<void(double share)>& window_done) {
  if (piece.rows > plan_.piece_m || piece.columns > plan_.piece_n)
    throw std::logic_error("multiply: a piece of " + section_text(piece) + " of pieces of " +
                           size_text(plan_.piece_m, plan_.piece_n));
  wrote_ = false;
  std::optional<gl::StateGuard> guard;
  state_.save_bindings("multiply", guard);
  try {
    run_on_device(piece, window_done);
  } catch (const DeviceLost&) {
    if (guard) guard->forget();
    lost_ = true;
    throw;
  } catch (...) {
    resident_ = {};
    throw;
  }
}

// ---- Plans

StreamPlan Streamer::ready_plan(Engine& engine, const Problem& problem, const StreamOptions& options) {
  Engine::State& state = *EngineAccess::state(engine);
  state.check_usable("multiply");
  std::vector<StruckOff> passed_over;  // whose kernels have no program for a window at an edge
  for (;;) {                           // until the programs of a plan compile and pass their self-check
    PlannerInputs inputs = inputs_of(state, options.plan);
    inputs.struck_off.insert(inputs.struck_off.end(), passed_over.begin(), passed_over.end());
    StreamPlan plan = make_stream_plan(problem, std::move(inputs), engine.device_memory_bytes(), options);
    std::optional<gl::StateGuard> guard;
    state.save_bindings("multiply", guard);
    // Windows at the edges may run other programs: their lines may have no whole 16 bytes to read at a time.
    const auto sizes = [](std::int64_t all, std::int64_t piece) {
      return std::array{piece, all % std::max<std::int64_t>(1, piece)};
    };
    StruckOff fault;
    const auto is_ready = [&](std::int64_t m, std::int64_t n, std::int64_t k, bool last) {
      const auto [window, plan_options, constraints] = window_problem(plan, options.plan, m, n, k, last);
      try {
        if (make_ready(state, *prepared_for(state, window, plan_options, constraints), options.plan.kernel.has_value()))
          return true;
        fault = state.struck_off.back();
      } catch (const Unsupported& error) {  // its program failed its self-check before; one that is refused is compiled again
        if (options.plan.kernel) throw;
        fault = {.reason = error.what()};
      }
      return false;
    };
    const std::int64_t last_k = problem.k - (plan.windows() - 1) * plan.piece_k;
    bool all_ready = true;
    for (const std::int64_t m : sizes(problem.m, plan.piece_m))
      for (const std::int64_t n : sizes(problem.n, plan.piece_n))
        all_ready = all_ready && (m == 0 || n == 0 ||
                                  ((plan.windows() == 1 || is_ready(m, n, plan.piece_k, false)) && is_ready(m, n, last_k, true)));
    if (all_ready) return plan;
    fault.program = plan.window.program();
    passed_over.push_back(fault);
  }
}

StreamPlan make_stream_plan(Engine& engine, const HostGemm& product, const StreamOptions& options) {
  return Streamer::ready_plan(engine, problem_of(product), options);
}

}  // namespace glgemm
