// Results of 16 bits: rounded to nearest even, NaN, infinities and subnormal numbers included, and no neighbour lost.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <glgemm/glgemm.hpp>
#include <glgemm/tuning.hpp>
#include <random>

#include "support/context.hpp"

using namespace glgemm;

namespace {

/// The nearest half to x, by trying: of the two around it the nearer, of two equally near the even one.
std::uint16_t nearest(float x, float (*value)(std::uint16_t), std::uint16_t infinity) {
  const auto magnitude = static_cast<long double>(std::abs(x));
  std::uint16_t low = 0, high = infinity;  // the bits of positive numbers are in their order
  while (high - low > 1) {
    const auto middle = static_cast<std::uint16_t>((low + high) / 2);
    (static_cast<long double>(value(middle)) <= magnitude ? low : high) = middle;
  }
  // Infinity stands for the number that would come next.
  const long double below = value(low);
  const long double above = high == infinity ? 2 * below - static_cast<long double>(value(static_cast<std::uint16_t>(low - 1)))
                                             : static_cast<long double>(value(high));
  const long double to_low = magnitude - below, to_high = above - magnitude;
  const std::uint16_t rounded = to_low < to_high || (to_low == to_high && low % 2 == 0) ? low : high;
  return static_cast<std::uint16_t>(rounded | (std::signbit(x) ? 0x8000 : 0));
}

template <class T>
float value_of(std::uint16_t bits) {
  T x;
  x.bits = bits;
  return x;
}

template <class T>
constexpr std::uint16_t infinity_of = std::is_same_v<T, half> ? 0x7c00 : 0x7f80;

/// Floats on, between and beside the values of T, and any others.
template <class T>
std::vector<float> floats() {
  std::vector<float> result{0.0f,
                            -0.0f,
                            65519.996f,
                            65520.0f,
                            -65520.0f,
                            1e38f,
                            std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity()};
  std::mt19937 random(1);
  for (int i = 0; i < 6000; ++i) {
    const auto bits = static_cast<std::uint16_t>(random() % infinity_of<T>);
    const float low = value_of<T>(bits), high = value_of<T>(static_cast<std::uint16_t>(bits + 1));
    const float middle = bits + 1 < infinity_of<T> ? low + (high - low) / 2 : low;
    for (const float x : {low, middle, std::nextafter(middle, 0.0f), std::nextafter(middle, 1e38f)})
      result.push_back(i % 2 ? x : -x);
    const auto any = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (std::isfinite(any) && std::abs(any) >= 0x1p-126f) result.push_back(any);  // subnormal floats may be flushed
  }
  std::erase_if(result, [](float x) { return x != 0 && std::abs(x) < 0x1p-126f; });
  return result;
}

}  // namespace

TEST_CASE_TEMPLATE("host conversions to 16 bits round to nearest even", T, half, bfloat16) {
  for (const float x : floats<T>()) {
    if (std::isinf(x)) continue;
    CAPTURE(x);
    REQUIRE(T(x).bits == nearest(x, value_of<T>, infinity_of<T>));
  }
  CHECK(std::isnan(float(T(std::nanf("")))));
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits)  // there and back
    if (const float x = value_of<T>(static_cast<std::uint16_t>(bits)); !std::isnan(x)) REQUIRE(T(x).bits == bits);
}

TEST_CASE_TEMPLATE("results of 16 bits round as the host does, with every kernel", T, half, bfloat16) {
  Engine& engine = test::engine();
  std::vector<float> values = floats<T>();
  for (const float x : {std::nanf(""), -std::nanf(""), std::bit_cast<float>(0x7f800001u), std::bit_cast<float>(0x7fffffffu)})
    values.push_back(x);
  const auto count = static_cast<std::int64_t>(values.size());
  const std::vector<Scalar> alphas(values.begin(), values.end());
  const DeviceMatrix one(engine, [] {
    Matrix<T> m(1, 1);
    m(0, 0) = T(1.0f);
    return m;
  }());
  for (const char* kernel : {"naive", "tiled:tile=2", "small"}) {
    const DeviceMatrix results(engine, 1, count, type_of<T>());
    BufferView c = results.view();
    c.columns = 1;
    Gemm gemm{.a = one.view(), .b = one.view(), .c = c};
    gemm.batch.count = count;
    gemm.batch.stride_c = 1;
    gemm.batch.alphas = alphas;
    PlanOptions options;
    options.kernel = parse_kernel(kernel);
    engine.gemm(gemm, options);
    const Matrix<T> got = results.template download<T>();
    for (std::int64_t i = 0; i < count; ++i) {
      const float x = values[static_cast<std::size_t>(i)];
      CAPTURE(x);
      if (x == 0)
        REQUIRE(float(got(0, i)) == 0);  // alpha = 0 gives 0, not -0
      else if (std::isnan(x))
        REQUIRE(std::isnan(float(got(0, i))));
      else
        REQUIRE(got(0, i).bits == T(x).bits);
    }
  }
}

TEST_CASE_TEMPLATE("every 16-bit input is read as the host reads it", T, half, bfloat16) {
  Engine& engine = test::engine();
  Matrix<T> all(1 << 16, 1), one(1, 1);
  for (std::int64_t i = 0; i < all.rows(); ++i) all(i, 0).bits = static_cast<std::uint16_t>(i);
  one(0, 0) = T(1.0f);
  const Matrix<float> got = engine.multiply(all, one);
  for (std::int64_t i = 0; i < all.rows(); ++i) {
    const float x = all(i, 0);
    CAPTURE(i);
    if (std::isnan(x))
      REQUIRE(std::isnan(got(i, 0)));
    else if (x == 0 || std::abs(x) >= 0x1p-126f)  // others a driver may flush
      REQUIRE(got(i, 0) == x);
  }
}
