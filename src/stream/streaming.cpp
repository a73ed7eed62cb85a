// Runs the pieces of a streamed product on one engine, and the product on it.
#include "stream/streaming.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "engine/execute.hpp"
#include "engine/validate.hpp"
#include "kernels/kernels.hpp"
#include "stream/piece_queue.hpp"

namespace glgemm {
namespace {

using Clock = std::chrono::steady_clock;

/// Adds to a duration what passes while it lives.
class Timer {
 public:
  explicit Timer(std::chrono::nanoseconds& sum) : sum_(sum) {}
  ~Timer() { sum_ += Clock::now() - begin_; }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

 private:
  std::chrono::nanoseconds& sum_;
  Clock::time_point begin_ = Clock::now();
};

/// Calls f(part, offset) for parts of a dense section that are contiguous and have at most `most` elements each: whole lines, or
/// parts of one. `offset` is that of the part's first element in the section, in elements.
template <class F>
void for_each_part(const Section& section, Layout layout, std::int64_t most, const F& f) {
  const bool by_rows = layout == Layout::row_major;
  const std::int64_t lines = by_rows ? section.rows : section.columns, width = by_rows ? section.columns : section.rows;
  if (lines == 0 || width == 0) return;
  const std::int64_t lines_each = std::max<std::int64_t>(1, most / width), width_each = std::min(width, most);
  for (std::int64_t line = 0; line < lines; line += lines_each)
    for (std::int64_t at = 0; at < width; at += width_each) {
      const std::int64_t count = std::min(lines_each, lines - line), length = std::min(width_each, width - at);
      f(by_rows ? Section{section.row + line, section.column + at, count, length}
                : Section{section.row + at, section.column + line, length, count},
        line * width + at);
    }
}

/// Rounds floats to elements of 16 bits, or widens those; in the same memory or apart.
template <class T>
void narrow_all(std::byte* values, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    float wide = 0;
    std::memcpy(&wide, values + 4 * i, 4);
    const T value(wide);
    std::memcpy(values + 2 * i, &value, 2);
  }
}
template <class T>
void widen_all(const std::byte* from, std::byte* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, from + 2 * i, 2);
    const float wide = value;
    std::memcpy(to + 4 * i, &wide, 4);
  }
}

template <class T>
void add_scaled(std::byte* sum, const std::byte* x, std::complex<double> factor, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    T a, b;
    std::memcpy(&a, sum + static_cast<std::int64_t>(sizeof(T)) * i, sizeof(T));
    std::memcpy(&b, x + static_cast<std::int64_t>(sizeof(T)) * i, sizeof(T));
    if constexpr (std::is_arithmetic_v<T>)
      a += static_cast<T>(factor.real()) * b;
    else
      a += static_cast<T>(factor) * b;
    std::memcpy(sum + static_cast<std::int64_t>(sizeof(T)) * i, &a, sizeof(T));
  }
}

/// Adds `factor` times the numbers of that accumulator's type at `x` to those at `sum`. Integers wrap.
void add_scaled(Type type, std::byte* sum, const std::byte* x, std::complex<double> factor, std::int64_t count) {
  switch (type) {
    case Type::f64:
      return add_scaled<double>(sum, x, factor, count);
    case Type::i32:
      factor = static_cast<double>(static_cast<std::uint32_t>(static_cast<std::int64_t>(factor.real())));
      [[fallthrough]];
    case Type::u32:
      return add_scaled<std::uint32_t>(sum, x, factor, count);
    case Type::c64:
      return add_scaled<std::complex<float>>(sum, x, factor, count);
    case Type::c128:
      return add_scaled<std::complex<double>>(sum, x, factor, count);
    default:
      return add_scaled<float>(sum, x, factor, count);
  }
}

}  // namespace

namespace {

/// Calls f(at, here, bytes) for each line of a section: where it begins in a matrix whose lines are `step` elements apart, where
/// in the dense section, and its length, all in bytes.
template <class F>
void for_each_line(const Section& section, Layout layout, std::int64_t step, Type type, const F& f) {
  const bool by_rows = layout == Layout::row_major;
  const std::int64_t lines = by_rows ? section.rows : section.columns, first = by_rows ? section.row : section.column;
  const std::int64_t width = by_rows ? section.columns : section.rows, at = by_rows ? section.column : section.row;
  const std::int64_t bytes = element_bytes(type);
  for (std::int64_t i = 0; i < lines; ++i)
    f(((first + i) * step + at) * bytes, i * width * bytes, static_cast<std::size_t>(width * bytes));
}

/// `ld`, or the least one.
std::int64_t line_step(std::int64_t rows, std::int64_t columns, std::int64_t ld, Layout layout) {
  const std::int64_t least = layout == Layout::row_major ? columns : rows;
  if (rows < 0 || columns < 0) throw std::invalid_argument("host_matrix: " + size_text(rows, columns) + " is not a usable size");
  if (ld != 0 && ld < least)
    throw std::invalid_argument("host_matrix: ld is " + std::to_string(ld) + ", less than the width of " + std::to_string(least));
  return ld != 0 ? ld : least;
}

}  // namespace

HostMatrix host_matrix(const void* data, std::int64_t rows, std::int64_t columns, Type type, std::int64_t ld, Layout layout) {
  const std::int64_t step = line_step(rows, columns, ld, layout);
  HostMatrix matrix{rows, columns, type, layout, {}, {}};
  matrix.read = [=](const Section& section, void* to) {
    for_each_line(section, layout, step, type, [&](std::int64_t at, std::int64_t here, std::size_t bytes) {
      std::memcpy(static_cast<std::byte*>(to) + here, static_cast<const std::byte*>(data) + at, bytes);
    });
  };
  return matrix;
}

HostMatrix host_matrix(void* data, std::int64_t rows, std::int64_t columns, Type type, std::int64_t ld, Layout layout) {
  HostMatrix matrix = host_matrix(static_cast<const void*>(data), rows, columns, type, ld, layout);
  const std::int64_t step = line_step(rows, columns, ld, layout);
  matrix.write = [=](const Section& section, const void* from) {
    for_each_line(section, layout, step, type, [&](std::int64_t at, std::int64_t here, std::size_t bytes) {
      std::memcpy(static_cast<std::byte*>(data) + at, static_cast<const std::byte*>(from) + here, bytes);
    });
  };
  return matrix;
}

Problem problem(const HostGemm& product) {
  const auto view = [](const HostMatrix& matrix) {
    return BufferView{.rows = matrix.rows, .columns = matrix.columns, .layout = matrix.layout, .type = matrix.type};
  };
  Gemm gemm;
  gemm.op_a = product.op_a;
  gemm.op_b = product.op_b;
  gemm.alpha = product.alpha;
  gemm.a = view(product.a);
  gemm.b = view(product.b);
  gemm.beta = product.beta;
  gemm.c = view(product.c);
  const HostEpilogue& epilogue = product.epilogue;
  if (epilogue.residual) gemm.epilogue.residual = view(*epilogue.residual);
  if (epilogue.residual && epilogue.residual->layout != product.c.layout)
    throw std::invalid_argument("multiply: C and D differ in their layout");
  gemm.epilogue.activation = epilogue.activation;
  check_numbers(gemm, accumulator(gemm.a.type));
  if (epilogue.bias.kind() != Bias::none) {
    const bool for_rows = epilogue.bias.kind() == Bias::for_each_row;
    gemm.epilogue.bias = for_rows ? BiasView::for_each_row(0) : BiasView::for_each_column(0);
    const HostMatrix& bias = epilogue.bias.values();
    const std::int64_t rows = for_rows ? product.c.rows : 1, columns = for_rows ? 1 : product.c.columns;
    if (bias.rows != rows || bias.columns != columns || bias.type != product.c.type)
      throw std::invalid_argument("multiply: the bias is " + size_text(bias.rows, bias.columns) + " of " +
                                  std::string(to_string(bias.type)) + " and not " + size_text(rows, columns) + " of " +
                                  std::string(to_string(product.c.type)));
  }
  return problem_to_plan(gemm);
}

std::int64_t Engine::device_memory_bytes() const {
  constexpr std::int64_t unknown = std::int64_t{1} << 30;
  if (state_->limits.cpu) {
    const std::int64_t memory = main_memory_bytes();
    return memory > 0 ? memory / 2 : unknown;
  }
  const std::int64_t free = gl::free_memory_bytes(state_->api);
  return free > 0 ? free / 8 * 7 : unknown;
}

// ---- One engine

Streamer::Streamer(Engine& engine, const HostGemm& product, const StreamPlan& plan, const StreamOptions& options,
                   StreamReport& report)
    : state_(*engine.state_), product_(product), plan_(plan), options_(options), report_(report) {
  state_.check_usable("multiply");
  try {
    make_buffers();
  } catch (...) {
    destroy();
    throw;
  }
}

Streamer::~Streamer() {
  if (!lost_ && !state_.abandoned) destroy();
}

void Streamer::make_buffers() {
  const gl::Api& api = state_.api;
  const gl::CopyGuard guard(api);
  const std::int64_t acc = element_bytes(accumulator(plan_.problem.type));
  const auto words = [](std::int64_t bytes) { return (bytes + 3) / 4 * 4; };
  c_ = gl::create_buffer(api, words(plan_.piece_m * plan_.piece_n * acc), nullptr);
  gl::label(api, GL_BUFFER, c_, "glgemm streamed C");
  for (const Role role : {Role::a, Role::b}) {
    const Role as_run = plan_.window.transposed ? (role == Role::a ? Role::b : Role::a) : role;
    if (plan_.window.packs(as_run)) continue;
    const std::int64_t elements = (role == Role::a ? plan_.piece_m : plan_.piece_n) * plan_.piece_k;
    windows_[static_cast<std::size_t>(role)] =
        gl::create_buffer(api, words(elements * element_bytes(plan_.problem.type)), nullptr);
  }
  if (plan_.problem.bias != Bias::none)
    bias_ = gl::create_buffer(api, (plan_.problem.bias == Bias::for_each_row ? plan_.piece_m : plan_.piece_n) * acc, nullptr);
  if (plan_.window.workspace_bytes > 0) {
    work_.workspace_bytes = plan_.window.workspace_bytes + kernels::workspace_padding;
    work_.workspace = gl::create_buffer(api, work_.workspace_bytes, nullptr);
    gl::label(api, GL_BUFFER, work_.workspace, "glgemm streamed workspace");
  }
  strips_.resize(static_cast<std::size_t>(plan_.strips));
  for (StripBuffer& strip : strips_) {
    constexpr GLbitfield access = GL_MAP_WRITE_BIT | GL_MAP_PERSISTENT_BIT | GL_MAP_COHERENT_BIT;
    const auto size = static_cast<GLsizeiptr>(plan_.strip_bytes);
    if (!api.BufferStorage) {
      strip.buffer = gl::create_buffer(api, plan_.strip_bytes, nullptr);
      strip.copy.resize(static_cast<std::size_t>(plan_.strip_bytes));
      strip.memory = strip.copy.data();
      continue;
    }
    api.GenBuffers(1, &strip.buffer);
    api.BindBuffer(GL_COPY_WRITE_BUFFER, strip.buffer);
    api.BufferStorage(GL_COPY_WRITE_BUFFER, size, nullptr, access);
    if (gl::buffer_bytes(api, strip.buffer) == plan_.strip_bytes)
      strip.memory = static_cast<std::byte*>(api.MapBufferRange(GL_COPY_WRITE_BUFFER, 0, size, access));
    if (!strip.memory) gl::refuse_memory(api, plan_.strip_bytes);
  }
  band_.resize(static_cast<std::size_t>(plan_.strip_bytes));
  if (plan_.problem.residual) added_.resize(band_.size());
}

void Streamer::destroy() noexcept {
  const gl::Api& api = state_.api;
  state_.sizes.clear();  // the names may come back while a scope remembers them
  state_.image_a.begin = -1;
  for (const StripBuffer& strip : strips_) {
    api.DeleteSync(strip.in_use);
    api.DeleteBuffers(1, &strip.buffer);
  }
  api.DeleteBuffers(1, &c_);
  api.DeleteBuffers(1, &bias_);
  api.DeleteBuffers(2, windows_.data());
  work_.destroy(api);
}

std::pair<Problem, PlanOptions> Streamer::window_problem(const StreamPlan& plan, const StreamOptions& options, std::int64_t m,
                                                         std::int64_t n, std::int64_t k, bool last) {
  Problem problem = plan.problem;
  problem.residual = false;
  if (!last) {
    problem.bias = Bias::none;
    problem.activation = ActivationKind::none;
  }
  problem.m = m;
  problem.n = n;
  problem.k = k;
  problem.c_type = accumulator(problem.type);
  PlanOptions plan_options = options.plan;
  plan_options.kernel = plan.window.kernel;
  plan_options.split_k = std::max<std::int64_t>(1, plan.window.parts);
  plan_options.transposed = plan.window.transposed;
  plan_options.workspace_bytes = plan.window.workspace_bytes + kernels::workspace_padding;
  return {problem, plan_options};
}

Section Streamer::stored(Role role, const Held& part) const {
  // op(A) is rows x k, op(B) is k x rows.
  const bool rows_first = (role == Role::a) == (op(role) == Op::none);
  return rows_first ? Section{part.row, part.k0, part.rows, part.k} : Section{part.k0, part.row, part.k, part.rows};
}

void Streamer::through_strip(std::int64_t bytes, const std::function<void(std::byte*)>& fill,
                             const std::function<void(const StripBuffer&)>& then_use) {
  const gl::Api& api = state_.api;
  StripBuffer& strip = strips_[next_strip_];
  next_strip_ = (next_strip_ + 1) % strips_.size();
  if (strip.in_use) {
    const Timer timer(report_.compute_time);
    api.ClientWaitSync(strip.in_use, GL_SYNC_FLUSH_COMMANDS_BIT, GL_TIMEOUT_IGNORED);
    api.DeleteSync(std::exchange(strip.in_use, nullptr));
    gl::check_reset(api);
  }
  const Timer timer(report_.transfer_time);
  fill(strip.memory);
  if (!strip.copy.empty()) {
    api.BindBuffer(GL_COPY_WRITE_BUFFER, strip.buffer);
    api.BufferSubData(GL_COPY_WRITE_BUFFER, 0, static_cast<GLsizeiptr>(bytes), strip.memory);
  }
  then_use(strip);
  strip.in_use = api.FenceSync(GL_SYNC_GPU_COMMANDS_COMPLETE, 0);
  if (strips_.size() > 1) api.Flush();  // the device begins while the next strip is filled
  report_.bytes_to_device += bytes;
}

void Streamer::bring_window(Role role, const Held& part) {
  const gl::Api& api = state_.api;
  const HostMatrix& matrix = operand(role);
  const std::int64_t bytes = element_bytes(matrix.type);
  const GLuint target = windows_[static_cast<std::size_t>(role)];
  for_each_part(stored(role, part), matrix.layout, plan_.strip_bytes / bytes, [&](const Section& section, std::int64_t offset) {
    const std::int64_t size = section.rows * section.columns * bytes;
    through_strip(
        size, [&](std::byte* to) { matrix.read(section, to); },
        [&](const StripBuffer& strip) {
          api.BindBuffer(GL_COPY_READ_BUFFER, strip.buffer);
          api.BindBuffer(GL_COPY_WRITE_BUFFER, target);
          api.CopyBufferSubData(GL_COPY_READ_BUFFER, GL_COPY_WRITE_BUFFER, 0, static_cast<GLintptr>(offset * bytes),
                                static_cast<GLsizeiptr>(size));
        });
  });
}

void Streamer::bring_wide(const HostMatrix& matrix, const Section& whole, GLuint target, const HostMatrix* add_beta_times) {
  const gl::Api& api = state_.api;
  const Type wide = accumulator(plan_.problem.type);
  const std::int64_t acc = element_bytes(wide);
  // Elements at the end of their room may be widened in it, from the first on.
  const auto read = [&](const HostMatrix& from, const Section& section, std::vector<std::byte>& room) {
    const std::int64_t count = section.rows * section.columns;
    if (from.type == wide) return from.read(section, room.data());
    std::byte* const narrow = room.data() + count * (acc - element_bytes(from.type));
    from.read(section, narrow);
    from.type == Type::f16 ? widen_all<half>(narrow, room.data(), count) : widen_all<bfloat16>(narrow, room.data(), count);
  };
  for_each_part(whole, matrix.layout, plan_.strip_bytes / acc, [&](const Section& section, std::int64_t offset) {
    const std::int64_t count = section.rows * section.columns;
    through_strip(
        count * acc,
        [&](std::byte* to) {
          if (matrix.type == wide && !add_beta_times) return matrix.read(section, to);
          read(matrix, section, band_);
          if (add_beta_times) {
            read(*add_beta_times, section, added_);
            add_scaled(wide, band_.data(), added_.data(), product_.beta.value, count);
          }
          std::memcpy(to, band_.data(), static_cast<std::size_t>(count * acc));
        },
        [&](const StripBuffer& strip) {
          api.BindBuffer(GL_COPY_READ_BUFFER, strip.buffer);
          api.BindBuffer(GL_COPY_WRITE_BUFFER, target);
          api.CopyBufferSubData(GL_COPY_READ_BUFFER, GL_COPY_WRITE_BUFFER, 0, static_cast<GLintptr>(offset * acc),
                                static_cast<GLsizeiptr>(count * acc));
        });
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

void Streamer::wait() {
  const gl::Api& api = state_.api;
  const Timer timer(report_.compute_time);
  const GLsync fence = api.FenceSync(GL_SYNC_GPU_COMMANDS_COMPLETE, 0);
  api.ClientWaitSync(fence, GL_SYNC_FLUSH_COMMANDS_BIT, GL_TIMEOUT_IGNORED);
  api.DeleteSync(fence);
  gl::check_reset(api);
}

void Streamer::fetch_c(const Section& piece) {
  const gl::Api& api = state_.api;
  const HostMatrix& c = product_.c;
  const std::int64_t acc = element_bytes(accumulator(plan_.problem.type));
  const Timer timer(report_.transfer_time);
  api.MemoryBarrier(GL_BUFFER_UPDATE_BARRIER_BIT);
  for_each_part(piece, c.layout, plan_.strip_bytes / acc, [&](const Section& section, std::int64_t offset) {
    const std::int64_t count = section.rows * section.columns;
    api.BindBuffer(GL_COPY_READ_BUFFER, c_);
    api.GetBufferSubData(GL_COPY_READ_BUFFER, static_cast<GLintptr>(offset * acc), static_cast<GLsizeiptr>(count * acc),
                         band_.data());
    gl::check_reset(api);  // before anything is written that may not be C
    if (c.type != accumulator(plan_.problem.type))
      c.type == Type::f16 ? narrow_all<half>(band_.data(), count) : narrow_all<bfloat16>(band_.data(), count);
    wrote_ = true;
    c.write(section, band_.data());
    report_.bytes_from_device += count * acc;
  });
}

void Streamer::window(const Section& piece, std::int64_t k0, std::int64_t k) {
  const gl::Api& api = state_.api;
  const bool last = k0 + k == plan_.problem.k;
  const auto [problem, plan_options] = window_problem(plan_, options_, piece.rows, piece.columns, k, last);
  const std::shared_ptr<Prepared> prepared = prepared_for(state_, problem, plan_options);
  if (!make_ready(state_, *prepared)) throw GlError("multiply: " + state_.why_struck_off.back());
  const Plan& plan = prepared->plan;

  const auto view = [&](Role role, GLuint buffer) {
    const HostMatrix& matrix = operand(role);
    const Section section = stored(role, {0, role == Role::a ? piece.rows : piece.columns, 0, k});
    return BufferView{
        .buffer = buffer, .rows = section.rows, .columns = section.columns, .layout = matrix.layout, .type = matrix.type};
  };
  Gemm product;
  product.op_a = product_.op_a;
  product.op_b = product_.op_b;
  product.alpha = product_.alpha;
  product.a = view(Role::a, windows_[0]);
  product.b = view(Role::b, windows_[1]);
  product.beta = k0 == 0 && !product_.epilogue.residual ? product_.beta : Scalar(1);
  product.c = {.buffer = c_, .rows = piece.rows, .columns = piece.columns, .layout = product_.c.layout, .type = problem.c_type};
  if (problem.bias == Bias::for_each_row) product.epilogue.bias = BiasView::for_each_row(bias_);
  if (problem.bias == Bias::for_each_column) product.epilogue.bias = BiasView::for_each_column(bias_);
  if (last) product.epilogue.activation = product_.epilogue.activation;
  Call call = make_call(product, prepared, work_);
  // So that B's panels stay where they are, whatever the rows of A; unless a window of another shape has no room for that.
  using kernels::workspace_aligned;
  const std::int64_t behind_b = workspace_aligned(plan.panels_b_bytes) + plan.sums_bytes;
  if (plan.panels_b_bytes <= plan_.window.panels_b_bytes &&
      workspace_aligned(plan_.window.panels_a_bytes) + behind_b <= work_.workspace_bytes)
    call.min_panels_a_bytes = plan_.window.panels_a_bytes;
  const std::int64_t panels_b = workspace_aligned(std::max(plan.panels_a_bytes, call.min_panels_a_bytes));

  // A and B as the plan has them.
  const auto own = [&](Role role) { return plan.transposed ? (role == Role::a ? Role::b : Role::a) : role; };
  // What pieces of a window share stays in its panels, see next_slice(); what they do not share does not.
  const auto stays = [&](Role as_run) {
    const Problem& whole = plan.problem;
    return plan.piece_k >= whole.k && plan.piece_n >= whole.n && (as_run == Role::b || plan.piece_m >= whole.m);
  };
  std::array<bool, 2> has{};  // the part is in its buffer already
  std::array<Held, 2> parts{};
  for (const Role role : {Role::a, Role::b}) {
    const auto index = static_cast<std::size_t>(role);
    const Role as_run = own(role);
    const bool packed = plan.packs(as_run);
    const std::int64_t offset = packed && as_run == Role::b ? panels_b : 0;
    parts[index] =
        role == Role::a ? Held{piece.row, piece.rows, k0, k, offset} : Held{piece.column, piece.columns, k0, k, offset};
    has[index] = held_[index] == parts[index] && (stays(as_run) || !packed);
    if (!has[index]) held_[index].reset();
    if (!has[index] && !packed && k > 0) bring_window(role, parts[index]);
  }

  Enqueuer enqueuer(state_, call);
  const double longest = seconds(state_.options.max_dispatch);
  for (Cursor cursor;;) {
    Cursor here = cursor;
    const Slice least = next_slice(plan, here, 0);
    if (least.empty()) break;
    const Stage stage = least.storage[0].stage;
    if (stage == Stage::multiply || stage == Stage::reduce) {
      const Timer timer(report_.compute_time);
      const Enqueuer::Timed timed = enqueuer.run_timed(cursor, state_.clock, longest);
      state_.clock.collect(api, timed.is_trial);
      continue;
    }
    const Role as_run = stage == Stage::pack_a ? Role::a : Role::b, role = own(as_run);
    if (has[static_cast<std::size_t>(role)]) {
      next_slice(plan, cursor);
      continue;
    }
    const HostMatrix& matrix = operand(role);
    const std::int64_t bytes = element_bytes(matrix.type);
    const std::int64_t row0 = as_run == Role::a ? cursor.m0 : cursor.n0, piece_k0 = cursor.k0;
    const Slice slice = next_slice(plan, cursor, static_cast<double>(plan_.strip_bytes / bytes));
    const kernels::PackedPart packed = kernels::packed_part(plan, slice.storage[0]);
    const Held& part = parts[static_cast<std::size_t>(role)];
    const Section section = stored(role, {part.row + row0 + packed.row, packed.rows, k0 + piece_k0 + packed.k0, packed.k});
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
          call.strip = &strip;
          enqueuer.run(slice);
          call.strip = nullptr;
        });
  }
  // Of what pieces of the window have overwritten for each other, nothing whole is left.
  for (const Role role : {Role::a, Role::b})
    if (const Role as_run = own(role); !plan.packs(as_run) || stays(as_run))
      held_[static_cast<std::size_t>(role)] = parts[static_cast<std::size_t>(role)];
  ++report_.windows;
}

void Streamer::run_on_device(const Section& piece, const std::function<void(double share)>& window_done) {
  const std::int64_t k = plan_.problem.k;
  bring_c(piece);
  std::int64_t k0 = 0;
  do {
    const std::int64_t length = std::min(plan_.piece_k, k - k0);
    window(piece, k0, length);
    k0 += length;
    if (window_done) window_done(k == 0 ? 1 : static_cast<double>(k0) / static_cast<double>(k));
  } while (k0 < k);
  wait();
  fetch_c(piece);
  ++report_.pieces;
}

void Streamer::run(const Section& piece, const std::function<void(double share)>& window_done) {
  if (piece.rows > plan_.piece_m || piece.columns > plan_.piece_n)
    throw std::logic_error("multiply: a piece of " + section_text(piece) + " of pieces of " +
                           size_text(plan_.piece_m, plan_.piece_n));
  wrote_ = false;
  std::optional<gl::StateGuard> guard;
  state_.enter("multiply", guard);
  try {
    run_on_device(piece, window_done);
  } catch (const DeviceLost&) {
    if (guard) guard->forget();
    lost_ = true;
    throw;
  } catch (...) {
    held_ = {};
    throw;
  }
}

// ---- The whole product

StreamPlan Streamer::ready_plan(Engine& engine, const Problem& problem, const StreamOptions& options) {
  Engine::State& state = *engine.state_;
  state.check_usable("multiply");
  for (;;) {  // until one passes its self-check
    StreamOptions with = options;
    with.plan = with_own(state, options.plan);
    StreamPlan plan = make_stream_plan(problem, state.limits, engine.device_memory_bytes(), with);
    std::optional<gl::StateGuard> guard;
    state.enter("multiply", guard);
    // Windows at the edges may run other programs: what is read 16 bytes at a time in whole ones may not be there.
    const auto sizes = [](std::int64_t all, std::int64_t piece) {
      return std::array{piece, all % std::max<std::int64_t>(1, piece)};
    };
    const auto is_ready = [&](std::int64_t m, std::int64_t n, std::int64_t k, bool last) {
      const auto [window, plan_options] = window_problem(plan, options, m, n, k, last);
      return make_ready(state, *prepared_for(state, window, plan_options));
    };
    const std::int64_t last_k = problem.k - (plan.windows() - 1) * plan.piece_k;
    bool all_ready = true;
    for (const std::int64_t m : sizes(problem.m, plan.piece_m))
      for (const std::int64_t n : sizes(problem.n, plan.piece_n))
        all_ready = all_ready && (m == 0 || n == 0 ||
                                  ((plan.windows() == 1 || is_ready(m, n, plan.piece_k, false)) && is_ready(m, n, last_k, true)));
    if (all_ready) return plan;
    if (!options.plan.struck_off.empty()) throw GlError("multiply: " + state.why_struck_off.back());  // the caller's list stays
  }
}

StreamPlan stream_plan(Engine& engine, const HostGemm& product, const StreamOptions& options) {
  return Streamer::ready_plan(engine, problem(product), options);
}

void check_functions(const HostGemm& product) {
  const auto needs = [](bool has, const char* name, const char* what) {
    if (!has) throw std::invalid_argument(std::string("multiply: ") + name + " has no function to " + what + " it");
  };
  const bool reads = product.alpha.value != 0.0;
  needs(!reads || product.a.read, "A", "read");
  needs(!reads || product.b.read, "B", "read");
  needs(product.beta.value == 0.0 || product.c.read, "C", "read");
  needs(static_cast<bool>(product.c.write), "C", "write");
  needs(!product.epilogue.residual || product.epilogue.residual->read, "D", "read");
  needs(product.epilogue.bias.kind() == Bias::none || product.epilogue.bias.values().read, "the bias", "read");
}

void multiply(Engine& engine, const HostGemm& product, const StreamOptions& options, StreamReport* report) {
  StreamReport own;
  StreamReport& result = report ? *report : own;
  result = {};
  const Timer timer(result.total_time);
  const Problem problem = glgemm::problem(product);
  check_functions(product);
  StreamPlan plan = result.plan = Streamer::ready_plan(engine, problem, options);
  if (problem.m == 0 || problem.n == 0) return;
  const bool by_columns = plan.by_columns;
  const auto across = [&] { return by_columns ? plan.piece_n : plan.piece_m; };
  const auto along = [&] { return by_columns ? plan.piece_m : plan.piece_n; };
  PieceQueue queue(problem.m, problem.n, across(), by_columns, options.done);
  const double all = static_cast<double>(problem.m) * static_cast<double>(problem.n);
  Engine* on = &engine;
  std::optional<Streamer> streamer;
  const auto share = [&](double undone) { return 1 - (static_cast<double>(queue.left()) + undone) / all; };

  // What the callers' functions throw is theirs, whatever its type.
  struct Ended {};
  std::exception_ptr thrown;
  const auto call = [&](const auto& function) {
    try {
      function();
    } catch (...) {
      thrown = std::current_exception();
      throw Ended();
    }
  };
  const HostGemm guarded = with_calls(product, call);
  const auto again_is_wrong = [&] { return streamer && streamer->wrote() && reads_c(product); };
  const auto replan = [&](std::int64_t device_memory) {
    streamer.reset();
    StreamOptions limited = options;
    limited.device_memory_limit = device_memory;
    plan = Streamer::ready_plan(*on, problem, limited);
  };

  constexpr int max_losses = 3;  // of the same piece
  int losses = 0;
  std::optional<std::int64_t> panel;
  while (const std::optional<Section> piece = queue.take(along(), panel)) {
    panel = by_columns ? piece->column : piece->row;
    const auto elements = static_cast<double>(piece->rows * piece->columns);
    try {
      if (!streamer) streamer.emplace(*on, guarded, plan, options, result);
      streamer->run(*piece, [&](double part) {
        if (options.progress) call([&] { options.progress(share(elements * (1 - part))); });
      });
      losses = 0;
      if (options.piece_done) call([&] { options.piece_done(*piece); });
      continue;
    } catch (const Ended&) {
      std::rethrow_exception(thrown);
    } catch (const DeviceLost&) {
      if (!options.new_engine || again_is_wrong() || ++losses > max_losses) throw;
      streamer.reset();
      on = &options.new_engine();
      replan(plan.device_bytes);  // the same one, unless the device is another
      ++result.contexts_lost;
    } catch (const OutOfMemory&) {
      if (again_is_wrong()) throw;
      bool smaller = true;
      try {
        replan(plan.device_bytes / 2);
      } catch (const std::invalid_argument&) {  // it is too small for any piece
        smaller = false;
      }
      if (!smaller) throw;
      ++result.out_of_memory;
    }
    queue.give_back(*piece);
    queue.narrow(across());
  }
}

}  // namespace glgemm
