// Products streamed through a device that is too small for them: exact results, bytes, faults.
#include <doctest/doctest.h>

#include <algorithm>
#include <complex>
#include <cstdint>
#include <glgemm/glgemm.hpp>
#include <glgemm/plan.hpp>
#include <glgemm/streaming.hpp>
#include <glgemm/verify.hpp>
#include <memory>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "support/context.hpp"
#include "support/counting_loader.hpp"
#include "support/functions.hpp"

using namespace glgemm;

namespace {

constexpr unsigned guilty_context_reset = 0x8253;

/// A product of small integers on the host's side, between guard bands.
template <class T, class C>
class Case {
 public:
  Case(std::mt19937& random, std::int64_t m, std::int64_t n, std::int64_t k) : m_(m), n_(n), k_(k) {
    const auto bit = [&] { return random() % 2 == 0; };
    const auto small = [&](std::int64_t range) {
      return static_cast<std::int64_t>(random() % static_cast<unsigned>(2 * range + 1)) - range;
    };
    product.op_a = bit() ? Op::none : bit() ? Op::transpose : Op::conjugate_transpose;
    product.op_b = bit() ? Op::none : bit() ? Op::transpose : Op::conjugate_transpose;
    product.alpha = static_cast<double>(small(2));
    product.beta = static_cast<double>(small(1));
    const auto layout = [&] { return bit() ? Layout::row_major : Layout::column_major; };
    const auto make = [&](std::vector<T>& data, std::int64_t rows, std::int64_t columns, Op op) {
      if (op != Op::none) std::swap(rows, columns);
      HostMatrix matrix{rows, columns, type_of<T>(), layout(), {}, {}};
      const std::int64_t ld = (matrix.layout == Layout::row_major ? columns : rows) + small(1) + 1;
      data.resize(static_cast<std::size_t>(ld * (matrix.layout == Layout::row_major ? rows : columns)));
      for (T& x : data) {
        if constexpr (requires { x.imag(); })
          x = T(static_cast<float>(small(2)), static_cast<float>(small(2)));
        else
          x = static_cast<T>(static_cast<float>(small(2)));
      }
      return std::tuple(host_matrix(static_cast<const void*>(data.data()), rows, columns, type_of<T>(), ld, matrix.layout), ld);
    };
    std::tie(product.a, ld_a_) = make(a_, m, k, product.op_a);
    std::tie(product.b, ld_b_) = make(b_, k, n, product.op_b);
    const Layout layout_c = layout();
    ld_c_ = (layout_c == Layout::row_major ? n : m) + small(1) + 1;
    c.resize(static_cast<std::size_t>(ld_c_ * (layout_c == Layout::row_major ? m : n)));
    for (C& x : c) x = static_cast<C>(static_cast<float>(small(2)));
    product.c = host_matrix(static_cast<void*>(c.data()), m, n, type_of<C>(), ld_c_, layout_c);
    constexpr bool real_float = !std::is_integral_v<C> && !requires(C x) {
      x.imag();
    };
    HostEpilogue& epilogue = product.epilogue;
    const auto fill = [&](std::vector<C>& values, std::int64_t count) {
      values.resize(static_cast<std::size_t>(count));
      for (C& x : values) x = static_cast<C>(static_cast<float>(small(2)));
      return static_cast<const void*>(values.data());
    };
    if (bit()) epilogue.residual = host_matrix(fill(d_, m * n), m, n, type_of<C>(), 0, layout_c);
    const Bias bias = bit() ? Bias::none : bit() ? Bias::for_each_row : Bias::for_each_column;
    if (bias == Bias::for_each_row) epilogue.bias = HostBias::for_each_row(host_matrix(fill(bias_, m), m, 1, type_of<C>()));
    if (bias == Bias::for_each_column) epilogue.bias = HostBias::for_each_column(host_matrix(fill(bias_, n), 1, n, type_of<C>()));
    if (real_float && bit()) epilogue.activation = Activation::relu();
    expected = c;
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        std::complex<double> sum = 0;
        for (std::int64_t p = 0; p < k; ++p)
          sum += at(a_, product.a, ld_a_, product.op_a, i, p) * at(b_, product.b, ld_b_, product.op_b, p, j);
        C& x = expected[static_cast<std::size_t>(index(product.c.layout, ld_c_, i, j))];
        std::complex<double> value = product.alpha.value * sum + product.beta.value * wide(x);
        if (epilogue.residual)
          value += wide(d_[static_cast<std::size_t>(index(layout_c, layout_c == Layout::row_major ? n : m, i, j))]);
        if (bias == Bias::for_each_row) value += wide(bias_[static_cast<std::size_t>(i)]);
        if (bias == Bias::for_each_column) value += wide(bias_[static_cast<std::size_t>(j)]);
        if (epilogue.activation == Activation::relu()) value = std::max(0.0, value.real());
        if constexpr (requires { x.imag(); })
          x = C(static_cast<float>(value.real()), static_cast<float>(value.imag()));
        else
          x = static_cast<C>(static_cast<float>(value.real()));
      }
  }

  HostGemm product;
  std::vector<C> c, expected;

 private:
  static std::int64_t index(Layout layout, std::int64_t ld, std::int64_t i, std::int64_t j) {
    return layout == Layout::row_major ? i * ld + j : j * ld + i;
  }
  template <class X>
  static std::complex<double> wide(X x) {
    if constexpr (requires { x.imag(); })
      return {x.real(), x.imag()};
    else
      return static_cast<double>(x);
  }
  static std::complex<double> at(const std::vector<T>& data, const HostMatrix& matrix, std::int64_t ld, Op op, std::int64_t i,
                                 std::int64_t j) {
    if (op != Op::none) std::swap(i, j);
    const std::complex<double> x = wide(data[static_cast<std::size_t>(index(matrix.layout, ld, i, j))]);
    return op == Op::conjugate_transpose ? std::conj(x) : x;
  }

  std::int64_t m_, n_, k_, ld_a_ = 0, ld_b_ = 0, ld_c_ = 0;
  std::vector<T> a_, b_;
  std::vector<C> d_, bias_;
};

template <class T, class C = accumulator_t<T>>
int run_cases(Engine& engine, int count, unsigned seed, const char* kernel) {
  std::mt19937 random(seed);
  const auto size = [&]() -> std::int64_t { return 1 + static_cast<std::int64_t>(random() % (random() % 5 == 0 ? 3 : 90)); };
  std::int64_t pieces = 0, windows = 0;
  int max_strips = 0;  // of a plan
  for (int i = 0; i < count; ++i) {
    const std::int64_t m = size(), n = size(), k = random() % 12 == 0 ? 0 : random() % 4 == 0 ? 5 * size() : size();
    Case<T, C> one(random, m, n, k);
    StreamOptions options;
    if (kernel) options.plan.kernel = parse_kernel(kernel);
    options.device_memory_limit = std::int64_t{9 + static_cast<std::int64_t>(random() % 24)} << 10;
    options.checksums = i % 2 == 0 && one.product.epilogue.activation == Activation{};
    if (random() % 2 == 0) options.memory_limit = options.device_memory_limit + (options.checksums ? 16384 : 8192);
    if (random() % 3 == 0) {
      options.plan.limits = engine.limits();
      options.plan.limits->storage_block_bytes = 4096;
      options.plan.limits->groups = {4, 4, 4};
    }
    if (random() % 3 == 0) {  // several strips, as for a GPU
      if (!options.plan.limits) options.plan.limits = engine.limits();
      options.plan.limits->cpu = false;
    }
    StreamReport report;
    multiply(engine, one.product, options, &report);
    CAPTURE(i);
    CAPTURE(m);
    CAPTURE(n);
    CAPTURE(k);
    CAPTURE(to_string(report.plan.window.program()));
    CAPTURE(report.plan.piece_m);
    CAPTURE(report.plan.piece_n);
    CAPTURE(report.plan.piece_k);
    CAPTURE(report.plan.strip_bytes);
    const bool equal = one.c == one.expected;
    CHECK(equal);
    CHECK(report.checksums.failures.empty());
    CHECK((report.checksums.columns >= n) == options.checksums);
    CHECK(report.pieces == report.plan.pieces());
    CHECK(report.windows == report.pieces * report.plan.windows());
    CHECK(report.plan.device_bytes <= options.device_memory_limit);
    max_strips = std::max(max_strips, report.plan.strips);
    if (options.memory_limit > 0) CHECK(report.plan.device_bytes + report.plan.host_bytes <= options.memory_limit);
    windows += report.windows;
    pieces += report.pieces;
    if (!equal) return 0;
  }
  CHECK(pieces > count);
  CHECK(windows > pieces);
  return max_strips;
}

EngineOptions unchecked() {
  EngineOptions options;
  options.self_check = false;  // the cases are checks themselves
  return options;
}

/// 200 x 150 x 170 floats in a device of 32 KiB.
struct Streamed {
  Streamed() : a(200, 170), b(170, 150), c(200, 150) {
    for (std::int64_t i = 0; i < a.size(); ++i) a.data()[i] = static_cast<float>(i % 7 - 3);
    for (std::int64_t i = 0; i < b.size(); ++i) b.data()[i] = static_cast<float>(i % 5 - 2);
    product.a = host_matrix(static_cast<const Matrix<float>&>(a));
    product.b = host_matrix(static_cast<const Matrix<float>&>(b));
    product.c = host_matrix(c);
    options.device_memory_limit = 32 << 10;
    options.plan.kernel = parse_kernel("naive");
  }
  Matrix<float> expected() const {
    PlanOptions naive;
    naive.kernel = parse_kernel("naive");
    return test::engine().multiply(a, b, naive);
  }
  Matrix<float> a, b, c;
  HostGemm product;
  StreamOptions options;
};

}  // namespace

TEST_CASE("streamed products of every kind are exact") {
  test::context();
  Engine engine(HeadlessContext::get_proc_address, unchecked());
  CHECK(run_cases<float>(engine, 40, 1, "naive") > 2);
  run_cases<float>(engine, 40, 2, "tiled:tile=8");
  run_cases<float>(engine, 60, 3, "register:tile_m=4,tile_n=4,step_k=2,workgroup=4,panels=1");
  if (engine.limits().image_buffer_bytes > 0)
    run_cases<float>(engine, 60, 4, "register:tile_m=4,tile_n=4,step_k=2,workgroup=4,panels=2");
  run_cases<half, half>(engine, 20, 5, "naive");
  run_cases<bfloat16>(engine, 20, 6, "register:tile_m=4,tile_n=4,step_k=2,workgroup=4,panels=1");
  run_cases<std::int8_t>(engine, 20, 7, "register:tile_m=4,tile_n=4,step_k=2,workgroup=4,panels=1");
  if (engine.limits().f64) run_cases<double>(engine, 20, 8, "tiled:tile=8");
  run_cases<std::complex<float>>(engine, 20, 9, "naive");
  engine.release();
}

TEST_CASE("a panel that is on the device already is not sent again") {
  Streamed x;
  x.options.device_memory_limit = 160 << 10;  // all of B, and some rows of A and C
  x.options.plan.kernel = parse_kernel("register:tile_m=4,tile_n=4,step_k=2,workgroup=4,panels=1");
  StreamReport report;
  multiply(test::engine(), x.product, x.options, &report);
  CHECK(x.c == x.expected());
  CHECK(report.plan.windows() == 1);
  CHECK(report.pieces > 1);
  CHECK(report.bytes_to_device == 4 * (x.a.size() + x.b.size()));
  CHECK(report.bytes_from_device == 4 * x.c.size());
  CHECK(report.plan.moved_bytes == static_cast<double>(report.bytes_to_device + report.bytes_from_device));
  CHECK(report.transfer_time.count() > 0);
  CHECK(report.compute_time.count() > 0);
  CHECK(report.total_time > report.compute_time + report.transfer_time);
}

TEST_CASE("a panel stays on the device for a last piece of fewer rows") {
  bool ragged = false;
  for (const std::int64_t limit : {150, 160, 170, 180, 190}) {
    Streamed x;
    x.options.device_memory_limit = limit << 10;
    x.options.plan.kernel = parse_kernel("register:tile_m=4,tile_n=4,step_k=2,workgroup=4,panels=1");
    StreamReport report;
    multiply(test::engine(), x.product, x.options, &report);
    const StreamPlan& plan = report.plan;
    if (plan.windows() > 1 || !plan.by_columns || plan.piece_n < plan.problem.n) continue;
    ragged = ragged || plan.problem.m % plan.piece_m != 0;
    CAPTURE(limit);
    CHECK(report.bytes_to_device == 4 * (x.a.size() + x.b.size()));
  }
  CHECK(ragged);
}

TEST_CASE("a piece of C larger than a storage block moves no more than the plan says") {
  Streamed x;
  x.options.device_memory_limit = 60 << 10;
  x.options.plan.kernel = parse_kernel("register:tile_m=4,tile_n=4,step_k=2,workgroup=4,panels=1");
  x.options.plan.limits = test::engine().limits();
  x.options.plan.limits->storage_block_bytes = 9000;
  StreamReport report;
  multiply(test::engine(), x.product, x.options, &report);
  CHECK(x.c == x.expected());
  const StreamPlan& plan = report.plan;
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
                             Shape{120, 150, 40, "register:tile_m=4,tile_n=4,step_k=2,workgroup=4,panels=1", 60000, 20000, rows},
                             {150, 120, 40, "register:tile_m=4,tile_n=4,step_k=2,workgroup=4,panels=1", 60000, 20000, columns},
                             // fewer rows than columns at the edge only
                             {4, 769, 300, "gemv:tile_m=8,tile_n=4,lanes_k=1,workgroup=8,panels=1", 300000, 0, rows},
                             {59, 181, 78, "gemv:tile_m=2,tile_n=2,panels=1", 30000, 0, rows},
                             // the parts of the workspace are padded in another way
                             {149, 368, 15, storage, 46615, 8192, rows},
                             {374, 73, 53, storage, 103143, 16384, columns},
                             {278, 335, 9, storage, 56586, 4096, columns}}) {
    if (!why_not({.m = shape.m, .n = shape.n, .k = shape.k}, parse_kernel(shape.kernel), test::engine().limits()).empty())
      continue;
    Matrix<float> a(shape.m, shape.k), b(shape.k, shape.n);
    for (std::int64_t i = 0; i < a.size(); ++i) a.data()[i] = static_cast<float>(i % 7 - 3);
    for (std::int64_t i = 0; i < b.size(); ++i) b.data()[i] = static_cast<float>(i % 5 - 2);
    std::vector<float> c(static_cast<std::size_t>(shape.m * shape.n));
    HostGemm product{.a = host_matrix(static_cast<const Matrix<float>&>(a)),
                     .b = host_matrix(static_cast<const Matrix<float>&>(b))};
    product.c = host_matrix(static_cast<void*>(c.data()), shape.m, shape.n, Type::f32, 0, shape.layout);
    StreamOptions options;
    options.device_memory_limit = shape.limit;
    options.plan.kernel = parse_kernel(shape.kernel);
    options.plan.limits = test::engine().limits();
    if (shape.block > 0) options.plan.limits->storage_block_bytes = shape.block;
    multiply(test::engine(), product, options);
    PlanOptions naive;
    naive.kernel = parse_kernel("naive");
    const Matrix<float> expected = test::engine().multiply(a, b, naive);
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < shape.m; ++i)
      for (std::int64_t j = 0; j < shape.n; ++j)
        wrong += c[static_cast<std::size_t>(shape.layout == rows ? i * shape.n + j : j * shape.m + i)] != expected(i, j);
    CAPTURE(shape.m);
    CAPTURE(std::string(shape.kernel));
    CHECK(wrong == 0);
  }
}

TEST_CASE("programs that only pieces at the edges run are made before the first piece") {
  test::context();
  std::vector<std::string> lines;
  EngineOptions engine_options;
  engine_options.program_cache = "";
  engine_options.tuning = "";
  engine_options.log = [&](std::string_view line) { lines.emplace_back(line); };
  Engine engine(HeadlessContext::get_proc_address, engine_options);
  const Matrix<float> a = random_integer_matrix(64, 96, 4, 1), b = random_integer_matrix(96, 62, 4, 2);
  Matrix<float> c(64, 62);
  const HostGemm product{.a = host_matrix(a), .b = host_matrix(b), .c = host_matrix(c)};
  StreamOptions options;
  options.device_memory_limit = 40000;
  options.plan.kernel = parse_kernel("blocked:block_m=16,block_n=16,block_k=8,tile_m=4,tile_n=4,step_k=2");
  const StreamPlan plan = stream_plan(engine, product, options);
  const std::size_t made = lines.size();
  CHECK(made == 2);  // pieces of 16 columns, read 16 bytes at a time, and one of 14
  StreamReport report;
  multiply(engine, product, options, &report);
  CHECK(lines.size() == made);
  CHECK(report.plan.window == plan.window);
  CHECK(c == multiply_serial(a, b));
  engine.release();
}

TEST_CASE("a limit that is too small names the least, which works") {
  Streamed x;
  x.options.device_memory_limit = 100;
  std::string message;
  try {
    multiply(test::engine(), x.product, x.options);
  } catch (const std::invalid_argument& error) {
    message = error.what();
  }
  CHECK(message.find("a limit of 100 bytes is too small for any piece; the least is ") != std::string::npos);
  const std::size_t last = message.rfind(' ');
  REQUIRE(last != std::string::npos);
  x.options.device_memory_limit = std::stoll(message.substr(last));
  CHECK(x.options.device_memory_limit < 10000);
  CHECK_NOTHROW(make_stream_plan(problem(x.product), test::engine().limits(), 0, x.options));
  --x.options.device_memory_limit;
  CHECK_THROWS_AS(make_stream_plan(problem(x.product), test::engine().limits(), 0, x.options), std::invalid_argument);
  x.options.device_memory_limit = -1;
  CHECK_THROWS_AS(multiply(test::engine(), x.product, x.options), std::invalid_argument);
}

TEST_CASE("pieces that are done stay as they are, and the others are told") {
  Streamed x;
  std::vector<Section> pieces;
  std::vector<double> shares;
  x.options.piece_done = [&](const Section& piece) { pieces.push_back(piece); };
  x.options.progress = [&](double share) { shares.push_back(share); };
  multiply(test::engine(), x.product, x.options);
  const Matrix<float> whole = x.c;
  REQUIRE(pieces.size() > 4);
  CHECK(std::is_sorted(shares.begin(), shares.end()));
  CHECK(shares.front() > 0);
  CHECK(shares.back() == 1);

  std::fill(x.c.elements().begin(), x.c.elements().end(), -1.f);
  x.options.done = {pieces[1], pieces[3]};
  std::vector<Section> rest;
  x.options.piece_done = [&](const Section& piece) { rest.push_back(piece); };
  multiply(test::engine(), x.product, x.options);
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

TEST_CASE("a lost context: without a factory DeviceLost; with one the product goes on where it was") {
  Streamed x;
  test::context();
  auto engine = std::make_unique<Engine>(test::counting_loader, unchecked());
  int pieces = 0;
  x.options.piece_done = [&](const Section&) {
    if (++pieces == 3) test::pretend_reset(guilty_context_reset);
  };
  CHECK_THROWS_AS(multiply(*engine, x.product, x.options), DeviceLost);
  CHECK(pieces == 3);
  test::pretend_reset(0);
  engine->abandon();

  pieces = 0;
  engine = std::make_unique<Engine>(test::counting_loader, unchecked());
  x.options.new_engine = [&]() -> Engine& {
    test::pretend_reset(0);
    engine->abandon();
    engine = std::make_unique<Engine>(test::counting_loader, unchecked());
    return *engine;
  };
  StreamReport report;
  multiply(*engine, x.product, x.options, &report);
  CHECK(report.contexts_lost == 1);
  CHECK(pieces == report.plan.pieces());  // none twice
  CHECK(x.c == x.expected());

  // A context that is lost again and again does not go on for ever.
  x.options.piece_done = {};
  int engines = 0;
  x.options.new_engine = [&]() -> Engine& {
    ++engines;
    engine->abandon();
    engine = std::make_unique<Engine>(test::counting_loader, unchecked());
    return *engine;
  };
  test::pretend_reset(guilty_context_reset);
  CHECK_THROWS_AS(multiply(*engine, x.product, x.options), DeviceLost);
  test::pretend_reset(0);
  CHECK(engines == 3);
  engine->release();
  for (const GLenum target :
       test::Enums{GL_COPY_READ_BUFFER, GL_COPY_WRITE_BUFFER})  // nothing is put back in a context that is lost
    test::gl_functions().BindBuffer(target, 0);
}

TEST_CASE("a driver without the memory: smaller pieces, and OutOfMemory when none is small enough") {
  Streamed x;
  test::context();
  Engine engine(test::counting_loader, unchecked());
  x.options.device_memory_limit = 1 << 20;
  test::limit_buffers(20000);
  StreamReport report;
  multiply(engine, x.product, x.options, &report);
  CHECK(report.out_of_memory > 0);
  CHECK(x.c == x.expected());
  test::limit_buffers(100);
  CHECK_THROWS_AS(multiply(engine, x.product, x.options), OutOfMemory);
  test::limit_buffers(std::int64_t{1} << 40);
  CHECK(test::engine().multiply({{2}}, {{3}})(0, 0) == 6);  // no OpenGL error is left, and nothing is broken
  engine.release();
}

TEST_CASE("what the matrices' functions throw ends a streamed product, and the engine lives on") {
  Streamed x;
  int reads = 0;
  const auto read = x.product.b.read;
  x.product.b.read = [&](const Section& section, void* to) {
    if (++reads == 5) throw std::runtime_error("the file is gone");
    read(section, to);
  };
  CHECK_THROWS_WITH(multiply(test::engine(), x.product, x.options), "the file is gone");
  x.product.b.read = read;
  multiply(test::engine(), x.product, x.options);
  CHECK(x.c == x.expected());

  // Of whatever type: it is not taken for the driver's.
  x.options.piece_done = [&](const Section&) { throw OutOfMemory("the disk is full", 1); };
  CHECK_THROWS_WITH_AS(multiply(test::engine(), x.product, x.options), "the disk is full", OutOfMemory);
  x.options.piece_done = {};

  HostGemm wrong = x.product;
  wrong.alpha = std::complex<double>(1, 1);
  CHECK_THROWS_AS(multiply(test::engine(), wrong, x.options), std::invalid_argument);

  x.product.c.write = {};
  CHECK_THROWS_WITH_AS(multiply(test::engine(), x.product, x.options), "multiply: C has no function to write it",
                       std::invalid_argument);
}

TEST_CASE("streaming plans move few bytes, within their limits") {
  Limits gpu = test::engine().limits();
  gpu.cpu = false;
  gpu.loop_iterations = 0;
  Limits cpu = gpu;
  cpu.cpu = true;
  for (const Limits& limits : {gpu, cpu})
    for (const auto& [m, n, k] : {std::array{2048, 2048, 2048}, {4096, 1000, 3000}, {300, 5000, 8000}, {8000, 40, 9000}}) {
      Problem problem{.m = m, .n = n, .k = k};
      for (const int part : {2, 4, 8, 16, 50}) {
        StreamOptions options;
        const std::int64_t all = 4 * (std::int64_t{m} * k + std::int64_t{k} * n + std::int64_t{m} * n);
        options.device_memory_limit = all / part;
        const StreamPlan plan = make_stream_plan(problem, limits, 0, options);
        CAPTURE(limits.cpu);
        CAPTURE(m);
        CAPTURE(n);
        CAPTURE(k);
        CAPTURE(part);
        CHECK(plan.device_bytes <= options.device_memory_limit);
        CHECK(plan.moved_bytes <= 1.5 * plan.bound_bytes);
        CHECK(plan.moved_bytes >= plan.bound_bytes * 0.999);
      }
      // Enough memory: everything moves once.
      const StreamPlan all = make_stream_plan(problem, limits, std::int64_t{1} << 30, {});
      CHECK(all.moved_bytes == all.bound_bytes);
    }
}
