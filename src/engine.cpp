// Doing it: from a product to a plan, and from the plan's steps to OpenGL.
#include <glgemm/engine.hpp>

#include <map>
#include <stdexcept>
#include <utility>

#include "gl.hpp"

namespace glgemm {

/// What an engine, its device matrices and its stopwatches share.
struct Engine::State {
  gl::Api api{};
  DeviceInfo device;
  Limits limits;
  EngineOptions options;
  std::map<Kernel, gl::Program> programs;
  /// The engine's own objects may not be used any more; those of its device matrices may, unless `abandoned`.
  bool released = false;
  /// OpenGL must not be called any more.
  bool abandoned = false;

  gl::Program& program(const Problem& problem, const Kernel& kernel) {
    const auto found = programs.find(kernel);
    if (found != programs.end()) return found->second;
    std::string text = source(problem, kernel);
    if (options.rewrite_source) text = options.rewrite_source(kernel, std::move(text));
    return programs.emplace(kernel, gl::Program(api, to_string(kernel), text, workgroup(kernel))).first->second;
  }
};

namespace {

std::string size_text(std::int64_t rows, std::int64_t columns) { return std::to_string(rows) + "x" + std::to_string(columns); }

std::int64_t width(const BufferView& view) { return view.layout == Layout::row_major ? view.columns : view.rows; }
std::int64_t lines(const BufferView& view) { return view.layout == Layout::row_major ? view.rows : view.columns; }
std::int64_t leading_dimension(const BufferView& view) { return view.ld != 0 ? view.ld : std::max<std::int64_t>(1, width(view)); }

/// Bytes from the view's first element to behind its last, 0 for a view without elements; the problem is known to be countable.
std::int64_t span_bytes(const BufferView& view, Type type) {
  if (view.rows == 0 || view.columns == 0) return 0;
  return ((lines(view) - 1) * leading_dimension(view) + width(view)) * element_bytes(type);
}

/// @throws std::invalid_argument  the view is misaligned or leaves its buffer
void validate_view(const gl::Api& api, const BufferView& view, Type type, const char* name) {
  const std::string who = std::string("gemm: ") + name;
  if (view.offset_bytes < 0 || view.offset_bytes % element_bytes(type) != 0)
    throw std::invalid_argument(who + " starts at byte " + std::to_string(view.offset_bytes) + ", which is no multiple of its element's " +
                                std::to_string(element_bytes(type)) + " bytes");
  const std::int64_t bytes = gl::buffer_bytes(api, view.buffer);
  if (bytes < 0) throw std::invalid_argument(who + ": " + std::to_string(view.buffer) + " is not the name of a buffer object");
  const std::int64_t needed = span_bytes(view, type);
  if (needed > 0 && (view.offset_bytes > bytes || needed > bytes - view.offset_bytes))
    throw std::invalid_argument(who + " of " + size_text(view.rows, view.columns) + " with ld " + std::to_string(leading_dimension(view)) +
                                " at byte " + std::to_string(view.offset_bytes) + " needs " + std::to_string(needed) +
                                " bytes and leaves its buffer of " + std::to_string(bytes));
}

/// Whether two views of the same buffer have an element in common. Both are sets of lines of `width` bytes, `ld` bytes apart.
bool overlap(const BufferView& a, const BufferView& b, Type type) {
  if (a.buffer != b.buffer) return false;
  const std::int64_t bytes = element_bytes(type);
  const std::int64_t a_begin = a.offset_bytes, a_end = a_begin + span_bytes(a, type);
  const std::int64_t b_begin = b.offset_bytes, b_end = b_begin + span_bytes(b, type);
  if (a_begin == a_end || b_begin == b_end || a_end <= b_begin || b_end <= a_begin) return false;
  if (lines(a) > lines(b)) return overlap(b, a, type);
  // Line i of a meets line j of b where b_begin + j * step lies in (begin - b_width, end): one division for each i finds the least j.
  const std::int64_t step = leading_dimension(b) * bytes, b_width = width(b) * bytes;
  for (std::int64_t i = 0; i < lines(a); ++i) {
    const std::int64_t begin = a_begin + i * leading_dimension(a) * bytes, end = begin + width(a) * bytes;
    const std::int64_t after = begin - b_width - b_begin;  // b's line starts later than this
    const std::int64_t j = after < 0 ? 0 : after / step + 1;
    if (j < lines(b) && b_begin + j * step < end) return true;
  }
  return false;
}

/// Binds a window of a view and returns the index, in elements of the binding, at which the window begins.
int bind(const gl::Api& api, const Limits& limits, GLuint binding, const BufferView& view, Window window, Type type) {
  if (window.size_bytes == 0) return 0;  // never read
  const std::int64_t begin = view.offset_bytes + window.offset_bytes;
  const std::int64_t rest = begin % std::max<std::int64_t>(limits.storage_offset_alignment, element_bytes(type));
  api.BindBufferRange(GL_SHADER_STORAGE_BUFFER, binding, view.buffer, static_cast<GLintptr>(begin - rest),
                      static_cast<GLsizeiptr>(window.size_bytes + rest));
  return static_cast<int>(rest / element_bytes(type));
}

std::array<int, 3> placement(int first, Strides stride) {
  return {first, static_cast<int>(stride.row), static_cast<int>(stride.column)};
}

void run(const gl::Api& api, const Limits& limits, gl::Program& program, const Plan& plan, const Step& step, const Gemm& product) {
  const Problem& problem = plan.problem;
  program.set(api, 0, static_cast<int>(step.x0));
  program.set(api, 1, static_cast<int>(step.y0));
  program.set(api, 2, std::array{static_cast<int>(step.m), static_cast<int>(step.n), static_cast<int>(step.k)});
  program.set(api, 3, placement(bind(api, limits, 0, product.a, step.a, problem.type), strides(problem, Role::a)));
  program.set(api, 4, placement(bind(api, limits, 1, product.b, step.b, problem.type), strides(problem, Role::b)));
  program.set(api, 5, placement(bind(api, limits, 2, product.c, step.c, problem.type), strides(problem, Role::c)));
  program.set(api, 6, product.alpha);
  program.set(api, 7, step.first_k ? product.beta : 1.0f);
  if (step.barrier_before) api.MemoryBarrier(GL_SHADER_STORAGE_BARRIER_BIT);
  api.DispatchCompute(static_cast<GLuint>(step.groups[0]), static_cast<GLuint>(step.groups[1]), static_cast<GLuint>(step.groups[2]));
}

}  // namespace

Engine::Engine(GetProcAddress get_proc_address, EngineOptions options) : state_(std::make_shared<State>()) {
  if (!get_proc_address) throw std::invalid_argument("Engine: get_proc_address is null");
  state_->api = gl::load(get_proc_address);
  state_->device = gl::device_info(state_->api);
  state_->limits = gl::query_limits(state_->api, state_->device);
  state_->options = std::move(options);
}

Engine::~Engine() = default;
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;

const Limits& Engine::limits() const noexcept { return state_->limits; }
const DeviceInfo& Engine::device() const noexcept { return state_->device; }

Problem Engine::problem(const Gemm& product) {
  const auto rows = [](const BufferView& view, Op op) { return op == Op::none ? view.rows : view.columns; };
  const auto columns = [](const BufferView& view, Op op) { return op == Op::none ? view.columns : view.rows; };
  Problem problem;
  problem.m = rows(product.a, product.op_a);
  problem.n = columns(product.b, product.op_b);
  problem.k = columns(product.a, product.op_a);
  problem.a = {product.a.layout, product.a.ld, product.op_a};
  problem.b = {product.b.layout, product.b.ld, product.op_b};
  problem.c = {product.c.layout, product.c.ld, Op::none};
  const std::int64_t inner = rows(product.b, product.op_b);
  if (problem.k != inner)
    throw std::invalid_argument("gemm: op(A) is " + size_text(problem.m, problem.k) + " and op(B) is " + size_text(inner, problem.n) +
                                ": the inner sizes " + std::to_string(problem.k) + " and " + std::to_string(inner) + " differ");
  if (product.c.rows != problem.m || product.c.columns != problem.n)
    throw std::invalid_argument("gemm: op(A) op(B) is " + size_text(problem.m, problem.n) + " and C is " +
                                size_text(product.c.rows, product.c.columns));
  validate(problem);
  return problem;
}

void Engine::gemm(const Gemm& product, const PlanOptions& options, Report* report) {
  if (state_->released) throw std::invalid_argument("gemm: the engine was released");
  Problem problem = Engine::problem(product);
  if (product.alpha == 0.0f) problem.k = 0;  // as BLAS: A and B are not read
  const Plan plan = make_plan(problem, state_->limits, options);

  const gl::Api& api = state_->api;
  const gl::StateGuard guard(api);
  validate_view(api, product.a, problem.type, "A");
  validate_view(api, product.b, problem.type, "B");
  validate_view(api, product.c, problem.type, "C");
  for (const BufferView* input : {&product.a, &product.b})
    if (overlap(*input, product.c, problem.type))
      throw std::invalid_argument(std::string("gemm: C overlaps ") + (input == &product.a ? "A" : "B") + " in buffer " +
                                  std::to_string(product.c.buffer));
  gl::Program& program = state_->program(problem, plan.kernel);
  std::optional<Stopwatch> watch;
  if (report) watch.emplace(*this).start();

  api.UseProgram(program.id());
  std::int64_t slices = 0, dispatches = 0;
  Cursor cursor;
  for (Slice slice = next_slice(plan, cursor); !slice.empty(); slice = next_slice(plan, cursor)) {
    for (const Step& step : slice.steps()) run(api, state_->limits, program, plan, step, product);
    ++slices;
    dispatches += slice.count;
  }

  if (report) {
    watch->stop();
    *report = {plan, slices, dispatches, watch->elapsed(), {}};
  }
}

Matrix<float> Engine::multiply(const Matrix<float>& a, const Matrix<float>& b, const PlanOptions& options, Report* report) {
  const auto begin = std::chrono::steady_clock::now();
  if (a.columns() != b.rows())
    throw std::invalid_argument("multiply: A is " + size_text(a.rows(), a.columns()) + " and B is " + size_text(b.rows(), b.columns()) +
                                ": the inner sizes " + std::to_string(a.columns()) + " and " + std::to_string(b.rows()) + " differ");
  Problem problem;
  problem.m = a.rows();
  problem.n = b.columns();
  problem.k = a.columns();
  make_plan(problem, state_->limits, options);  // refuses before anything is uploaded
  const DeviceMatrix device_a(*this, a), device_b(*this, b), device_c(*this, a.rows(), b.columns());
  gemm({.a = device_a.view(), .b = device_b.view(), .c = device_c.view()}, options, report);
  Matrix<float> c = device_c.download();
  gl::check_reset(state_->api);
  if (report) report->total_time = std::chrono::steady_clock::now() - begin;
  return c;
}

void Engine::release() {
  if (!state_->abandoned)
    for (auto& [kernel, program] : state_->programs) program.destroy(state_->api);
  state_->programs.clear();
  state_->released = true;
}

void Engine::abandon() noexcept {
  state_->programs.clear();
  state_->released = true;
  state_->abandoned = true;
}

DeviceMatrix::DeviceMatrix(Engine& engine, std::int64_t rows, std::int64_t columns)
    : state_(engine.state_), rows_(rows), columns_(columns) {
  Problem countable;  // a matrix is as large as it may be as C of a product
  countable.m = rows;
  countable.n = columns;
  validate(countable);
  const gl::StateGuard guard(state_->api);
  buffer_ = gl::create_buffer(state_->api, rows * columns * element_bytes(Type::f32), nullptr);
}

DeviceMatrix::DeviceMatrix(Engine& engine, const Matrix<float>& host)
    : state_(engine.state_), rows_(host.rows()), columns_(host.columns()) {
  const gl::StateGuard guard(state_->api);
  buffer_ = gl::create_buffer(state_->api, host.size() * element_bytes(Type::f32), host.data());
}

DeviceMatrix::~DeviceMatrix() {
  if (buffer_ != 0 && !state_->abandoned) state_->api.DeleteBuffers(1, &buffer_);
}

DeviceMatrix::DeviceMatrix(DeviceMatrix&& other) noexcept
    : state_(other.state_), rows_(other.rows_), columns_(other.columns_), buffer_(std::exchange(other.buffer_, 0)) {}

DeviceMatrix& DeviceMatrix::operator=(DeviceMatrix&& other) noexcept {
  std::swap(state_, other.state_);
  std::swap(rows_, other.rows_);
  std::swap(columns_, other.columns_);
  std::swap(buffer_, other.buffer_);
  return *this;
}

BufferView DeviceMatrix::view() const noexcept { return {.buffer = buffer_, .rows = rows_, .columns = columns_}; }

void DeviceMatrix::upload(const Matrix<float>& host) {
  if (host.rows() != rows_ || host.columns() != columns_)
    throw std::invalid_argument("DeviceMatrix::upload: the matrix is " + size_text(rows_, columns_) + " and the data " +
                                size_text(host.rows(), host.columns()));
  if (host.size() == 0) return;
  const gl::StateGuard guard(state_->api);
  state_->api.BindBuffer(GL_COPY_WRITE_BUFFER, buffer_);
  state_->api.BufferSubData(GL_COPY_WRITE_BUFFER, 0, static_cast<GLsizeiptr>(host.elements().size_bytes()), host.data());
}

Matrix<float> DeviceMatrix::download() const {
  Matrix<float> host(rows_, columns_);
  if (host.size() == 0) return host;
  const gl::StateGuard guard(state_->api);
  state_->api.MemoryBarrier(GL_BUFFER_UPDATE_BARRIER_BIT);
  state_->api.BindBuffer(GL_COPY_READ_BUFFER, buffer_);
  state_->api.GetBufferSubData(GL_COPY_READ_BUFFER, 0, static_cast<GLsizeiptr>(host.elements().size_bytes()), host.data());
  return host;
}

Stopwatch::Stopwatch(Engine& engine) : state_(engine.state_) { state_->api.GenQueries(2, queries_); }

Stopwatch::~Stopwatch() {
  if (!state_->abandoned) state_->api.DeleteQueries(2, queries_);
}

void Stopwatch::start() { state_->api.QueryCounter(queries_[0], GL_TIMESTAMP); }
void Stopwatch::stop() { state_->api.QueryCounter(queries_[1], GL_TIMESTAMP); }

std::chrono::nanoseconds Stopwatch::elapsed() const {
  GLuint64 begin = 0, end = 0;
  state_->api.GetQueryObjectui64v(queries_[0], GL_QUERY_RESULT, &begin);
  state_->api.GetQueryObjectui64v(queries_[1], GL_QUERY_RESULT, &end);
  return std::chrono::nanoseconds(static_cast<std::int64_t>(end - begin));
}

}  // namespace glgemm
