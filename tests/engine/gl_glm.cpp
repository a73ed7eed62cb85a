// Products of glm's matrices on a device against glm's own.
#include <cmath>
#include <cstddef>
#include <cstring>
#include <glgemm/glm.hpp>
#include <random>

#include "support/functions.hpp"
#include "support/gl_test.hpp"

using namespace glgemm;

namespace {

template <class M>
std::vector<M> random_matrices(std::size_t count, unsigned seed) {
  using T = typename M::value_type;
  std::mt19937 random(seed);
  std::vector<M> result(count);
  for (M& matrix : result)
    for (int column = 0; column < M::length(); ++column)
      for (int row = 0; row < M::length(); ++row)
        matrix[column][row] = static_cast<T>(static_cast<double>(random()) / 2147483648.0 - 1);
  return result;
}

/// Twice gamma_n |A||B|: glm's own product has the same error.
template <class M>
void check(const std::vector<M>& a, const std::vector<M>& b, const std::vector<M>& c) {
  constexpr int n = M::length();
  constexpr double u = std::numeric_limits<typename M::value_type>::epsilon() / 2.0, gamma = n * u / (1 - n * u);
  REQUIRE(c.size() == a.size());
  int wrong = 0;
  for (std::size_t item = 0; item < c.size(); ++item) {
    const M expected = a[item] * b[item];
    for (int column = 0; column < n; ++column)
      for (int row = 0; row < n; ++row) {
        double bound = 0;
        for (int p = 0; p < n; ++p)
          bound += std::abs(static_cast<double>(a[item][p][row]) * static_cast<double>(b[item][column][p]));
        wrong += !(std::abs(static_cast<double>(c[item][column][row]) - static_cast<double>(expected[column][row])) <=
                   2 * gamma * bound);
      }
  }
  CHECK(wrong == 0);
}

template <class M>
std::vector<std::byte> bytes_of(const std::vector<M>& matrices, std::size_t before, std::size_t after) {
  std::vector<std::byte> bytes(before + matrices.size() * sizeof(M) + after, std::byte{0x5a});
  std::memcpy(bytes.data() + before, matrices.data(), matrices.size() * sizeof(M));
  return bytes;
}

}  // namespace

TEST_CASE_TEMPLATE("glm's matrices", M, glm::mat2, glm::mat3, glm::mat4, glm::dmat2, glm::dmat3, glm::dmat4) {
  using T = typename M::value_type;
  Engine& engine = test::engine();
  if (sizeof(T) == sizeof(double) && !limits_of(engine).f64) {
    const std::vector<M> one(1);
    CHECK_THROWS_AS(multiply(engine, one, one), Unsupported);
    return;
  }

  SUBCASE("in host memory") {
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{1003}}) {
      const auto a = random_matrices<M>(count, 1), b = random_matrices<M>(count, 2);
      check(a, b, multiply(engine, a, b));
    }
  }

  SUBCASE("integers are exact, and the order of the factors is glm's") {
    std::vector<M> a(70), b(70);
    for (std::size_t item = 0; item < a.size(); ++item)
      for (int i = 0; i < M::length() * M::length(); ++i) {
        a[item][i / M::length()][i % M::length()] = static_cast<T>((static_cast<int>(item) + i * i) % 17 - 8);
        b[item][i / M::length()][i % M::length()] = static_cast<T>((static_cast<int>(item) * 3 + i) % 13 - 5);
      }
    const std::vector<M> c = multiply(engine, a, b);
    int wrong = 0, commuting = 0;
    for (std::size_t item = 0; item < a.size(); ++item) {
      wrong += c[item] != a[item] * b[item];
      commuting += c[item] == b[item] * a[item];
    }
    CHECK(wrong == 0);
    CHECK(commuting < 5);
  }

  SUBCASE("in buffers of the application") {
    const auto a = random_matrices<M>(321, 3), b = random_matrices<M>(321, 4);
    const std::size_t before = 3 * sizeof(T), after = 5 * sizeof(T);
    const test::Buffer buffer_a(bytes_of(a, before, 0)), buffer_b(bytes_of(b, 0, after)), buffer_c(bytes_of(a, before, after));
    const auto offset = static_cast<std::int64_t>(before);
    const GlmBuffer<M> view_a{buffer_a.name(), 321, offset}, view_b{buffer_b.name(), 321}, view_c{buffer_c.name(), 321, offset};
    multiply(engine, view_a, view_b, view_c);
    const std::vector<std::byte> bytes = buffer_c.read();
    std::vector<M> c(a.size());
    std::memcpy(static_cast<void*>(c.data()), bytes.data() + before, c.size() * sizeof(M));
    check(a, b, c);
    CHECK(bytes == bytes_of(c, before, after));  // nothing else is written

    multiply<M>(engine, {buffer_a.name(), 0}, {buffer_b.name(), 0}, {buffer_c.name(), 0});
    CHECK(buffer_c.read() == bytes);
    CHECK_THROWS_WITH_AS(multiply<M>(engine, {buffer_a.name(), 3}, {buffer_b.name(), 4}, {buffer_c.name(), 3}),
                         "multiply: 3 matrices A and 4 matrices B for 3 matrices C", std::invalid_argument);
    const unsigned name_a = buffer_a.name(), name_b = buffer_b.name(), name_c = buffer_c.name();
    struct Wrong {
      GlmBuffer<M> a, b, c;
    };
    for (const Wrong& wrong : {Wrong{{name_a, 3}, {name_b, 3}, {name_c, 2}}, Wrong{{name_a, -1}, {name_b, -1}, {name_c, -1}},
                               Wrong{{name_a, 322, offset}, view_b, view_c},
                               Wrong{{name_a, 322, offset}, {name_b, 322}, {name_c, 322, offset}},  // A leaves its buffer
                               Wrong{{name_a, 321, offset + 1}, view_b, view_c}, Wrong{view_a, view_b, view_a}})  // C is A
      CHECK_THROWS_AS(multiply<M>(engine, wrong.a, wrong.b, wrong.c), std::invalid_argument);
    CHECK(buffer_c.read() == bytes);
  }

  SUBCASE("different lengths are refused") {
    const std::vector<M> two(2), three(3), none;
    CHECK_THROWS_WITH_AS(multiply(engine, two, three), "multiply: 2 matrices A and 3 matrices B", std::invalid_argument);
    CHECK_THROWS_AS(multiply(engine, two, none), std::invalid_argument);
    CHECK(multiply(engine, none, none).empty());
  }

  SUBCASE("many small products are for the kernel made for them") {
    constexpr std::int64_t n = M::length();
    const Operand x{.layout = Layout::column_major, .ld = n, .batch_stride = n * n};
    const Problem problem{.m = n, .n = n, .k = n, .a = x, .b = x, .c = x, .batch = 100000};
    CHECK(name(make_plan(problem, limits_of(engine)).kernel) == "small");
  }
}
