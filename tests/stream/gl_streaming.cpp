// Products streamed through a device that is too small for them: exact results, bytes, faults.
#include <algorithm>
#include <complex>
#include <glgemm/experimental.hpp>
#include <glgemm/streaming.hpp>
#include <memory>
#include <new>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "stream/stream_plan.hpp"
#include "support/functions.hpp"
#include "support/gl_test.hpp"
#include "support/messages.hpp"
#include "support/random.hpp"

using namespace glgemm;

namespace {

constexpr unsigned guilty_context_reset = 0x8253;
constexpr std::int64_t no_limit = std::int64_t{1} << 40;  // of a buffer's bytes

/// The elements of a matrix in memory, with a gap of so many elements behind each line.
template <class X>
std::vector<X> stored(const Matrix<X>& x, Layout layout, std::int64_t gap) {
  const Matrix<X> lines = layout == Layout::row_major ? x : transpose(x);
  std::vector<X> result;
  for (std::int64_t i = 0; i < lines.rows(); ++i) {
    result.insert(result.end(), lines.data() + i * lines.columns(), lines.data() + (i + 1) * lines.columns());
    result.insert(result.end(), static_cast<std::size_t>(gap), X(9));
  }
  return result;
}

/// A random product of small integers on the host's side, and the C that it must give.
template <class T, class C>
class Case {
 public:
  Case(test::Random& random, std::int64_t m, std::int64_t n, std::int64_t k) {
    const auto matrix = [&]<class X>(X, std::int64_t rows, std::int64_t columns) {
      return random_integer_matrix<X>(rows, columns, 2, random.bits());
    };
    const auto on_host = [&]<class X>(const Matrix<X>& x, std::vector<X>& elements, Layout layout) {
      const std::int64_t gap = random.below(3);
      elements = stored(x, layout, gap);
      const std::int64_t width = layout == Layout::row_major ? x.columns() : x.rows();
      return host_matrix(static_cast<void*>(elements.data()), x.rows(), x.columns(), type_of<X>(), width + gap, layout);
    };
    const auto op = [&] { return random.pick({Op::none, Op::transpose, Op::conjugate_transpose}); };
    const auto layout = [&] { return random.pick({Layout::row_major, Layout::column_major}); };
    product.op_a = op();
    product.op_b = op();
    product.alpha = static_cast<double>(random.below(5) - 2);
    product.beta = static_cast<double>(random.below(3) - 1);
    const Matrix<T> a = product.op_a == Op::none ? matrix(T(), m, k) : matrix(T(), k, m);
    const Matrix<T> b = product.op_b == Op::none ? matrix(T(), k, n) : matrix(T(), n, k);
    product.a = on_host(a, a_, layout());
    product.b = on_host(b, b_, layout());
    const Matrix<C> c0 = matrix(C(), m, n), d = matrix(C(), m, n);
    const Layout layout_c = layout();
    product.c = on_host(c0, c, layout_c);
    HostEpilogue& epilogue = product.epilogue;
    if (random.coin()) epilogue.residual = on_host(d, d_, layout_c);
    const Bias kind = random.pick({Bias::none, Bias::for_each_row, Bias::for_each_column});
    const Matrix<C> bias = kind == Bias::for_each_row ? matrix(C(), m, 1) : matrix(C(), 1, n);
    bias_ = stored(bias, Layout::row_major, 0);
    const HostMatrix bias_values = host_matrix(static_cast<const void*>(bias_.data()), bias.rows(), bias.columns(), type_of<C>());
    if (kind == Bias::for_each_row) epilogue.bias = HostBias::for_each_row(bias_values);
    if (kind == Bias::for_each_column) epilogue.bias = HostBias::for_each_column(bias_values);
    constexpr bool is_real_float = !std::is_integral_v<C> && !requires(C x) {
      x.imag();
    };
    const bool relu = is_real_float && random.coin();
    if (relu) epilogue.activation = Activation::relu();

    using Sum = accumulator_t<T>;
    const auto scalar = [](const Scalar& x) { return static_cast<Sum>(static_cast<float>(x.value.real())); };
    const Matrix<Sum> ab = multiply_serial(apply_op(product.op_a, a), apply_op(product.op_b, b));
    Matrix<C> right = c0;
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        Sum value = scalar(product.alpha) * ab(i, j) + scalar(product.beta) * static_cast<Sum>(c0(i, j));
        if (epilogue.residual) value += static_cast<Sum>(d(i, j));
        if (kind != Bias::none) value += static_cast<Sum>(kind == Bias::for_each_row ? bias(i, 0) : bias(0, j));
        if constexpr (is_real_float)
          if (relu) value = std::max(Sum(0), value);
        right(i, j) = static_cast<C>(value);
      }
    const std::int64_t lines = layout_c == Layout::row_major ? m : n;
    expected = stored(right, layout_c, static_cast<std::int64_t>(c.size()) / lines - m * n / lines);
  }

  HostGemm product;
  std::vector<C> c, expected;

 private:
  std::vector<T> a_, b_;
  std::vector<C> d_, bias_;
};

template <class T, class C = accumulator_t<T>>
void run_cases(Engine& engine, int count, unsigned seed, const char* kernel) {
  test::Random random(seed);
  const auto one_in = [&](int chances) { return random.below(chances) == 0; };
  const auto size = [&] { return 1 + random.below(one_in(5) ? 3 : 90); };
  std::int64_t pieces = 0, windows = 0;
  int refused = 0;
  for (int i = 0; i < count; ++i) {
    const bool any_limit = one_in(3);  // also one that is too small for any piece
    const auto length = [&] { return any_limit ? 1 + random.below(8) : size(); };
    const std::int64_t m = length(), n = length(), k = one_in(12) ? 0 : one_in(4) ? 5 * length() : length();
    Case<T, C> one(random, m, n, k);
    StreamOptions options;
    if (kernel) options.plan.kernel = parse_kernel(kernel);
    options.device_memory_limit_bytes =
        any_limit ? 1 + random.below(100 << random.below(8)) : (9 + random.below(one_in(4) ? 60 : 24)) << 10;
    if (random.coin()) options.memory_limit_bytes = options.device_memory_limit_bytes + (16 << 10);
    if (one_in(3)) {
      options.plan.experimental.edit().limits = limits_of(engine);
      options.plan.experimental.edit().limits->storage_block_bytes = 4096;
      options.plan.experimental.edit().limits->groups = {4, 4, 4};
    }
    if (one_in(3)) {  // several strips, as for a GPU
      if (!options.plan.experimental->limits) options.plan.experimental.edit().limits = limits_of(engine);
      options.plan.experimental.edit().limits->cpu = false;
    }
    StreamReport report;
    try {
      multiply(engine, one.product, options, &report);
    } catch (const MemoryTooSmall& refusal) {
      CHECK(any_limit);
      if (refusal.least.device > 0) options.device_memory_limit_bytes = refusal.least.device;
      if (refusal.least.both > 0) options.memory_limit_bytes = refusal.least.both;
      multiply(engine, one.product, options, &report);
      ++refused;
    }
    const StreamPlan plan = make_stream_plan(engine, one.product, options);
    INFO("case ", i, ": ", m, "x", n, "x", k, " by ", to_string(plan.window.program()), " in pieces of ", plan.piece_m, "x",
         plan.piece_n, "x", plan.piece_k, ", strips of ", plan.strip_bytes);
    const bool equal = one.c == one.expected;
    CHECK(equal);
    CHECK(report.pieces == plan.pieces());
    CHECK(report.windows == report.pieces * plan.windows());
    CHECK(plan.device_bytes <= options.device_memory_limit_bytes);
    if (options.memory_limit_bytes > 0) CHECK(plan.device_bytes + plan.host_bytes <= options.memory_limit_bytes);
    windows += report.windows;
    pieces += report.pieces;
    if (!equal) return;
  }
  CAPTURE(seed);
  CHECK(pieces > count);
  CHECK(windows > pieces);
  if (limits_of(engine).cpu) CHECK(refused > 0);  // on a GPU strips lie on the host, and few limits are too small
}

/// Elements that are small integers, none of them zero-sum with its neighbours.
Matrix<float> pattern(std::int64_t rows, std::int64_t columns, int period) {
  Matrix<float> x(rows, columns);
  for (std::int64_t i = 0; i < x.size(); ++i) x.data()[i] = static_cast<float>(i % period - period / 2);
  return x;
}

constexpr const char* wide_panels = "register:tile_m=4,tile_n=4,step_k=2,workgroup=4,panels=1";

/// 200 x 150 x 170 floats in a device of 32 KiB.
struct Streamed {
  explicit Streamed(std::int64_t limit = 32 << 10, const char* kernel = "naive") {
    test::context();
    options.device_memory_limit_bytes = limit;
    options.plan.kernel = parse_kernel(kernel);
  }
  StreamReport run(Engine& engine = test::engine()) {
    StreamReport report;
    multiply(engine, product, options, &report);
    return report;
  }
  StreamPlan plan() const { return make_stream_plan(test::engine(), product, options); }
  bool is_right() const { return c == multiply_serial(a, b); }
  Matrix<float> a = pattern(200, 170, 7), b = pattern(170, 150, 5), c{200, 150};
  HostGemm product{.a = host_matrix(std::as_const(a)), .b = host_matrix(std::as_const(b)), .c = host_matrix(c)};
  StreamOptions options;
};

}  // namespace

TEST_CASE("streamed products of every kind are exact") {
  Engine engine = test::own_engine(test::unchecked_options(), HeadlessContext::get_proc_address);  // the cases are checks
  run_cases<float>(engine, 60, 11, "naive");
  run_cases<float>(engine, 40, 2, "tiled:tile=8");
  run_cases<float>(engine, 60, 3, wide_panels);
  if (limits_of(engine).image_buffer_bytes > 0)
    run_cases<float>(engine, 60, 4, "register:tile_m=4,tile_n=4,step_k=2,workgroup=4,panels=2");
  run_cases<half, half>(engine, 20, 12, "naive");
  run_cases<bfloat16>(engine, 20, 6, wide_panels);
  run_cases<std::int8_t>(engine, 20, 7, wide_panels);
  if (limits_of(engine).f64) run_cases<double>(engine, 20, 8, "tiled:tile=8");
  run_cases<std::complex<float>>(engine, 20, 9, "naive");
}

TEST_CASE("the next window's strips are filled while the device computes: exact as well") {
  for (const char* const kernel : {"naive", wide_panels}) {
    Streamed x(150 << 10, kernel);
    x.options.plan.experimental.edit().limits = limits_of(test::engine());
    x.options.plan.experimental.edit().limits->cpu = false;  // where they are filled by the CPU that computes, there is one
    CHECK(x.plan().strips > 2);
    x.run();
    CHECK(x.is_right());
  }
}

TEST_CASE("a panel that is on the device already is not sent again") {
  Streamed x(250 << 10, wide_panels);  // all of B, and some rows of A and C
  const StreamReport report = x.run();
  CHECK(x.is_right());
  CHECK(report.windows == report.pieces);
  CHECK(report.pieces > 1);
  CHECK(report.bytes_to_device == 4 * (x.a.size() + x.b.size()));
  CHECK(report.bytes_from_device == 4 * x.c.size());
  CHECK(report.planned_bytes == static_cast<double>(report.bytes_to_device + report.bytes_from_device));
  CHECK(report.transfer_time.count() > 0);
  CHECK(report.compute_time.count() > 0);
  CHECK(report.total_time > report.compute_time + report.transfer_time);
}

TEST_CASE("a panel stays on the device for a last piece of fewer rows") {
  bool ragged = false;
  for (std::int64_t limit = 120; limit < 250; limit += 10) {
    Streamed x(limit << 10, wide_panels);
    const StreamReport report = x.run();
    const StreamPlan plan = x.plan();
    if (plan.windows() > 1 || !plan.by_columns || plan.piece_n < plan.problem.n) continue;
    ragged = ragged || plan.problem.m % plan.piece_m != 0;
    CAPTURE(limit);
    CHECK(report.bytes_to_device == 4 * (x.a.size() + x.b.size()));
  }
  CHECK(ragged);
}

TEST_CASE("a piece of C larger than a storage block moves no more than the plan says") {
  Streamed x(60 << 10, wide_panels);
  x.options.plan.experimental.edit().limits = limits_of(test::engine());
  x.options.plan.experimental.edit().limits->storage_block_bytes = 9000;
  const StreamReport report = x.run();
  CHECK(x.is_right());
  const StreamPlan plan = x.plan();
  CHECK(4 * plan.piece_m * plan.piece_n > 9000);
  CHECK(size(plan.window).pieces > 1);
  CHECK(plan.windows() > 1);
  CHECK(plan.moved_bytes == static_cast<double>(report.bytes_to_device + report.bytes_from_device));
}

TEST_CASE("pieces at the edges, which the plan cuts in another way, are exact") {
  struct Shape {
    std::int64_t m, n, k;
    const char* kernel;
    std::int64_t limit, block;
    Layout layout;
  };
  const char* const storage = "register:tile_m=4,tile_n=4,step_k=1,workgroup=4,panels=1";
  const Layout rows = Layout::row_major, columns = Layout::column_major;
  for (const Shape& shape : {// a piece that is one follows one that is cut
                             Shape{120, 150, 40, wide_panels, 60000, 20000, rows},
                             {150, 120, 40, wide_panels, 60000, 20000, columns},
                             // fewer rows than columns at the edge only
                             {4, 769, 300, "gemv:tile_m=8,tile_n=4,lanes_k=1,workgroup=8,panels=1", 300000, 0, rows},
                             {59, 181, 78, "gemv:tile_m=2,tile_n=2,panels=1", 30000, 0, rows},
                             // the parts of the workspace are padded in another way
                             {149, 368, 15, storage, 46615, 8192, rows},
                             {374, 73, 53, storage, 103143, 16384, columns},
                             {278, 335, 9, storage, 56586, 4096, columns}}) {
    if (!why_not({.m = shape.m, .n = shape.n, .k = shape.k}, parse_kernel(shape.kernel), limits_of(test::engine())).empty())
      continue;
    const Matrix<float> a = pattern(shape.m, shape.k, 7), b = pattern(shape.k, shape.n, 5);
    std::vector<float> c(static_cast<std::size_t>(shape.m * shape.n));
    HostGemm product{.a = host_matrix(a), .b = host_matrix(b)};
    product.c = host_matrix(static_cast<void*>(c.data()), shape.m, shape.n, Type::f32, 0, shape.layout);
    StreamOptions options;
    options.device_memory_limit_bytes = shape.limit;
    options.plan.kernel = parse_kernel(shape.kernel);
    options.plan.experimental.edit().limits = limits_of(test::engine());
    if (shape.block > 0) options.plan.experimental.edit().limits->storage_block_bytes = shape.block;
    multiply(test::engine(), product, options);
    INFO(shape.m, "x", shape.n, " ", shape.kernel);
    CHECK(c == stored(multiply_serial(a, b), shape.layout, 0));
  }
}

TEST_CASE("programs that only pieces at the edges run are made before the first piece") {
  std::vector<std::string> lines;
  EngineOptions engine_options = test::engine_options();
  engine_options.program_cache = "";
  engine_options.tuning = "";
  engine_options.log = [&](std::string_view line) { lines.emplace_back(line); };
  Engine engine = test::own_engine(engine_options);
  const Matrix<float> a = random_integer_matrix(64, 96, 4, 1), b = random_integer_matrix(96, 62, 4, 2);
  Matrix<float> c(64, 62);
  const HostGemm product{.a = host_matrix(a), .b = host_matrix(b), .c = host_matrix(c)};
  StreamOptions options;
  options.plan.kernel = parse_kernel("blocked:block_m=16,block_n=16,block_k=8,tile_m=4,tile_n=4,step_k=2");
  // Pieces that are read 16 bytes at a time, and a last one that has not a multiple of 4 columns.
  for (StreamPlan plan; plan.window.vector_reads == VectorReads::none || plan.piece_n == 62;) {
    options.device_memory_limit_bytes += 4000;
    REQUIRE(options.device_memory_limit_bytes < 64000);
    try {
      plan = make_stream_plan(problem_of(product), limits_of(engine), 0, options);
    } catch (const std::invalid_argument&) {  // not even for one element
    }
  }
  const StreamPlan plan = make_stream_plan(engine, product, options);
  const std::size_t made = lines.size();
  CHECK(made == 2);
  StreamReport report;
  multiply(engine, product, options, &report);
  CHECK(lines.size() == made);
  CHECK(report.kernel == to_string(plan.window.kernel));
  CHECK(c == multiply_serial(a, b));
}

TEST_CASE("a limit that is too small names the least, which works") {
  Streamed x(1);
  const std::string message = message_of<std::invalid_argument>([&] { x.run(); });
  const std::string_view beginning = "multiply: a limit of 1 bytes is too small for any piece; the least is ";
  REQUIRE(message.starts_with(beginning));
  x.options.device_memory_limit_bytes = std::stoll(message.substr(beginning.size()));
  CHECK(x.options.device_memory_limit_bytes < 10000);
  const auto plan = [&] { make_stream_plan(problem_of(x.product), limits_of(test::engine()), 0, x.options); };
  CHECK_NOTHROW(plan());
  --x.options.device_memory_limit_bytes;
  CHECK_THROWS_AS(plan(), std::invalid_argument);
  x.options.device_memory_limit_bytes = -1;
  CHECK_THROWS_AS(x.run(), std::invalid_argument);
}

TEST_CASE("pieces that are done stay as they are, and the others are told") {
  Streamed x;
  std::vector<Section> pieces;
  std::vector<double> shares;
  x.options.piece_done = [&](const Section& piece) { pieces.push_back(piece); };
  x.options.progress = [&](double share) { shares.push_back(share); };
  x.run();
  const Matrix<float> whole = x.c;
  REQUIRE(pieces.size() > 4);
  CHECK(std::is_sorted(shares.begin(), shares.end()));
  CHECK(shares.front() > 0);
  CHECK(shares.back() == 1);

  std::fill(x.c.elements().begin(), x.c.elements().end(), -1.f);
  x.options.done = {pieces[1], pieces[3]};
  std::vector<Section> rest;
  x.options.piece_done = [&](const Section& piece) { rest.push_back(piece); };
  x.run();
  CHECK(rest.size() == pieces.size() - 2);
  const auto inside = [](const Section& s, std::int64_t i, std::int64_t j) {
    return i >= s.row && i < s.row + s.rows && j >= s.column && j < s.column + s.columns;
  };
  bool as_expected = true;
  for (std::int64_t i = 0; i < x.c.rows(); ++i)
    for (std::int64_t j = 0; j < x.c.columns(); ++j)
      as_expected = as_expected && x.c(i, j) == (inside(pieces[1], i, j) || inside(pieces[3], i, j) ? -1.f : whole(i, j));
  CHECK(as_expected);
}

namespace {

/// An engine on the counting loader, and what gives another one when its context is lost.
struct LosingEngine {
  explicit LosingEngine(EngineOptions with = test::unchecked_options()) : options(std::move(with)) {
    test::context();
    make();
  }
  ~LosingEngine() {
    test::pretend_reset(0);
    test::limit_buffers(no_limit);
    engine->release();
    for (const GLenum target : test::Enums{GL_COPY_READ_BUFFER, GL_COPY_WRITE_BUFFER})
      test::gl_functions().BindBuffer(target, 0);  // nothing is put back in a context that is lost
  }
  LosingEngine(const LosingEngine&) = delete;
  LosingEngine& operator=(const LosingEngine&) = delete;

  Engine& make() {
    if (engine) engine->abandon();
    engine = std::make_unique<Engine>(test::counting_loader, options);
    ++made;
    return *engine;
  }
  EngineOptions options;
  std::unique_ptr<Engine> engine;
  int made = 0;
};

}  // namespace

TEST_CASE("a lost context: without a factory DeviceLost; with one the product goes on where it was") {
  Streamed x;
  LosingEngine losing;
  int pieces = 0;
  x.options.piece_done = [&](const Section&) {
    if (++pieces == 3) test::pretend_reset(guilty_context_reset);
  };
  CHECK_THROWS_AS(x.run(*losing.engine), DeviceLost);
  CHECK(pieces == 3);
  test::pretend_reset(0);
  losing.make();

  pieces = 0;
  x.options.new_engine = [&]() -> Engine& {
    test::pretend_reset(0);
    return losing.make();
  };
  const StreamReport report = x.run(*losing.engine);
  CHECK(report.contexts_lost == 1);
  CHECK(pieces == x.plan().pieces());  // none twice
  CHECK(x.is_right());

  // A context that is lost again and again does not go on for ever.
  x.options.piece_done = {};
  losing.made = 0;
  x.options.new_engine = [&]() -> Engine& {
    test::pretend_reset(0);
    Engine& made = losing.make();
    test::pretend_reset(guilty_context_reset);
    return made;
  };
  test::pretend_reset(guilty_context_reset);
  CHECK_THROWS_AS(x.run(*losing.engine), DeviceLost);
  CHECK(losing.made == 3);
  // In a context that is lost there is no engine.
  CHECK_THROWS_AS(losing.make(), DeviceLost);
}

TEST_CASE("a context that is lost while the product is planned: a new engine plans it again") {
  EngineOptions options = test::engine_options();
  options.experimental.edit().self_check = true;  // which needs buffers, and a lost context gives none
  options.program_cache = "";
  LosingEngine losing(options);
  Streamed x;
  test::pretend_reset(guilty_context_reset);
  test::limit_buffers(0);
  CHECK_THROWS_AS(make_stream_plan(*losing.engine, x.product, x.options), DeviceLost);
  losing.made = 0;
  x.options.new_engine = [&]() -> Engine& {
    test::pretend_reset(0);
    test::limit_buffers(no_limit);
    return losing.make();
  };
  Engine& lost = x.options.new_engine();
  test::pretend_reset(guilty_context_reset);
  test::limit_buffers(0);
  const StreamReport report = x.run(lost);
  CHECK(losing.made == 2);
  CHECK(report.contexts_lost == 1);
  CHECK(report.pieces == x.plan().pieces());
  CHECK_RESULT(x.is_right());
}

TEST_CASE("a driver without the memory: smaller pieces, and OutOfMemory when none is small enough") {
  Streamed x(1 << 20);
  Engine engine = test::own_engine(test::unchecked_options(), test::counting_loader);
  test::limit_buffers(20000);
  CHECK(x.run(engine).out_of_memory > 0);
  CHECK(x.is_right());
  test::limit_buffers(100);
  CHECK_THROWS_AS(x.run(engine), OutOfMemory);
  test::limit_buffers(no_limit);
  CHECK(test::engine().multiply({{2}}, {{3}})(0, 0) == 6);  // no OpenGL error is left, and nothing is broken
}

namespace {

/// So many fences more end with std::bad_alloc: what a driver in this process's memory does to the library.
int refused_fences = 0;
GLsync (*real_fence)(GLenum, GLbitfield) = nullptr;

void (*short_of_memory(const char* name))() {
  if (name != std::string_view("glFenceSync")) return test::get_proc_address(name);
  real_fence = reinterpret_cast<decltype(real_fence)>(test::get_proc_address(name));
  const decltype(real_fence) fence = [](GLenum condition, GLbitfield flags) {
    if (refused_fences > 0 && refused_fences-- > 0) throw std::bad_alloc();
    return real_fence(condition, flags);
  };
  return reinterpret_cast<void (*)()>(fence);
}

}  // namespace

TEST_CASE("a host without the memory: smaller pieces, and bad_alloc when none is small enough") {
  Streamed x(1 << 20);
  Engine engine = test::own_engine(test::unchecked_options(), short_of_memory);
  x.run(engine);
  refused_fences = 2;
  const StreamReport report = x.run(engine);
  CHECK(report.out_of_memory == 2);
  CHECK(report.pieces > 1);
  CHECK_RESULT(x.is_right());
  refused_fences = 1000;
  CHECK_THROWS_AS(x.run(engine), std::bad_alloc);
  CHECK(refused_fences > 900);
  refused_fences = 0;
  x.run(engine);
  CHECK_RESULT(x.is_right());
}

TEST_CASE("what the matrices' functions throw ends a streamed product, and the engine lives on") {
  Streamed x;
  int reads = 0;
  const auto read = x.product.b.read;
  x.product.b.read = [&](const Section& section, void* to) {
    if (++reads == 5) throw std::runtime_error("the file is gone");
    read(section, to);
  };
  CHECK_THROWS_WITH(x.run(), "the file is gone");
  x.product.b.read = read;
  x.run();
  CHECK(x.is_right());

  // An error of any type is not taken for the driver's.
  x.options.piece_done = [&](const Section&) { throw OutOfMemory("the disk is full", 1); };
  CHECK_THROWS_WITH_AS(x.run(), "the disk is full", OutOfMemory);
  x.options.piece_done = {};

  x.product.alpha = std::complex<double>(1, 1);
  CHECK_THROWS_AS(x.run(), std::invalid_argument);
  x.product.alpha = 1;
  x.product.c.write = {};
  CHECK_THROWS_WITH_AS(x.run(), "multiply: C has no function to write it", std::invalid_argument);
}
