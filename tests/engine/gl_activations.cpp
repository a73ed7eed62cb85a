// Activations over their whole range: a few units in the last place, relative to what Activation says; NaN stays NaN.
#include <cmath>
#include <cstring>
#include <span>

#include <glgemm/experimental.hpp>

#include "support/gemm_cases.hpp"
#include "support/gl_test.hpp"
#include "verify/activation.hpp"

using namespace glgemm;

namespace {

/// act(x) for each x, on the device.
template <class T>
Matrix<T> apply(Engine& engine, const Matrix<T>& x, const Activation& activation, const PlanOptions& options = {}) {
  const DeviceMatrix a(engine, x), b(engine, Matrix<T>{{1}}), c(engine, x.rows(), 1, type_of<T>());
  Gemm gemm{.a = a.view(), .b = b.view(), .c = c.view()};
  gemm.epilogue.activation = activation;
  engine.gemm(gemm, options);
  return c.template download<T>();
}

/// Numbers from -1000 to 1000, most of them near 0.
template <class T>
Matrix<T> inputs() {
  std::vector<T> values{0, T(-0.0)};
  for (int i = -4000; i <= 4000; ++i) values.push_back(static_cast<T>(i) / 400);
  for (T x = T(1e-30); x < 1000; x *= T(1.7)) {
    values.push_back(x);
    values.push_back(-x);
  }
  const auto count = static_cast<std::int64_t>(values.size());
  return {count, 1, values};
}

std::vector<Activation> all_activations() {
  std::vector<Activation> all;
  for (const ActivationInfo& row : activation_table) {
    const double parameters[] = {row.kind == ActivationKind::leaky_relu ? 0.125 : -1.25, 2.5};
    all.push_back(Activation::of(row.kind, std::span(parameters, row.parameter_count)));
  }
  all.push_back(Activation::sine(30));
  return all;
}

/// The errors stay within 6 units in the last place.
template <class T>
void check_errors(Engine& engine) {
  const Matrix<T> x = inputs<T>();
  const long double u = std::numeric_limits<T>::epsilon() / 2;
  for (const Activation& activation : all_activations()) {
    const Matrix<T> got = apply(engine, x, activation);
    long double worst = 0;
    for (std::int64_t i = 0; i < x.rows(); ++i) {
      const long double expected = verify::activation_value<long double>(activation, x(i, 0)),
                        scale = u * verify::activation_scale(activation, x(i, 0));
      const long double most = std::numeric_limits<T>::max(), least = std::numeric_limits<T>::min();
      if (got(i, 0) > std::numeric_limits<T>::max() && expected + 12 * scale > most) continue;  // an exponential overflows
      const long double error = std::max(0.0L, std::abs(got(i, 0) - expected) - least) / scale;
      if (!(error <= worst)) worst = error;
    }
    CHECK_MESSAGE(static_cast<double>(worst) <= 12, "activation ", info(activation.kind()).name);
  }
}

}  // namespace

TEST_CASE_TEMPLATE("activations from -1000 to 1000", T, float, double) {
  if (test::has_type(type_of<T>())) check_errors<T>(test::engine());
}

TEST_CASE("activations of doubles where each quotient is 3 units in the last place too large, or too small") {
  if (!test::has_type(Type::f64)) return;
  for (const char* const units : {"3u", "-3"}) {
    EngineOptions options = test::engine_options();
    options.program_cache = "";
    std::size_t replaced = 0;
    options.experimental.edit().rewrite_source = [&](const ProgramKey& key, std::string source) {
      if (!key.epilogue) return source;
      const std::string begin = "precision highp int;\n";
      source.insert(source.find(begin) + begin.size(),
                    "double off(double x) {\n  uvec2 bits = unpackDouble2x32(x);\n"
                    "  if (bits.x > 3u && bits.x < 0xfffffff0u) bits.x += uint(" +
                        std::string(units) + ");\n  return packDouble2x32(bits);\n}\n");
      for (const std::string quotient :
           {"y / ACC(i)", "e / (ACC(2.0) + e)", "ACC(1.0) / ACC(2 * i + 1)", "square / double((2 * i - 1 + odd) * (2 * i + odd))", "square / ACC(2 * i + 1)", "ACC(i) * ACC(0.5) / fraction", "e / (fraction * root_pi)",
            "((ACC(1.0) - e) / (ACC(1.0) + e))", "less_one / (less_one + ACC(2.0))",
            "(activation == SILU ? x : ACC(1.0)) / (ACC(1.0) + e)"}) {
        const std::size_t at = source.find(quotient);
        REQUIRE(at != std::string::npos);
        source.replace(at, quotient.size(), "off(" + quotient + ")");
        ++replaced;
      }
      return source;
    };
    Engine engine = test::own_engine(options);
    CAPTURE(std::string(units));
    check_errors<double>(engine);
    CHECK(replaced > 0);
  }
}

TEST_CASE_TEMPLATE("NaN stays NaN through every activation, infinities go to their limits", T, float, double) {
  if (!test::has_type(type_of<T>())) return;
  Engine& engine = test::engine();
  const T infinity = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  const Matrix<T> x(3, 1, {nan, infinity, -infinity});
  for (const Activation& activation : all_activations()) {
    CAPTURE(info(activation.kind()).name);
    const Matrix<T> y = apply(engine, x, activation);
    CHECK(std::isnan(y(0, 0)));
    if (activation.kind() == ActivationKind::sine) {
      CHECK(std::isnan(y(1, 0)));
      CHECK(std::isnan(y(2, 0)));
      continue;
    }
    CHECK(y(1, 0) == verify::activation_value(activation, infinity));
    CHECK(y(2, 0) == verify::activation_value(activation, -infinity));
  }
}

TEST_CASE_TEMPLATE("activations whose bits are promised have them", T, float, double) {
  if (!test::has_type(type_of<T>()) || !test::has_precise()) return;
  const T infinity = std::numeric_limits<T>::infinity();
  Matrix<T> x = inputs<T>();
  x(0, 0) = infinity, x(1, 0) = -infinity;
  for (const Activation& activation : all_activations()) {
    if (!info(activation.kind()).is_reproducible) continue;
    const Matrix<T> y = apply(test::engine(), x, activation, {.precision = Precision::reproducible});
    std::int64_t different = 0;
    for (std::int64_t i = 0; i < x.rows(); ++i) {
      const T expected = verify::activation_value(activation, x(i, 0));
      different += std::memcmp(&expected, &y(i, 0), sizeof expected) != 0;
    }
    CAPTURE(info(activation.kind()).name);
    CHECK_RESULT(different == 0);
  }
}
