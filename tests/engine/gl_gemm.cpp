// Products on a device: every kernel, forced by name, against exact integers and error bounds.
#include <cmath>
#include <complex>

#include <glgemm/experimental.hpp>

#include "kernels/kernels.hpp"
#include "support/gemm_cases.hpp"
#include "support/gl_test.hpp"
#include "support/test_part.hpp"

using namespace glgemm;

namespace {

/// The kernels of every family, of which tests run the long tier's sample; of those the part that this run takes.
std::vector<std::string> all_kernels() {
  std::vector<std::string> result;
  for (const Kernel& kernel : test::in_part(test::all_kernels(limits_of(test::engine())))) result.push_back(to_string(kernel));
  return result;
}

/// Multiplies with the kernel, and proves that it is the one that ran.
Matrix<float> multiply(const Matrix<float>& a, const Matrix<float>& b, const std::string& kernel) {
  const PlanOptions options = test::with_kernel(kernel);
  Report report;
  Matrix<float> c = test::engine().multiply(a, b, options, &report);
  const Problem problem{.m = a.rows(), .n = b.columns(), .k = a.columns()};
  const Plan ran = test::plan_that_ran(test::engine(), problem, options, report);
  REQUIRE(ran.kernel == options.kernel);
  CHECK(report.dispatches >= size(ran).dispatches);  // more where one might take too long
  return c;
}

void check(const Matrix<float>& a, const Matrix<float>& b, const std::string& kernel) {
  const Check result = check_full(a, b, multiply(a, b, kernel));
  CHECK_MESSAGE(result.passed, kernel, ", ", a.rows(), "x", b.columns(), "x", a.columns(), ": ", result.summary);
}

}  // namespace

TEST_CASE("the published worked examples") {
  const Matrix<float> a{{1, 4}, {2, 5}, {3, 6}}, b{{7, 8, 9}, {10, 11, 12}};
  const Matrix<float> square{{1, 2, 3, 4}, {5, 6, 7, 8}, {1, 2, 3, 4}, {5, 6, 7, 8}};
  for (const std::string& kernel : all_kernels()) {
    const Kernel forced = parse_kernel(kernel);
    const std::int64_t max_k = kernels::product_family(forced).max_sizes(forced).k;
    CAPTURE(std::string(kernel));
    if (max_k < 4) CHECK_THROWS_AS(multiply(square, square, kernel), Unsupported);
    if (max_k < 2) CHECK_THROWS_AS(multiply(a, b, kernel), Unsupported);
    if (max_k >= 2) CHECK(multiply(a, b, kernel) == Matrix<float>{{47, 52, 57}, {64, 71, 78}, {81, 90, 99}});
    if (max_k >= 4) CHECK(multiply(square, square, kernel) == multiply_serial(square, square));
  }
  CHECK(multiply(square, square, "tiled:tile=2") ==
        Matrix<float>{{34, 44, 54, 64}, {82, 108, 134, 160}, {34, 44, 54, 64}, {82, 108, 134, 160}});
}

TEST_CASE("every kernel at sizes around its edges, exact and within the bound") {
  const std::int64_t sizes[] = {0, 1, 2, 3, 31, 32, 33, 63, 64, 65, 97, 257};
  std::uint64_t seed = 1;
  for (const std::string& kernel : all_kernels()) {
    for (std::size_t i = 0; i < 12; ++i)
      for (const std::size_t step : {1u, 4u, 7u}) {
        const std::int64_t m = sizes[i], n = sizes[(i + step) % 12], k = sizes[(i * 5 + step * 3) % 12];
        ++seed;
        const Problem problem{.m = m, .n = n, .k = k};
        if (!why_not(problem, parse_kernel(kernel), limits_of(test::engine())).empty()) {  // says so
          CHECK_THROWS_AS(multiply(Matrix<float>(m, k), Matrix<float>(k, n), kernel), Unsupported);
          continue;
        }
        const Matrix<float> a = random_integer_matrix(m, k, 9, seed), b = random_integer_matrix(k, n, 9, seed + 1000);
        REQUIRE(is_exact_problem(a, b));
        check(a, b, kernel);
        check(random_matrix(m, k, seed), random_matrix(k, n, seed + 1000), kernel);
      }
  }
}

TEST_CASE("k = 0 gives zeros, and no rows or columns give an empty matrix") {
  Engine& engine = test::engine();
  CHECK(engine.multiply(Matrix<float>(3, 0), Matrix<float>(0, 2)) == Matrix<float>(3, 2));
  CHECK(engine.multiply(Matrix<half>{{half(1.5f), half(2)}}, Matrix<float>{{3}, {-1}}) == Matrix<float>{{2.5f}});
  CHECK(engine.multiply(Matrix<std::int8_t>{{-3, 2}}, Matrix<std::uint8_t>{{200}, {255}}) == Matrix<std::int32_t>{{-90}});
  CHECK(engine.multiply(Matrix<float>(0, 5), Matrix<float>(5, 2)) == Matrix<float>(0, 2));
  CHECK(engine.multiply(Matrix<float>(3, 5), Matrix<float>(5, 0)) == Matrix<float>(3, 0));
}

TEST_CASE("k past what a driver's loops survive") {
  const Matrix<float> a = random_integer_matrix(8, 131072, 8, 3), b = random_integer_matrix(131072, 8, 8, 4);
  for (const char* kernel : {"tiled:tile=8", "naive", "gemv:tile_m=1,tile_n=8", "register:tile_m=4,tile_n=4,panels=0",
                             "register:tile_m=4,tile_n=4,panels=1"})
    check(a, b, kernel);
}

TEST_CASE("matrices past a storage block") {
  const std::int64_t block = limits_of(test::engine()).storage_block_bytes;
  const std::int64_t elements =
      std::min<std::int64_t>(block, 160 << 20) / 4 + 1'000'000;  // larger where the driver's block is small
  std::size_t turn = 0;
  const auto check_large = [&](std::int64_t m, std::int64_t n, std::int64_t k, const char* kernel) {
    if (!test::part().has(turn++)) return;
    const Matrix<float> a = random_integer_matrix(m, k, 3, 5), b = random_integer_matrix(k, n, 3, 6);
    const Check result = check_probe(a, b, multiply(a, b, kernel));
    CHECK_MESSAGE(result.passed, std::string(kernel), ": ", result.summary);
  };
  check_large(elements / 1000, 3, 1000, "naive");
  check_large(elements / 1000, 3, 1000, "tiled:tile=4");
  check_large(3, elements / 1000, 1000, "naive");
  check_large(elements / 6000, 6000, 2, "naive");
  check_large(3, elements / 1000, 1000, "gemv:tile_m=4,tile_n=4");
  check_large(elements / 1000, 3, 1000, "register:tile_m=8,tile_n=4,workgroup=4,panels=1");
}

TEST_CASE("limits made small on a real driver: many pieces, many slices") {
  Engine& engine = test::engine();
  const Matrix<float> a = random_integer_matrix(70, 90, 9, 1), b = random_integer_matrix(90, 130, 9, 2);
  for (const char* kernel : {"tiled:tile=8", "naive"}) {
    const PlanOptions options{.kernel = parse_kernel(kernel),
                              .experimental = ExperimentalPlanOptions{.slice_columns = 2, .slice_rows = 1}};
    Report report;
    const Check result = check_full(a, b, engine.multiply(a, b, options, &report));
    CHECK_MESSAGE(result.passed, result.summary);
    CHECK(size(test::plan_that_ran(engine, {.m = 70, .n = 130, .k = 90}, options, report)).dispatches == 9 * 9);
    CHECK(report.dispatches >= 9 * 9);  // more where a slice took long on a busy machine
  }
}

TEST_CASE("A and B as images, where a driver splits loads from storage buffers, give the same bits however they lie") {
  Engine& engine = test::engine();
  PlanOptions options = test::with_kernel("blocked:block_m=64,block_n=16,block_k=8,tile_m=8,tile_n=4,step_k=4");
  const Matrix<float> a = random_integer_matrix(4096, 68, 9, 1),
                      b = random_integer_matrix(68, 20, 9, 2);  // A has more than a MiB
  for (const Op op_a : {Op::none, Op::transpose})
    for (const Op op_b : {Op::none, Op::transpose}) {
      CAPTURE(op_a == Op::none);
      CAPTURE(op_b == Op::none);
      const DeviceMatrix stored_a(engine, apply_op(op_a, a)), stored_b(engine, apply_op(op_b, b));
      std::vector<Matrix<float>> results;
      for (const bool splits : {false, true}) {
        options.experimental.edit().limits = limits_of(engine);
        options.experimental.edit().limits->splits_storage_loads = splits;
        const DeviceMatrix c(engine, a.rows(), b.columns());
        const Gemm product{.op_a = op_a, .op_b = op_b, .a = stored_a.view(), .b = stored_b.view(), .c = c.view()};
        CHECK(make_plan(problem_of(product), limits_of(engine), options).vector_reads ==
              (splits && limits_of(engine).image_buffer_bytes > 0 ? VectorReads::image : VectorReads::storage));
        engine.gemm(product, options);
        results.push_back(c.download());
      }
      CHECK(results[0] == results[1]);
      CHECK(check_full(a, b, results[1]).passed);
    }
}

TEST_CASE_TEMPLATE("gemv reads A and the columns of B by vectors where both lie along k, on a CPU from images", T, float, half,
                   std::int8_t, double, std::complex<float>) {
  if (!test::has_type(type_of<T>())) return;
  Engine& engine = test::engine();
  const bool has_images = limits_of(engine).cpu && limits_of(engine).image_buffer_bytes > 0;
  auto turn = 16 * static_cast<std::size_t>(type_of<T>());
  for (const std::int64_t k : {208, 209})
    for (const Op op_b : {Op::none, Op::conjugate_transpose})
      for (const char* kernel :
           {"gemv:tile_m=2,tile_n=2,lanes_k=1", "gemv:tile_m=8,tile_n=1,lanes_k=2", "gemv:tile_m=4,tile_n=4,lanes_k=4",
            "gemv:tile_m=2,tile_n=4,lanes_k=4,workgroup=32,shared_b=1", "gemv:tile_m=4,tile_n=1,lanes_k=4,shared_b=1"}) {
        if (!test::part().has(turn++)) continue;
        const std::int64_t m = kernels::min_image_bytes / (k * static_cast<std::int64_t>(sizeof(T))) + 5, n = 3;
        CAPTURE(k);
        CAPTURE(std::string(kernel));
        CAPTURE(op_b == Op::none);
        const Matrix<T> a = random_integer_matrix<T>(m, k, 3, 1);
        Matrix<T> b = random_integer_matrix<T>(k, n, 3, 2);
        if constexpr (is_complex(type_of<T>()))
          for (std::int64_t p = 0; p < k; ++p) b(p, p % n) += T(0, static_cast<float>(p % 5 - 2));
        const DeviceMatrix stored_a(engine, a), stored_b(engine, apply_op(op_b, b)), c(engine, m, n, type_of<accumulator_t<T>>());
        Report report;
        const Gemm gemm{.op_b = op_b, .a = stored_a.view(), .b = stored_b.view(), .c = c.view()};
        engine.gemm(gemm, test::with_kernel(kernel, 2), &report);
        const Plan ran = test::plan_that_ran(engine, problem_of(gemm), test::with_kernel(kernel, 2), report);
        // Several columns are shared however B lies.
        const bool shares = parameter(ran.kernel, "shared_b") == 1 && parameter(ran.kernel, "tile_n") > 1;
        CHECK(ran.program().b_along_k == (k == 208 && op_b != Op::none && !shares));
        if (has_images && k == 208) CHECK(ran.vector_reads == VectorReads::image);
        CHECK(ran.parts == 2);
        const Check check = check_full(a, b, c.template download<accumulator_t<T>>());
        CHECK(check.method == "exact");
        CHECK_MESSAGE(check.passed, check.summary);
      }
}

TEST_CASE_TEMPLATE("elements of 8 and 16 bits are read a vector at a time, however A and B lie", T, half, bfloat16, float8_e4m3fn,
                   float8_e5m2, std::int8_t) {
  Engine& engine = test::engine();
  const PlanOptions options = test::with_kernel("blocked:block_m=16,block_n=16,block_k=8,tile_m=4,tile_n=4,step_k=4");
  const Matrix<T> a = random_integer_matrix<T>(48, 80, 3, 1), b = random_integer_matrix<T>(80, 32, 3, 2);
  auto turn = 4 * static_cast<std::size_t>(type_of<T>());
  for (const Op op_a : {Op::none, Op::transpose})
    for (const Op op_b : {Op::none, Op::transpose}) {
      if (!test::part().has(turn++)) continue;
      CAPTURE(op_a == Op::none);
      CAPTURE(op_b == Op::none);
      const DeviceMatrix stored_a(engine, apply_op(op_a, a)), stored_b(engine, apply_op(op_b, b)),
          c(engine, a.rows(), b.columns(), type_of<accumulator_t<T>>());
      const Gemm product{.op_a = op_a, .op_b = op_b, .a = stored_a.view(), .b = stored_b.view(), .c = c.view()};
      CHECK(make_plan(problem_of(product), limits_of(engine), options).vector_reads == VectorReads::storage);
      engine.gemm(product, options);
      const Check check = check_full(a, b, c.template download<accumulator_t<T>>());
      CHECK(check.method == "exact");
      CHECK_MESSAGE(check.passed, check.summary);
    }
}

TEST_CASE("NaN and infinities arrive where they belong") {
  Matrix<float> a = random_matrix(40, 50, 1), b = random_matrix(50, 45, 2);
  a(7, 3) = std::numeric_limits<float>::quiet_NaN();
  b(4, 9) = std::numeric_limits<float>::infinity();
  for (const char* kernel : {"tiled:tile=8", "naive", "gemv:tile_m=4,tile_n=4", "register:tile_m=8,tile_n=4,panels=1"}) {
    const Matrix<float> c = multiply(a, b, kernel);
    for (std::int64_t j = 0; j < 45; ++j) CHECK(std::isnan(c(7, j)));
    for (std::int64_t i = 0; i < 40; ++i)
      if (i != 7) CHECK(std::isinf(c(i, 9)));
    CHECK(std::isfinite(c(6, 8)));
  }
}

TEST_CASE("interleaved blocks of one buffer are apart, shared elements are not") {
  Engine& engine = test::engine();
  const DeviceMatrix memory(engine, random_matrix(6, 12, 1));
  const auto block = [&](std::int64_t column, std::int64_t columns) {
    return BufferView{memory.view().buffer, 4, columns, 12, column * 4, Layout::row_major};
  };
  CHECK_NOTHROW(engine.gemm({.a = block(0, 4), .b = block(4, 4), .c = block(8, 4)}));
  CHECK_THROWS_AS(engine.gemm({.a = block(0, 4), .b = block(4, 4), .c = block(7, 4)}), std::invalid_argument);
  CHECK_THROWS_AS(engine.gemm({.a = block(8, 4), .b = block(4, 4), .c = block(5, 4)}), std::invalid_argument);
  CHECK_NOTHROW(engine.gemm({.a = block(4, 4), .b = block(4, 4), .c = block(0, 4)}));
  // Lines of different lengths and distances: C's only row lies in the gap of A, then one element further.
  BufferView a{memory.view().buffer, 5, 1, 5, 0, Layout::row_major}, b{memory.view().buffer, 1, 4, 4, 4 * 60, Layout::row_major};
  BufferView c{memory.view().buffer, 5, 4, 5, 4 * 1, Layout::row_major};
  CHECK_NOTHROW(engine.gemm({.a = a, .b = b, .c = c}));
  c.offset_bytes = 4 * 2;
  CHECK_THROWS_AS(engine.gemm({.a = a, .b = b, .c = c}), std::invalid_argument);
  // Items of a batch whose C lie among each other: the second lies beside the first, the third on its second row.
  const DeviceMatrix one(engine, random_matrix(2, 2, 1)), all(engine, 1, 12);
  Gemm items{.a = one.view(), .b = one.view(), .c = {.buffer = all.view().buffer, .rows = 2, .columns = 2, .ld = 4}};
  items.batch = {.count = 2, .stride_a = 0, .stride_b = 0, .stride_c = 2};
  CHECK_NOTHROW(engine.gemm(items));
  items.batch.count = 3;
  CHECK_THROWS_WITH_AS(engine.gemm(items), doctest::Contains("items of the batch overlap in C"), std::invalid_argument);
}

TEST_CASE("a changed shader is what runs, and a broken one is a GlError with the driver's log") {
  const auto replace = [](std::string source, const std::string& by) {
    const std::size_t at = source.rfind("finish(z, row, column, sum)");
    REQUIRE(at != std::string::npos);
    return source.replace(at, 27, by);
  };
  EngineOptions options = test::unchecked_options();
  options.experimental.edit().rewrite_source = [&](const ProgramKey&, std::string source) {
    return replace(std::move(source), "finish(z, row, column, sum + 1.0)");
  };
  const PlanOptions naive = test::with_kernel("naive");
  Engine changed = test::own_engine(options);
  CHECK(changed.multiply(Matrix<float>{{2}}, Matrix<float>{{3}}, naive) == Matrix<float>{{7}});
  changed.release();
  CHECK_THROWS_AS(changed.multiply(Matrix<float>{{2}}, Matrix<float>{{3}}), std::invalid_argument);

  std::string text;
  options.experimental.edit().rewrite_source = [&](const ProgramKey&, std::string source) {
    return text = replace(std::move(source), "finish(alphabet)");
  };
  Engine broken = test::own_engine(options);
  try {
    broken.multiply(Matrix<float>{{2}}, Matrix<float>{{3}}, naive);
    FAIL("compiled");
  } catch (const GlError& error) {
    // The driver's log names the .comp file's own line, which the last #line before it and the lines since then tell.
    const std::size_t at = text.find("alphabet"), directive = text.rfind("#line ", at), after = text.find('\n', directive) + 1;
    const auto line = std::stoi(text.substr(directive + 6)) + std::count(text.begin() + static_cast<std::ptrdiff_t>(after),
                                                                         text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    const std::string number = std::to_string(line), log = error.what();  // Mesa has 0:9, NVIDIA's driver 0(9)
    CHECK((contains(log, "0:" + number) || contains(log, "0(" + number + ")")));
    CHECK(contains(log, "alphabet"));
  }
}
