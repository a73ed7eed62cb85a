// Activations over their whole range: a few units in the last place, relative to max(1, |x|); NaN stays NaN.
#include <cmath>

#include "support/gemm_cases.hpp"
#include "support/gl_test.hpp"

using namespace glgemm;

namespace {

/// act(x) for each x, on the device.
template <class T>
Matrix<T> apply(Engine& engine, const Matrix<T>& x, const Activation& activation) {
  const DeviceMatrix a(engine, x), b(engine, Matrix<T>{{1}}), c(engine, x.rows(), 1, type_of<T>());
  Gemm gemm{.a = a.view(), .b = b.view(), .c = c.view()};
  gemm.epilogue.activation = activation;
  engine.gemm(gemm);
  return c.template download<T>();
}

const Activation all[] = {Activation::relu(),           Activation::leaky_relu(0.125), Activation::gelu_erf(),
                          Activation::gelu_tanh(),      Activation::sigmoid(),         Activation::tanh(),
                          Activation::clamp(-1.25, 2.5)};

}  // namespace

TEST_CASE_TEMPLATE("activations from -1000 to 1000", T, float, double) {
  if (!test::has_type(type_of<T>())) return;
  Engine& engine = test::engine();
  std::vector<T> values{0, T(-0.0)};
  for (int i = -4000; i <= 4000; ++i) values.push_back(static_cast<T>(i) / 400);
  for (T x = T(1e-30); x < 1000; x *= T(1.7)) {
    values.push_back(x);
    values.push_back(-x);
  }
  const auto count = static_cast<std::int64_t>(values.size());
  const Matrix<T> x(count, 1, values);
  const long double u = std::numeric_limits<T>::epsilon() / 2;
  for (const Activation& activation : all) {
    const Matrix<T> got = apply(engine, x, activation);
    long double worst = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      const long double error = std::abs(static_cast<long double>(got(i, 0)) - test::activation_value(activation, x(i, 0))) /
                                (u * std::max(1.0L, std::abs(static_cast<long double>(x(i, 0)))));
      if (!(error <= worst)) worst = error;
    }
    CHECK_MESSAGE(static_cast<double>(worst) <= 12, "activation ", static_cast<int>(activation.kind()));
  }
}

TEST_CASE_TEMPLATE("NaN stays NaN through every activation, infinities go to their limits", T, float, double) {
  if (!test::has_type(type_of<T>())) return;
  Engine& engine = test::engine();
  const T infinity = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  const Matrix<T> x(3, 1, {nan, infinity, -infinity});
  for (const Activation& activation : all) {
    CAPTURE(static_cast<int>(activation.kind()));
    const Matrix<T> y = apply(engine, x, activation);
    CHECK(std::isnan(y(0, 0)));
    // activation_value gives no limits where its formula has -infinity times 0, as gelu has.
    CHECK(y(1, 0) == static_cast<T>(test::activation_value(activation, infinity)));
    const long double at_least = test::activation_value(activation, -infinity);
    if (!std::isnan(at_least)) CHECK(y(2, 0) == static_cast<T>(at_least));
  }
}
