// Precision: the bits that are promised, and the bound that is kept, whatever the kernel, the pieces and the order.
//
// Elements are such that nothing is subnormal on the way: random_matrix gives multiples of 2^-24, and elements of f16 are floats.
#include <cmath>
#include <complex>
#include <glgemm/experimental.hpp>
#include <glgemm/streaming.hpp>
#include <random>

#include "support/gemm_cases.hpp"
#include "support/gl_test.hpp"

using namespace glgemm;
using test::same_bits;

namespace {

const std::string kernels[] = {"naive", "tiled:tile=8", "register:tile_m=4,tile_n=4,panels=2",
                               "blocked:block_m=16,block_n=16,block_k=8,tile_m=4,tile_n=4,step_k=2"};

/// C = alpha op(A) op(B) + beta C0 on the engine.
template <class T, class C>
Matrix<C> run(Engine& engine, const Matrix<T>& a, const Matrix<T>& b, const Terms<T, C>& terms, const PlanOptions& options) {
  const DeviceMatrix da(engine, a), db(engine, b);
  const std::int64_t m = terms.op_a == Op::none ? a.rows() : a.columns(), n = terms.op_b == Op::none ? b.columns() : b.rows();
  DeviceMatrix dc(engine, m, n, type_of<C>());
  if (terms.c0) dc.upload(*terms.c0);
  engine.gemm({.op_a = terms.op_a,
               .op_b = terms.op_b,
               .alpha = terms.alpha,
               .a = da.view(),
               .b = db.view(),
               .beta = terms.beta,
               .c = dc.view()},
              options);
  return dc.template download<C>();
}

/// Options of all kinds that must not change a bit.
PlanOptions any_options(std::mt19937& random, const Limits& limits) {
  PlanOptions options;
  options.precision = Precision::reproducible;
  options.split_k = static_cast<std::int64_t>(random() % 4);
  options.experimental.edit().slice_columns = static_cast<std::int64_t>(random() % 3);
  options.experimental.edit().slice_rows = static_cast<std::int64_t>(random() % 3);
  if (random() % 2 == 0) options.experimental.edit().transposed = random() % 2 == 0;
  if (random() % 2 == 0) options.workspace_bytes = 500 << 10;
  if (random() % 2 == 0) {
    options.experimental.edit().limits = limits;
    options.experimental.edit().limits->storage_block_bytes = 400 << 10;
  }
  return options;
}

template <class T, class C>
void check_bits(unsigned seed) {
  Engine& engine = test::engine();
  std::mt19937 random(seed);
  const std::int64_t sizes_k[] = {1, 37, 511, 512, 513, 1300};
  for (const std::string& name : kernels) {
    const Kernel kernel = test::kernel_here(name);
    const std::int64_t m = 1 + static_cast<std::int64_t>(random() % 40), n = 1 + static_cast<std::int64_t>(random() % 40);
    const std::int64_t k = sizes_k[random() % 6];
    Terms<T, C> terms;
    terms.op_a = random() % 2 == 0 ? Op::none : Op::conjugate_transpose;
    terms.op_b = random() % 2 == 0 ? Op::none : Op::transpose;
    const auto a = apply_op(terms.op_a, random_matrix<T>(m, k, seed + 1)),
               b = apply_op(terms.op_b, random_matrix<T>(k, n, seed + 2));
    const auto c0 = random_matrix<C>(m, n, seed + 3);
    using A = accumulator_t<T>;
    if (random() % 2 == 0) terms.alpha = A(0.7f);
    if (random() % 2 == 0) {
      terms.beta = A(-1.3f);
      terms.c0 = &c0;
    }
    const Matrix<C> expected = canonical_product(a, b, terms);
    for (int i = 0; i < 3; ++i) {
      PlanOptions options = any_options(random, limits_of(engine));
      options.kernel = kernel;
      INFO(to_string(type_of<T>()), " ", name, ", ", m, "x", n, "x", k, ", split_k ", options.split_k);
      CHECK_RESULT(same_bits(run(engine, a, b, terms, options), expected));
    }
  }
}

/// Sums that grow, which is where roundings add up most; or that grow and then go back to nearly nothing.
Matrix<float> growing(std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  Matrix<float> x = random_matrix<float>(rows, columns, seed);
  for (float& value : x.elements()) value = std::fabs(value);
  return x;
}
Matrix<float> cancelling(std::int64_t rows, std::int64_t k, std::uint64_t seed) {
  Matrix<float> x = growing(rows, k, seed);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t p = 0; p < k / 2; ++p) x(i, k / 2 + p) = -x(i, p) * (1 + 0x1p-20f);
  return x;
}

}  // namespace

template <class T>
void check_sign_of_zero() {
  Engine& engine = test::engine();
  const DeviceMatrix a(engine, Matrix<T>{{T(2)}}), b(engine, Matrix<T>{{T(0), T(0)}}), c(engine, 1, 2, type_of<T>());
  for (const std::string& name : kernels)
    for (const Activation& activation :
         {Activation(), Activation::relu(), Activation::leaky_relu(0.5), Activation::clamp(0, 6), Activation::hard_swish()}) {
      engine.gemm({.alpha = -1, .a = a.view(), .b = b.view(), .c = c.view(), .epilogue = {.activation = activation}},
                  {.kernel = test::kernel_here(name), .precision = Precision::reproducible});
      CAPTURE(std::string(name));
      CAPTURE(static_cast<int>(activation.kind()));
      CHECK(std::signbit(static_cast<float>(c.download<T>()(0, 1))));
    }
}

TEST_CASE("reproducible: the bits of canonical_product, for every kernel and however the product is cut") {
  if (!test::has_precise()) return;
  for (unsigned seed = 1; seed <= 2; ++seed) check_bits<float, float>(seed);
  check_bits<half, half>(12);
  check_bits<std::complex<float>, std::complex<float>>(14);
  if (test::has_type(Type::f64)) check_bits<double, double>(15);
}

TEST_CASE("reproducible: a streamed product has the same bits, and so has one with an epilogue") {
  if (!test::has_precise()) return;
  Engine& engine = test::engine();
  const auto a = random_matrix<float>(150, 1100, 1), b = random_matrix<float>(1100, 90, 2), c0 = random_matrix<float>(150, 90, 3);
  const Terms<float, float> terms{.alpha = 0.7f, .beta = -1.3f, .c0 = &c0};
  Matrix<float> expected = canonical_product(a, b, terms), c = c0;
  const auto bias = random_matrix<float>(1, 90, 4);
  for (std::int64_t i = 0; i < 150; ++i)
    for (std::int64_t j = 0; j < 90; ++j) expected(i, j) = std::max(0.0f, expected(i, j) + bias(0, j));
  HostGemm product{.alpha = 0.7f, .a = host_matrix(a), .b = host_matrix(b), .beta = -1.3f, .c = host_matrix(c)};
  product.epilogue.bias = HostBias::for_each_column(host_matrix(bias));
  product.epilogue.activation = Activation::relu();
  StreamOptions options;
  options.plan.precision = Precision::reproducible;
  options.device_memory_limit_bytes = 400 << 10;
  StreamReport report;
  multiply(engine, product, options, &report);
  CHECK(report.pieces > 1);
  CHECK_RESULT(same_bits(c, expected));

  const auto residual = random_matrix<float>(150, 90, 5);
  product.epilogue.residual = host_matrix(residual);
  CHECK_THROWS_WITH_AS(multiply(engine, product, options),
                       "multiply: with both beta and a residual, which the host adds up, a streamed product is not reproducible",
                       Unsupported);
}

TEST_CASE("extended: at most 4 u |A| |B|, which a standard product of the same matrices exceeds") {
  if (!test::has_precise()) return;
  const std::int64_t k = 131072;
  const auto a = cancelling(3, k, 1);
  auto b = growing(k, 3, 2);
  for (std::int64_t p = 0; p < k / 2; ++p)
    for (std::int64_t j = 0; j < 2; ++j) b(k / 2 + p, j) = b(p, j);  // the third column of C does not cancel
  const Terms<float, float> terms{.precision = Precision::extended};
  for (const bool doubles : {true, false}) {
    EngineOptions engine_options = test::engine_options();
    engine_options.experimental.edit().adjust_limits = [&](Limits& limits) {
      limits.f64 = limits.f64 && doubles;
      if (doubles && !limits.cpu) limits.device_class = DeviceClass::nvidia_volta;  // whose doubles are fast: it sums in them
    };
    Engine engine = test::own_engine(engine_options);
    for (const std::string& name : kernels) {
      CAPTURE(name);
      CAPTURE(doubles);
      PlanOptions options = test::with_kernel(name);
      options.precision = Precision::extended;
      CHECK(make_plan(Problem{.m = 3, .n = 3, .k = k}, limits_of(engine), options).doubles == limits_of(engine).f64);
      const Check check = check_full(a, b, run(engine, a, b, terms, options), terms);
      CAPTURE(check.summary);
      CHECK_RESULT(check.passed);
      const Matrix<half> narrow_a(3, 2, std::vector<half>(6, half(0.1f))), narrow_b(2, 2, std::vector<half>(4, half(0.3f)));
      const Terms<half, half> narrow_terms{.precision = Precision::extended};
      CHECK_RESULT(check_full(narrow_a, narrow_b, run(engine, narrow_a, narrow_b, narrow_terms, options), narrow_terms).passed);
    }
    CHECK_RESULT(!check_full(a, b, run(engine, a, b, terms, test::with_kernel("naive")), terms).passed);
  }
}

TEST_CASE("extended: infinities stay what they are") {
  if (!test::has_precise()) return;
  Engine& engine = test::engine();
  const float infinity = std::numeric_limits<float>::infinity();
  Matrix<float> a(3, 2, {infinity, 1, 3e38f, 3e38f, infinity, -infinity}), b(2, 1, {1, 1});
  for (const bool doubles : {true, false}) {
    PlanOptions options;
    options.precision = Precision::extended;
    options.experimental.edit().limits = limits_of(engine);
    options.experimental.edit().limits->f64 = options.experimental.edit().limits->f64 && doubles;
    const Matrix<float> c = run(engine, a, b, Terms<float, float>(), options);
    CHECK_RESULT(c(0, 0) == infinity);
    CHECK_RESULT(c(1, 0) == infinity);
    CHECK_RESULT(std::isnan(c(2, 0)));
  }
}

TEST_CASE("precision: an activation keeps the sign of a zero where bits are promised") {
  check_sign_of_zero<float>();
  check_sign_of_zero<half>();
}
