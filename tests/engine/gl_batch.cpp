// Batches past a dispatch's limits, groups of products, programs ready and not, workspace, fences.
#include <algorithm>
#include <chrono>
#include <limits>
#include <set>

#include <fmt/core.h>

#include <glgemm/experimental.hpp>

#include "kernels/kernels.hpp"
#include "support/gemm_cases.hpp"
#include "support/gl_test.hpp"

using namespace glgemm;

namespace {

/// A batch of products. Each matrix holds all items of its operand, one below the other.
Gemm batch_of(std::int64_t count, const DeviceMatrix& a, const DeviceMatrix& b, const DeviceMatrix& c) {
  Gemm gemm{.a = a.view(), .b = b.view(), .c = c.view()};
  for (BufferView* const view : {&gemm.a, &gemm.b, &gemm.c}) view->rows /= count;
  const auto elements = [](const BufferView& view) { return view.rows * view.columns; };
  gemm.batch = {.count = count, .stride_a = elements(gemm.a), .stride_b = elements(gemm.b), .stride_c = elements(gemm.c)};
  return gemm;
}

/// An engine in the shared context whose lines for developers go to `lines`.
Engine telling_engine(std::vector<std::string>& lines, bool use_ready_programs) {
  EngineOptions options = test::engine_options();
  options.use_ready_programs = use_ready_programs;
  options.log = [&](std::string_view line) { lines.emplace_back(line); };
  return test::own_engine(options);
}

}  // namespace

TEST_CASE("more items than a dispatch has workgroups along z, with every kernel") {
  Engine& engine = test::engine();
  const std::int64_t count = 70001, m = 2, n = 3, k = 2;
  const Matrix<float> a = random_integer_matrix(count * m, k, 9, 1), b = random_integer_matrix(count * k, n, 9, 2);
  const DeviceMatrix device_a(engine, a), device_b(engine, b);
  Matrix<float> expected(count * m, n);
  for (std::int64_t z = 0; z < count; ++z)
    test::put(multiply_serial(test::part(a, z * m, 0, m, k), test::part(b, z * k, 0, k, n)), expected, z * m, 0);
  for (const Kernel& kernel : test::quick_kernels(limits_of(engine))) {
    CAPTURE(to_string(kernel));
    const DeviceMatrix c(engine, Matrix<float>(count * m, n));
    Report report;
    const Gemm gemm = batch_of(count, device_a, device_b, c);
    const PlanOptions options{.kernel = kernel, .split_k = 1};
    engine.gemm(gemm, options, &report);
    CHECK(c.download() == expected);
    const Plan ran = test::plan_that_ran(engine, problem_of(gemm), options, report);
    const auto stages = static_cast<std::int64_t>(ran.stages().size());
    CHECK(size(ran).dispatches == (kernels::product_family(kernel).packs_items() ? 1 : 2 * stages));
  }
}

TEST_CASE("a batch takes the small kernel by itself, one product does not") {
  Engine& engine = test::engine();
  const DeviceMatrix a(engine, 40000, 4), b(engine, 40000, 4), c(engine, 40000, 4);
  Gemm gemm = batch_of(10000, a, b, c);
  CHECK(name(make_plan(problem_of(gemm), limits_of(engine)).kernel) == "small");
  gemm.batch.count = 1;
  CHECK(name(make_plan(problem_of(gemm), limits_of(engine)).kernel) != "small");
}

TEST_CASE("a group of products of different shapes, all or none") {
  Engine& engine = test::engine();
  const DeviceMatrix a(engine, random_integer_matrix(10, 12, 9, 1)), b(engine, random_integer_matrix(12, 7, 9, 2));
  const DeviceMatrix c(engine, Matrix<float>(10, 7)), d(engine, Matrix<float>(10, 10));
  const Gemm first{.a = a.view(), .b = b.view(), .c = c.view()};
  const Gemm second{.op_b = Op::transpose, .a = c.view(), .b = c.view(), .c = d.view()};  // of the first one's result
  Gemm wrong = second;
  wrong.c.rows = 9;
  CHECK_THROWS_WITH_AS(engine.gemm(std::vector{first, wrong}), doctest::Contains("product 1 of 2"), std::invalid_argument);
  CHECK(c.download() == Matrix<float>(10, 7));
  engine.gemm(std::vector{first, second});
  const Matrix<float> expected = multiply_serial(a.download(), b.download());
  CHECK(c.download() == expected);
  CHECK(d.download() == multiply_serial(expected, transpose(expected)));
}

TEST_CASE("sums of windows of k are kept in float for 16-bit results, in the workspace that was asked for") {
  Engine& engine = test::engine();
  // 4096 + 0.25 * 8192: rounding the sum to half after each window would lose the quarters.
  const std::int64_t k = 200000;
  Matrix<half> ones(1, k), quarters(k, 1);
  for (std::int64_t p = 0; p < k; ++p) {
    ones(0, p) = half(p == 0 ? 4096.0f : 0.25f);
    quarters(p, 0) = half(p == 0 || p % 2 ? 1.0f / 8 : -1.0f / 8);
  }
  const DeviceMatrix a(engine, ones), b(engine, quarters), c(engine, 1, 1, Type::f16);
  const Gemm gemm{.a = a.view(), .b = b.view(), .c = c.view()};
  double expected = 0;
  for (std::int64_t p = 0; p < k; ++p) expected += double(float(ones(0, p))) * double(float(quarters(p, 0)));
  PlanOptions options = test::with_short_loops(engine, test::with_kernel("naive"), 1000);  // many windows on every driver
  CHECK(engine.workspace_bytes(gemm, options) == 4);
  const auto check = [&](const Gemm& product, const PlanOptions& planned) {
    engine.gemm(product, planned);
    CHECK(float(c.download<half>()(0, 0)) == float(half(static_cast<float>(expected))));
  };
  check(gemm, options);
  const DeviceMatrix space(engine, 1, 16);
  Gemm with_space = gemm;
  with_space.workspace = Workspace{space.view().buffer, 16, 4};
  check(with_space, options);
  with_space.workspace = Workspace{space.view().buffer, 16, 3};
  CHECK_THROWS_WITH_AS(engine.gemm(with_space, options), "gemm: the workspace has 3 bytes, and 4 are needed",
                       std::invalid_argument);
  options.workspace_bytes = 3;
  CHECK_THROWS_AS(engine.gemm(gemm, options), Unsupported);

  // Sums are float with the kernel that the planner takes by itself too, and with parts of k.
  for (const std::int64_t parts : {0, 1, 7}) check(gemm, {.split_k = parts, .experimental = options.experimental});
}

TEST_CASE("a workspace limit cuts C into pieces that fit it") {
  const Limits limits{.loop_iterations = 50};
  const PlanOptions options{.kernel = parse_kernel("naive"), .workspace_bytes = 1000};
  Problem problem = of_type({.m = 100, .n = 90, .k = 400}, Type::f16, Type::f16);
  const Plan plan = make_plan(problem, limits, options);
  CHECK(plan.workspace.size_bytes <= 1000);
  CHECK(plan.workspace.size_bytes == plan.piece_m * plan.piece_n * 4);
  problem.c.format.type = Type::f32;
  CHECK(make_plan(problem, limits, options).workspace.size_bytes == 0);
}

TEST_CASE("prepare compiles, and a ready program may step in for one that is not") {
  std::vector<std::string> lines;
  Engine engine = telling_engine(lines, true);
  const Problem problem{.m = 40, .n = 40, .k = 40};
  prepare(engine, std::span(&problem, 1), test::with_kernel("naive"));
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].starts_with("compiled naive:"));
  const test::DeviceProduct product(engine, 40, 40, 40);
  Report report;
  engine.gemm(product.gemm, {}, &report);
  const bool background = name(parse_kernel(report.kernel)) != "naive";  // it may have been compiled in the background already
  if (!background) CHECK(lines.size() == 1);
  prepare(engine, std::span(&problem, 1));
  engine.gemm(product.gemm, {}, &report);
  const Plan best = make_plan(engine, problem);
  CHECK(report.kernel == to_string(best.kernel));
  CHECK(product.right());
  std::set<ProgramKey> programs;
  for (const Stage stage : best.stages()) programs.insert(best.program(stage));
  programs.insert(make_plan(engine, problem, test::with_kernel("naive")).program(Stage::multiply));
  CHECK(lines.size() == programs.size());  // nothing was compiled twice
}

TEST_CASE("prepare takes products, whose buffers need not exist") {
  std::vector<std::string> lines;
  Engine engine = telling_engine(lines, false);
  Gemm products[2] = {{.a = {.rows = 7, .columns = 9}, .b = {.rows = 9, .columns = 11}, .c = {.rows = 7, .columns = 11}}, {}};
  products[0].epilogue = {.bias = BiasView::for_each_row(0), .activation = Activation::clamp(-3, 4)};
  products[1] = products[0];
  products[1].c.columns = 12;
  CHECK_THROWS_WITH_AS(engine.prepare(products), "product 1 of 2: gemm: op(A) op(B) is 7x11 and C is 7x12",
                       std::invalid_argument);
  CHECK(lines.empty());
  engine.prepare(std::span(products, 1));
  const std::size_t compiled = lines.size();
  CHECK(compiled > 0);
  const DeviceMatrix a(engine, Matrix<float>(7, 9)), b(engine, Matrix<float>(9, 11)), c(engine, 7, 11), bias(engine, 1, 7);
  Gemm product{.a = a.view(), .b = b.view(), .c = c.view()};
  product.epilogue = {.bias = BiasView::for_each_row(bias.view().buffer), .activation = Activation::clamp(-3, 4)};
  engine.gemm(product);
  CHECK(lines.size() == compiled);
}

TEST_CASE("a fence tells when the products before it are done") {
  Engine& engine = test::engine();
  const DeviceMatrix a(engine, random_matrix(100, 100, 1)), c(engine, 100, 100);
  engine.gemm({.a = a.view(), .b = a.view(), .c = c.view()});
  Fence fence = engine.fence();
  CHECK(fence.wait(std::chrono::seconds(60)));
  CHECK(fence.poll());
  fence = engine.fence();
  CHECK(fence.wait());
}

TEST_CASE("offsets of items in any order and scalars of their own; items that lie too far apart for one window") {
  Engine& engine = test::engine();
  const std::int64_t m = 5, n = 4, count = 4;
  const DeviceMatrix a(engine, random_integer_matrix(40, 40, 5, 1)), b(engine, random_integer_matrix(40, 40, 5, 2));
  const Matrix<float> before = random_integer_matrix(40, 40, 5, 3);
  const std::vector<std::int64_t> offsets_a{900, 0, 900, 333}, offsets_b{7, 1000, 7, 0}, offsets_c{1200, 100, 0, 600};
  const std::vector<Scalar> alphas{1, 0, -2, 3}, betas{0, 1, 2, 0};
  const Matrix<float> host_a = a.download(), host_b = b.download();
  for (const Kernel& kernel : test::quick_kernels(limits_of(engine)))
    for (const std::int64_t block : {std::int64_t{1} << 20, std::int64_t{2000}}) {  // one window for all, and one for each
      CAPTURE(to_string(kernel));
      const std::int64_t k = std::min<std::int64_t>(3, kernels::product_family(kernel).max_sizes(kernel).k);
      const DeviceMatrix c(engine, before);
      Gemm gemm{.a = {.buffer = a.view().buffer, .rows = m, .columns = k, .ld = 40},
                .b = {.buffer = b.view().buffer, .rows = k, .columns = n, .ld = 40},
                .c = {.buffer = c.view().buffer, .rows = m, .columns = n, .ld = 40}};
      gemm.batch = {.count = count,
                    .offsets_a = offsets_a,
                    .offsets_b = offsets_b,
                    .offsets_c = offsets_c,
                    .alphas = alphas,
                    .betas = betas};
      PlanOptions options{.kernel = kernel, .experimental = ExperimentalPlanOptions{.limits = limits_of(engine)}};
      options.experimental.edit().limits->storage_block_bytes = block;
      Report report;
      engine.gemm(gemm, options, &report);
      CHECK(test::plan_that_ran(engine, problem_of(gemm), options, report).items_in_buffer == (block > 2000));
      Matrix<float> expected = before;
      for (std::size_t z = 0; z < 4; ++z)
        for (std::int64_t i = 0; i < m; ++i)
          for (std::int64_t j = 0; j < n; ++j) {
            double sum = 0;
            for (std::int64_t p = 0; p < k; ++p)
              sum += double(host_a.data()[offsets_a[z] + i * 40 + p]) * host_b.data()[offsets_b[z] + p * 40 + j];
            float& x = expected.data()[offsets_c[z] + i * 40 + j];
            x = static_cast<float>(alphas[z].value.real() * sum + betas[z].value.real() * x);
          }
      CHECK(c.download() == expected);
    }
}

TEST_CASE("a batch of one item that lies at an offset") {
  Engine& engine = test::engine();
  const Matrix<float> a = random_integer_matrix(6, 2, 5, 1), b = random_integer_matrix(2, 4, 5, 2), before(6, 4);
  const DeviceMatrix device_a(engine, a), device_b(engine, b);
  const std::int64_t of_a[] = {6}, of_c[] = {12};
  for (const Kernel& kernel : test::quick_kernels(limits_of(engine))) {
    CAPTURE(to_string(kernel));
    const DeviceMatrix c(engine, before);
    Gemm gemm{.a = device_a.view(0, 0, 3, 2), .b = device_b.view(), .c = c.view(0, 0, 3, 4)};
    gemm.batch.offsets_a = of_a;
    gemm.batch.offsets_c = of_c;
    engine.gemm(gemm, {.kernel = kernel});
    CHECK_RESULT(test::part(c.download(), 3, 0, 3, 4) == multiply_serial(test::part(a, 3, 0, 3, 2), b));
  }
}

TEST_CASE("ratio: many products of 4 x 4 in one batch, over one call each") {
  Engine& engine = test::engine();
  constexpr std::int64_t count = 10000, size = 4;
  const Matrix<float> host_a = random_integer_matrix(count * size, size, 9, 1),
                      host_b = random_integer_matrix(count * size, size, 9, 2);
  const DeviceMatrix a(engine, host_a), b(engine, host_b), together(engine, count * size, size),
      apart(engine, count * size, size);
  const Gemm batch = batch_of(count, a, b, together);
  const auto seconds = [&](const auto& call) {
    const auto begin = std::chrono::steady_clock::now();
    call();
    engine.fence().wait();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  const auto batched = [&] { engine.gemm(batch); };
  const auto one_by_one = [&] {
    Gemm one = batch_of(count, a, b, apart);
    one.batch = {};
    for (std::int64_t z = 0; z < count; ++z) {
      one.a.offset_bytes = one.b.offset_bytes = one.c.offset_bytes = z * size * size * 4;
      engine.gemm(one);
    }
  };
  batched();
  one_by_one();
  std::vector<double> of, over;
  for (int i = 0; i < 5; ++i) {
    over.push_back(seconds(batched));
    of.push_back(seconds(one_by_one));
  }
  const auto median = [](std::vector<double> values) {
    std::nth_element(values.begin(), values.begin() + 2, values.end());
    return values[2];
  };
  const double ratio = median(of) / median(over);
  MESSAGE(fmt::format("4 x 4 products, batched, over one call each: {:.3g} ({:.3g} us over {:.3g} us for each)", ratio,
                      median(of) / count * 1e6, median(over) / count * 1e6));
  CHECK_TIME(ratio > 10);
  CHECK(together.download() == apart.download());
}

TEST_CASE("an item whose alpha is 0 takes nothing from A, with every kernel") {
  constexpr std::int64_t n = 64, k = 4;  // whole blocks of every kernel
  Engine& engine = test::engine();
  Matrix<float> a = random_integer_matrix(2 * n, k, 5, 1);  // one item below the other
  std::fill_n(a.data(), n * k, std::numeric_limits<float>::quiet_NaN());
  const Matrix<float> b = random_integer_matrix(k, n, 5, 2), product = multiply_serial(a, b);
  const DeviceMatrix on_device(engine, a), on_device_b(engine, b), c(engine, 2 * n, n);
  const std::vector<Scalar> alphas{0, 1};
  Limits small = limits_of(engine);
  small.storage_block_bytes = 5 * n * n;  // C of one item, and not of two: each is a piece
  for (const char* kernel :
       {"outer", "small", "gemv", "register", "blocked:block_m=32,block_n=32,tile_m=4,tile_n=4", "tiled:tile=8", "naive"})
    for (const bool apart : {false, true}) {
      CAPTURE(std::string(kernel));
      CAPTURE(apart);
      PlanOptions options = test::with_kernel(kernel);
      if (apart) options.experimental.edit().limits = small;
      Report report;
      const Gemm gemm{.a = on_device.view(0, 0, n, k),
                      .b = on_device_b.view(),
                      .c = c.view(0, 0, n, n),
                      .batch = {.count = 2, .stride_a = n * k, .stride_b = 0, .stride_c = n * n, .alphas = alphas}};
      engine.gemm(gemm, options, &report);
      CHECK(test::plan_that_ran(engine, problem_of(gemm), options, report).items_in_buffer == !apart);
      const Matrix<float> found = c.download();
      CHECK_RESULT(std::all_of(found.data(), found.data() + n * n, [](float x) { return x == 0; }));
      CHECK_RESULT(std::equal(found.data() + n * n, found.data() + 2 * n * n, product.data() + n * n));
    }
}
