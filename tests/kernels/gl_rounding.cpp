// Floats of 16 and 8 bits on the device: results rounded to nearest even, NaN, infinities and subnormal numbers included, and no
// neighbour lost; all of them as inputs.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <glgemm/experimental.hpp>
#include <glgemm/glgemm.hpp>
#include <glgemm/tuning.hpp>
#include <random>

#include "support/context.hpp"
#include "support/gemm_cases.hpp"
#include "support/samples.hpp"

using namespace glgemm;

namespace {

template <class T>
float value_of(std::uint16_t bits) {
  T x;
  x.bits = bits;
  return x;
}

template <class T>
constexpr std::uint16_t infinity_of = std::is_same_v<T, half> ? 0x7c00 : 0x7f80;

/// Whether the device keeps x: a subnormal float may be flushed.
bool keeps(float x) {
  return x == 0 || std::abs(x) >= 0x1p-126f || std::isnan(x) || !test::flushes_subnormals(Type::f32);
}

/// Floats on, between and beside the values of T, and any others.
template <class T>
std::vector<float> floats() {
  std::vector<float> result{0.0f, -0.0f, 65519.996f, 65520.0f, -65520.0f, 1e38f, INFINITY, -INFINITY};
  std::mt19937 random(1);
  for (int i = 0; i < 6000; ++i) {
    const auto bits = static_cast<std::uint16_t>(random() % infinity_of<T>);
    const float low = value_of<T>(bits), high = value_of<T>(static_cast<std::uint16_t>(bits + 1));
    const float middle = bits + 1 < infinity_of<T> ? low + (high - low) / 2 : low;
    for (const float x : {low, middle, std::nextafter(middle, 0.0f), std::nextafter(middle, 1e38f)})
      result.push_back(i % 2 ? x : -x);
    const auto any = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (std::isfinite(any)) result.push_back(any);
  }
  std::erase_if(result, [](float x) { return !keeps(x); });
  return result;
}

}  // namespace

TEST_CASE_TEMPLATE("results of 16 bits round as the host does, with every kernel", T, half, bfloat16) {
  Engine& engine = test::engine();
  std::vector<float> values = floats<T>();
  for (const float x : {std::nanf(""), -std::nanf(""), std::bit_cast<float>(0x7f800001u), std::bit_cast<float>(0x7fffffffu)})
    values.push_back(x);
  const auto count = static_cast<std::int64_t>(values.size());
  const std::vector<Scalar> alphas(values.begin(), values.end());
  const DeviceMatrix one(engine, Matrix<T>(1, 1, {T(1.0f)}));
  for (const test::Sample& sample : test::samples()) {
    const Kernel& kernel = sample.quick.front();
    CAPTURE(to_string(kernel));
    const DeviceMatrix results(engine, 1, count, type_of<T>());
    Gemm gemm{.a = one.view(), .b = one.view(), .c = results.view()};
    gemm.c.columns = 1;
    gemm.batch = {.count = count, .stride_a = 0, .stride_b = 0, .stride_c = 1, .alphas = alphas};
    engine.gemm(gemm, {.kernel = kernel});
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

TEST_CASE("every 16-bit and 8-bit float is read as the host reads it, with every way of reading") {
  Engine& engine = test::engine();
  for (const Type type : all_types)
    with_type(type, [&]<class T>(T) {
      if constexpr (SmallFloat<T>) {
        constexpr std::int64_t count = std::int64_t{1} << (8 * sizeof(T));
        Matrix<T> all(count, 1), one(1, 1);
        for (std::int64_t i = 0; i < count; ++i) all(i, 0).bits = static_cast<typename T::Bits>(i);
        one(0, 0) = T(1.0f);
        const auto check = [&](const Matrix<float>& got, const char* how) {
          for (std::int64_t i = 0; i < count; ++i) {
            const float x = all(i, 0);
            CAPTURE(to_string(type));
            CAPTURE(std::string(how));
            CAPTURE(i);
            if (std::isnan(x))
              REQUIRE(std::isnan(got.data()[i]));
            else if (keeps(x))
              REQUIRE(got.data()[i] == x);
          }
        };
        const auto with = [](const char* kernel) { return PlanOptions{.kernel = parse_kernel(kernel)}; };
        check(engine.multiply(all, one, with("naive")), "A as it lies");
        check(engine.multiply(one, transpose(all), with("naive")), "B as it lies");
        check(engine.multiply(all, one, with("register:tile_m=4,tile_n=4,step_k=2,workgroup=4,panels=1")), "A from panels");
        check(engine.multiply(one, transpose(all), with("register:tile_m=4,tile_n=4,step_k=2,workgroup=4,panels=1")),
              "B from panels");
        PlanOptions by_integers = with("naive");
        by_integers.experimental.edit().limits = limits_of(engine);
        by_integers.experimental.edit().limits->unpacks_halves = false;
        Report report;
        check(engine.multiply(all, one, by_integers, &report), "halves by integers");
        const auto ran = [&](std::int64_t m, std::int64_t k, const PlanOptions& options) {
          const Type type_of_a = type_of<T>();
          return test::plan_that_ran(engine, of_type({.m = m, .n = 1, .k = k}, type_of_a, Type::f32), options, report);
        };
        CHECK(ran(all.rows(), 1, by_integers).halves_by_integers == (type != Type::bf16));
        // 16 bytes at a time: each row is one number and zeros.
        constexpr std::int64_t group = 16 / sizeof(T);
        Matrix<T> rows(count, group), ones(group, 1);
        for (T& x : ones.elements()) x = T(1.0f);
        for (std::int64_t i = 0; i < count; ++i) rows(i, i % group) = all(i, 0);
        const Matrix<float> sums = engine.multiply(rows, ones, with("gemv:tile_m=1,tile_n=1"), &report);
        CHECK(ran(count, group, with("gemv:tile_m=1,tile_n=1")).vector_reads != VectorReads::none);
        check(sums, "16 bytes at a time");
      }
    });
}

TEST_CASE_TEMPLATE("subnormal numbers are kept by every kernel where the device keeps them, and else become 0", T, float,
                   double) {
  Engine& engine = test::engine();
  const Type type = type_of<T>();
  if (type == Type::f64 && !limits_of(engine).f64) return;
  const bool flushes = test::flushes_subnormals(type);
  MESSAGE(to_string(type), ": subnormal numbers ", flushes ? "become 0" : "are kept", " here");
  using Limits = std::numeric_limits<T>;
  const T least = Limits::min(), root = std::sqrt(least), large = std::ldexp(T(1), Limits::max_exponent / 2);
  const std::vector<T> values{0,    1,        -3,   Limits::denorm_min(), -least / 4, least * T(0.7), least, root / 16, -root / 3,
                              root, 1 / root, large};
  const std::int64_t count = std::ssize(values);
  const Matrix<T> b(1, count, values), a = transpose(b);
  for (const Kernel& kernel : test::quick_kernels(limits_of(engine))) {
    if (!why_not(of_type({.m = count, .n = count, .k = 1}, type, type), kernel, limits_of(engine)).empty()) continue;
    CAPTURE(to_string(kernel));
    const Matrix<T> c = engine.multiply(a, b, PlanOptions{.kernel = kernel});
    for (std::int64_t i = 0; i < count; ++i)
      for (std::int64_t j = 0; j < count; ++j) {
        const T x = b(0, i), y = b(0, j), exact = x * y;
        CAPTURE(x);
        CAPTURE(y);
        const bool normal = std::isnormal(exact) && std::isnormal(x) && std::isnormal(y);
        CHECK((c(i, j) == exact || (c(i, j) == 0 && flushes && !normal)));
      }
  }
}

TEST_CASE("an engine finds out whether subgroups share numbers fast: on llvmpipe since Mesa 25, and not on 22") {
  const Engine& engine = test::engine();
  const std::string& version = engine.device().version;
  if (!engine.device().renderer.starts_with("llvmpipe") || limits_of(engine).language != ShadingLanguage::glsl_430) return;
  if (version.find("Mesa 22.") != std::string::npos) CHECK(limits_of(engine).subgroup_size == 0);
  if (version.find("Mesa 25.") != std::string::npos || version.find("Mesa 26.") != std::string::npos)
    CHECK(limits_of(engine).subgroup_size >= 4);
}

TEST_CASE("a kernel that multiplies and adds by fma() rounds once where the engine found that the driver does") {
  const Limits& limits = limits_of(test::engine());
  if (!limits.cpu || limits.language != ShadingLanguage::glsl_430) return;  // nothing is known of subgroups there
  EngineOptions options;
  options.experimental.edit().adjust_limits = [](Limits& adjusted) {
    adjusted.subgroup_size = 8;
  };  // also where they share numbers slowly
  Engine engine = test::own_engine(options);
  // y + x x is 2^-24, of which nothing is left if x x is rounded.
  const float x = 1 + 0x1p-12f, y = -1 - 0x1p-11f;
  const DeviceMatrix a(engine, Matrix<float>(1, 2, {y, x})), b(engine, Matrix<float>(2, 1, {1, x}));
  DeviceMatrix c(engine, 1, 1);
  engine.gemm({.a = a.view(), .b = b.view(), .c = c.view()},
              test::with_kernel("register:tile_m=4,tile_n=4,step_k=2,workgroup=4,panels=1,broadcast=4"));
  CHECK(c.download()(0, 0) == (limits_of(engine).fuses_multiply_adds ? 0x1p-24f : 0.0f));
}
