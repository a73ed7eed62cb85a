// The checker checked: it must catch every kind of wrong product and accept every order of summation.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <glgemm/verify.hpp>

using namespace glgemm;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

using Sum = std::function<float(const std::vector<float>&)>;

/// A B with the products of each element summed in float by `sum`.
Matrix<float> multiply_in_order(const Matrix<float>& a, const Matrix<float>& b, const Sum& sum) {
  Matrix<float> c(a.rows(), b.columns());
  std::vector<float> products(static_cast<std::size_t>(a.columns()));
  for (std::int64_t i = 0; i < c.rows(); ++i)
    for (std::int64_t j = 0; j < c.columns(); ++j) {
      for (std::int64_t p = 0; p < a.columns(); ++p) products[static_cast<std::size_t>(p)] = a(i, p) * b(p, j);
      c(i, j) = sum(products);
    }
  return c;
}

float forward(const std::vector<float>& x) {
  return std::accumulate(x.begin(), x.end(), 0.0F);
}
float reversed(const std::vector<float>& x) {
  return std::accumulate(x.rbegin(), x.rend(), 0.0F);
}
float pairwise(const std::vector<float>& x) {
  if (x.size() <= 1) return forward(x);
  const auto half = x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2);
  return pairwise({x.begin(), half}) + pairwise({half, x.end()});
}
float blocked(const std::vector<float>& x) {
  float total = 0;
  for (std::size_t p = 0; p < x.size(); p += 32) {
    float part = 0;
    for (std::size_t q = p; q < std::min(p + 32, x.size()); ++q) part += x[q];
    total += part;
  }
  return total;
}
float largest_first(std::vector<float> x) {
  std::sort(x.begin(), x.end(), [](float l, float r) { return std::fabs(l) > std::fabs(r); });
  return forward(x);
}

struct Case {
  std::string name;
  Matrix<float> a, b, c = multiply_serial(a, b);  // c is right
};

// Larger than the probe's samples, so that it uses its vectors too.
const Case integers{"integers", random_integer_matrix(97, 70, 3, 1), random_integer_matrix(70, 97, 3, 2)};
const Case floats{"random floats", random_matrix(97, 70, 3), random_matrix(70, 97, 4)};

/// The check has found a wrong element, and says which.
void check_caught(const Check& check, std::int64_t i, std::int64_t j) {
  CHECK_FALSE(check.passed);
  CHECK(check.row == i);
  CHECK(check.column == j);
}

/// A copy of a matrix, changed by f.
template <class T, class F>
Matrix<T> changed(Matrix<T> x, const F& f) {
  f(x);
  return x;
}

}  // namespace

TEST_CASE("the serial loop computes the published examples") {
  CHECK(multiply_serial({{1, 4}, {2, 5}, {3, 6}}, {{7, 8, 9}, {10, 11, 12}}) ==
        Matrix<float>{{47, 52, 57}, {64, 71, 78}, {81, 90, 99}});
  const Matrix<float> square{{1, 2, 3, 4}, {5, 6, 7, 8}, {1, 2, 3, 4}, {5, 6, 7, 8}};
  CHECK(multiply_serial(square, square) ==
        Matrix<float>{{34, 44, 54, 64}, {82, 108, 134, 160}, {34, 44, 54, 64}, {82, 108, 134, 160}});
}

TEST_CASE("the serial loop sums in the order of p, in float") {
  CHECK(multiply_serial({{0x1p24F, 1, 1}}, {{1}, {1}, {1}})(0, 0) == 0x1p24F);
  CHECK(multiply_serial({{1, 1, 0x1p24F}}, {{1}, {1}, {1}})(0, 0) == 0x1p24F + 2);
}

TEST_CASE("the serial loop computes a band of rows") {
  const Matrix<float> a = random_matrix(7, 5, 1);
  const Matrix<float> b = random_matrix(5, 4, 2);
  const Matrix<float> whole = multiply_serial(a, b);
  const Matrix<float> band = multiply_serial(a, b, 2, 5);
  REQUIRE(band.rows() == 3);
  for (std::int64_t i = 0; i < 3; ++i)
    for (std::int64_t j = 0; j < 4; ++j) CHECK(band(i, j) == whole(i + 2, j));
  CHECK(multiply_serial(a, b, 3, 3).rows() == 0);
  CHECK_THROWS_AS(multiply_serial(a, b, 2, 8), std::invalid_argument);
  CHECK_THROWS_AS(multiply_serial(a, b, 5, 2), std::invalid_argument);
  CHECK_THROWS_AS(multiply_serial(a, b, -1, 2), std::invalid_argument);
  CHECK_THROWS_WITH_AS(multiply_serial(a, a), doctest::Contains("the inner sizes 5 and 7 differ"), std::invalid_argument);
}

TEST_CASE("right products pass, whatever the order of summation") {
  for (const Case& t : {integers, floats}) {
    CAPTURE(t.name);
    for (const Sum& sum : {Sum(forward), Sum(reversed), Sum(pairwise), Sum(blocked), Sum(largest_first)}) {
      const Matrix<float> c = multiply_in_order(t.a, t.b, sum);
      const Check full = check_full(t.a, t.b, c);
      CHECK(full.passed);
      CHECK(full.compared == c.size());
      CHECK(full.worst_ratio <= 1);
      CHECK(full.worst_ratio_sqrt <= 1);
      const Check probe = check_probe(t.a, t.b, c);
      CHECK(probe.passed);
      CHECK(probe.method == "probe");
      CHECK(probe.compared > 1000);
      CHECK(probe.compared <= 4096);
    }
  }
  CHECK(check_full(integers.a, integers.b, integers.c).method == "exact");
  CHECK(check_full(floats.a, floats.b, floats.c).method == "bound");
}

TEST_CASE("sums that cancel are held against |A||B|, not against the result") {
  const Matrix<float> a{{1e6F, 1, -1e6F}};
  const Matrix<float> b{{1.1F}, {1e-3F}, {1.1F}};
  CHECK(check_full(a, b, Matrix<float>{{0}}).passed);
  CHECK_FALSE(check_full(a, b, Matrix<float>{{1}}).passed);
}

TEST_CASE("one wrong element is caught wherever it is") {
  for (const Case& t : {integers, floats}) {
    CAPTURE(t.name);
    for (const std::int64_t i : {0, 31, 32, 50, 96})
      for (const std::int64_t j : {0, 31, 32, 63, 64, 77, 96}) {
        Matrix<float> c = t.c;
        c(i, j) = -c(i, j) + 1;
        INFO("element ", i, ", ", j);
        const Check full = check_full(t.a, t.b, c);
        check_caught(full, i, j);
        CHECK(full.got == static_cast<double>(c(i, j)));
        CHECK(full.expected == doctest::Approx(static_cast<double>(t.c(i, j))));
      }
  }
}

TEST_CASE("the probe never misses one wrong integer") {
  for (std::uint64_t seed = 0; seed < 50; ++seed)
    for (const float off : {1.0F, -1.0F, 1024.0F, 0.5F, 0x1p24F}) {
      Matrix<float> c = integers.c;
      const auto i = static_cast<std::int64_t>(seed * 7 % 97);
      const auto j = static_cast<std::int64_t>(seed * 31 % 97);
      c(i, j) += off;
      check_caught(check_probe(integers.a, integers.b, c, seed, 4), i, j);  // the corners alone are sampled
    }
}

TEST_CASE("an error of one is caught in exact problems, although the bound of others would let it pass") {
  const Matrix<float> a = random_integer_matrix(40, 4000, 60, 1);
  const Matrix<float> b = random_integer_matrix(4000, 40, 60, 2);
  Matrix<float> c = multiply_serial(a, b);
  CHECK(check_full(a, b, c).passed);
  c(3, 4) += 1;
  const Check full = check_full(a, b, c);
  CHECK(full.worst_ratio == std::numeric_limits<double>::infinity());  // the bound is 0 there
  CHECK_FALSE(full.passed);
  CHECK(full.row == 3);
  CHECK_FALSE(check_probe(a, b, c, 1, 4).passed);
}

TEST_CASE("gross errors are caught, by the probe too") {
  for (const Case& t : {integers, floats}) {
    CAPTURE(t.name);
    const std::int64_t n = t.c.rows();
    Matrix<float> a_cut = t.a;
    for (std::int64_t i = 0; i < n; ++i) a_cut(i, a_cut.columns() - 1) = 0;
    const auto made_of = [&](const auto& element) {
      return changed(t.c, [&](auto& c) {
        for (std::int64_t i = 0; i < n; ++i)
          for (std::int64_t j = 0; j < n; ++j) c(i, j) = element(i, j);
      });
    };
    const std::vector<std::pair<const char*, Matrix<float>>> wrong{
        {"all zeros", Matrix<float>(n, n)},
        {"transposed", transpose(t.c)},
        {"the last step of k left out", multiply_serial(a_cut, t.b)},
        {"a row off by one", made_of([&](auto i, auto j) { return t.c(i == 40 ? 41 : i, j); })},
        {"all rows off by one", made_of([&](auto i, auto j) { return t.c((i + 1) % n, j); })},
        {"the last column never written", made_of([&](auto i, auto j) { return j == n - 1 ? 0 : t.c(i, j); })},
        {"a 32 x 32 block never written", made_of([&](auto i, auto j) { return i / 32 == 1 && j / 32 == 1 ? 0 : t.c(i, j); })}};
    for (const auto& [label, c] : wrong) {
      INFO(std::string(label));
      CHECK_FALSE(check_full(t.a, t.b, c).passed);
      CHECK_FALSE(check_probe(t.a, t.b, c).passed);
    }
  }
}

TEST_CASE("an element that is not finite is caught, by the probe without samples too") {
  for (const Case& t : {integers, floats})
    for (const float value : {not_a_number, inf, -inf}) {
      INFO(t.name, " with ", value);
      Matrix<float> c = t.c;
      c(50, 40) = value;
      for (const Check& check : {check_full(t.a, t.b, c), check_probe(t.a, t.b, c, 1, 4)}) {
        check_caught(check, 50, 40);
        CHECK(check.worst_ratio == std::numeric_limits<double>::infinity());
        CHECK(check.summary.find("WRONG") != std::string::npos);
      }
    }
}

TEST_CASE("the probe's vectors raise the alarm without samples") {
  Matrix<float> c = floats.c;
  for (std::int64_t j = 0; j < c.columns(); ++j) c(40, j) = c(41, j);
  const Check probe = check_probe(floats.a, floats.b, c, 1, 4);
  CHECK_FALSE(probe.passed);
  CHECK(probe.row == 40);
  CHECK(probe.worst_ratio > 1);
}

/// What makes some columns of a product far larger than others: in A, in B, in C0.
struct Uneven {
  const char* what;
  std::function<void(Matrix<float>& a, Matrix<float>& b, Matrix<float>& c0)> make;
};

TEST_CASE("huge columns hide no error in the others from the probe's vectors") {
  const auto in_column = [](std::int64_t j, float factor) {
    return [=](Matrix<float>& x) {
      for (std::int64_t i = 0; i < x.rows(); ++i) x(i, j) *= factor;
    };
  };
  const std::vector<Uneven> cases{
      {"even", [](auto&, auto&, auto&) {}},
      {"a column of B", [&](auto&, auto& b, auto&) { in_column(11, 1e20F)(b); }},
      {"a column of B that overflows", [&](auto&, auto& b, auto&) { in_column(11, 3e38F)(b); }},
      {"columns of B of any size",
       [&](auto&, auto& b, auto&) {
         for (std::int64_t j = 0; j < b.columns(); ++j) in_column(j, static_cast<float>(std::pow(10.0, j % 50 - 25)))(b);
       }},
      {"an element of B", [](auto&, auto& b, auto&) { b(3, 11) = -1e30F; }},
      {"an infinity and a NaN in B", [](auto&, auto& b, auto&) { b(3, 11) = inf, b(4, 13) = not_a_number; }},
      {"an element of A, which meets one column",
       [](auto& a, auto& b, auto&) {
         for (std::int64_t i = 0; i < a.rows(); ++i) a(i, 3) = 1e25F;
         for (std::int64_t j = 0; j < b.columns(); ++j) b(3, j) = j == 11 ? 1.0F : 0.0F;
       }},
      {"a row of A and a column of B",
       [&](auto& a, auto& b, auto&) {
         for (std::int64_t q = 0; q < a.columns(); ++q) a(7, q) *= 1e15F;
         in_column(11, 1e15F)(b);
       }},
      {"rows of zeros in A",
       [&](auto& a, auto& b, auto&) {
         for (std::int64_t i = 60; i < 97; ++i)
           for (std::int64_t q = 0; q < a.columns(); ++q) a(i, q) = 0;
         in_column(11, 1e20F)(b);
       }},
      {"a column of zeros", [&](auto&, auto& b, auto&) { in_column(40, 0)(b), in_column(11, 1e20F)(b); }},
      {"a column of C0", [&](auto&, auto&, auto& c0) { in_column(11, 1e25F)(c0); }},
      {"an infinity in C0", [](auto&, auto&, auto& c0) { c0(50, 11) = inf; }}};
  for (const Uneven& one : cases) {
    CAPTURE(std::string(one.what));
    Matrix<float> a = floats.a, b = floats.b, c0 = random_matrix(97, 97, 9);
    one.make(a, b, c0);
    const Terms<float> terms{.beta = 1, .c0 = &c0};
    Matrix<float> right = multiply_serial(a, b);
    for (std::size_t i = 0; i < right.elements().size(); ++i) right.elements()[i] += c0.elements()[i];
    CHECK(check_full(a, b, right, terms).passed);
    CHECK(check_probe(a, b, right, 1, 4, terms).passed);
    for (const auto& [i, j] : {std::pair{50, 40}, {90, 40}, {50, 30}, {20, 96}}) {
      const Matrix<float> wrong = changed(right, [&](auto& c) {
        const float least = std::fabs(c(i, j));
        c(i, j) += least > 0 ? least : 1.0F;
      });
      if (std::string(one.what) == "an infinity in C0" && i == 50) continue;  // its own row is for the samples
      check_caught(check_probe(a, b, wrong, 1, 4, terms), i, j);
    }
  }
}

TEST_CASE("of a C that was printed with few digits, each bound has half a unit of the last one more") {
  const auto printed = [](auto x, int digits) {
    for (auto& element : x.elements()) element = std::stof(fmt::format("{:.{}g}", element, digits));
    return x;
  };
  for (const int digits : {1, 2, 4}) {
    CAPTURE(digits);
    const Matrix<float> c = printed(floats.c, digits);
    const Terms<float> terms{.digits = digits};
    CHECK_FALSE(check_full(floats.a, floats.b, c).passed);
    const Check full = check_full(floats.a, floats.b, c, terms);
    CHECK(full.passed);
    CHECK(full.worst_ratio > 0.1);
    CHECK(full.summary.ends_with(
        fmt::format("; C was printed with {} digits, and half a unit of the last one is in each bound", digits)));
    CHECK(check_probe(floats.a, floats.b, c, 1, 4, terms).passed);
    CHECK_FALSE(check_full(floats.a, floats.b, c, {.digits = digits + 1}).passed);
    const Matrix<float> ratios = error_ratios(floats.a, floats.b, c, terms);
    CHECK(*std::max_element(ratios.elements().begin(), ratios.elements().end()) == doctest::Approx(full.worst_ratio));
    Matrix<float> wrong = c;
    wrong(50, 40) += std::fabs(wrong(50, 40)) * static_cast<float>(std::pow(10.0, 1 - digits)) * 2;
    CHECK_FALSE(check_full(floats.a, floats.b, wrong, terms).passed);
  }
  // The unit belongs to the number as it is printed: 1000 of three digits has tens. Zeros and what is not finite have none.
  const auto passes = [](double c, double exact, int digits) {
    return check_full(Matrix<double>{{exact}}, Matrix<double>{{1}}, Matrix<double>{{c}}, {.digits = digits}).passed;
  };
  CHECK(passes(1000, 1004, 3));
  CHECK_FALSE(passes(1000, 1011, 3));
  CHECK(passes(999, 999.4, 3));
  CHECK_FALSE(passes(999, 1000.5, 3));
  CHECK(passes(0, 0, 3));
  CHECK_FALSE(passes(0, 1e-9, 3));
  CHECK_FALSE(passes(std::numeric_limits<double>::infinity(), 1e300, 3));
  CHECK_FALSE(
      check_probe(integers.a, integers.b, changed(integers.c, [](auto& c) { c(50, 40) += 30; }), 1, 4, {.digits = 2}).passed);
  const Matrix<half> third{{half(0.333F)}}, one{{half(1)}};
  CHECK(check_full(third, one, Matrix<half>{{half(0.33F)}}, {.digits = 2}).passed);
  CHECK_FALSE(check_full(third, one, Matrix<half>{{half(0.32F)}}, {.digits = 2}).passed);
  const Matrix<std::int32_t> whole{{5}};
  CHECK_THROWS_WITH_AS(check_full(whole, whole, {{25}}, {.digits = 2}),
                       doctest::Contains("products of integers are compared exactly"), std::invalid_argument);
  CHECK_THROWS_AS(check_full(one, one, Matrix<half>{{half(1)}}, {.digits = -1}), std::invalid_argument);
}

TEST_CASE("the probe always looks at the corners") {
  for (const std::int64_t i : {0, 96})
    for (const std::int64_t j : {0, 96}) {
      const Matrix<float> c = changed(floats.c, [&](auto& x) { x(i, j) += 1e-3F; });
      check_caught(check_probe(floats.a, floats.b, c, 9, 5), i, j);
    }
}

TEST_CASE("wrong shapes are an error") {
  const Matrix<float> a(3, 4);
  const Matrix<float> b(4, 5);
  CHECK_THROWS_WITH_AS(check_full(a, b, Matrix<float>(5, 3)), "check_full: A is 3x4, B is 4x5 and C is 5x3: C must be 3x5",
                       std::invalid_argument);
  CHECK_THROWS_AS(check_probe(a, b, Matrix<float>(3, 4)), std::invalid_argument);
  CHECK_THROWS_AS(check_full(a, a, Matrix<float>(3, 4)), std::invalid_argument);
  CHECK_THROWS_AS(error_ratios(a, b, Matrix<float>(2, 5)), std::invalid_argument);
}

TEST_CASE("matrices without elements") {
  CHECK(check_full(Matrix<float>(0, 3), Matrix<float>(3, 4), Matrix<float>(0, 4)).passed);
  CHECK(check_probe(Matrix<float>(2, 3), Matrix<float>(3, 0), Matrix<float>(2, 0)).row == -1);
  CHECK(check_full(Matrix<float>(2, 0), Matrix<float>(0, 2), Matrix<float>(2, 2)).passed);
  Matrix<float> c(2, 2);
  c(1, 1) = std::numeric_limits<float>::denorm_min();
  CHECK_FALSE(check_full(Matrix<float>(2, 0), Matrix<float>(0, 2), c).passed);
}

TEST_CASE("which problems are exact") {
  CHECK(is_exact_problem({{3, -4}}, {{5}, {6}}));
  CHECK_FALSE(is_exact_problem({{3, 0.5F}}, {{5}, {6}}));
  CHECK_FALSE(is_exact_problem({{3, not_a_number}}, {{5}, {6}}));
  CHECK_FALSE(is_exact_problem({{3, inf}}, {{5}, {6}}));
  CHECK(is_exact_problem({{0x1p12F - 1}}, {{0x1p12F}}));
  CHECK_FALSE(is_exact_problem({{0x1p12F}}, {{0x1p12F}}));
  CHECK_FALSE(is_exact_problem({{0x1p11F, 1}}, {{0x1p12F}, {1}}));
  CHECK_FALSE(is_exact_problem({{1e38F}}, {{1e38F}}));
  CHECK_FALSE(is_exact_problem({{0}}, {{1e38F}}));
  CHECK_THROWS_AS(is_exact_problem({{1, 2}}, {{1}}), std::invalid_argument);
}

TEST_CASE("results that must not be finite") {
  SUBCASE("a NaN in A makes its row NaN") {
    const Matrix<float> a{{1, not_a_number}, {1, 1}};
    const Matrix<float> b{{1, 2}, {0, 4}};
    CHECK(check_full(a, b, {{not_a_number, not_a_number}, {1, 6}}).passed);
    CHECK_FALSE(check_full(a, b, {{not_a_number, 6}, {1, 6}}).passed);
    CHECK_FALSE(check_full(a, b, {{not_a_number, not_a_number}, {not_a_number, 6}}).passed);
  }
  SUBCASE("an infinity keeps its sign") {
    const Matrix<float> a{{1, -inf}};
    const Matrix<float> b{{1}, {2}};
    CHECK(check_full(a, b, {{-inf}}).passed);
    CHECK_FALSE(check_full(a, b, {{inf}}).passed);
    CHECK_FALSE(check_full(a, b, {{not_a_number}}).passed);
    CHECK_FALSE(check_full(a, b, {{-1e38F}}).passed);
  }
  SUBCASE("a sum beyond float's range") {
    const Matrix<float> b{{3e38F}, {3e38F}};
    CHECK(check_full({{1, 1}}, b, {{inf}}).passed);
    CHECK_FALSE(check_full({{1, 1}}, b, {{std::numeric_limits<float>::max()}}).passed);
    CHECK(check_full({{1, 1, -1}}, {{3e38F}, {3e38F}, {3e38F}}, {{inf}}).passed);  // overflows on the way in this order
    CHECK(check_full({{1, 1, -1}}, {{3e38F}, {3e38F}, {3e38F}}, {{3e38F}}).passed);
    CHECK_FALSE(check_full({{1}}, {{3e38F}}, {{inf}}).passed);
  }
  SUBCASE("the probe leaves them to the samples and checks the rest") {
    Matrix<float> a = random_matrix(100, 30, 1);
    Matrix<float> b = random_matrix(30, 100, 2);
    a(7, 3) = not_a_number;
    b(5, 60) = inf;
    a(20, 1) = b(1, 20) = 3e30F;
    const Matrix<float> c = multiply_serial(a, b);
    CHECK(c(20, 20) == inf);
    CHECK(check_full(a, b, c).passed);
    CHECK(check_probe(a, b, c, 1, 4).passed);
    Matrix<float> wrong = c;
    wrong(50, 50) = not_a_number;
    CHECK_FALSE(check_probe(a, b, wrong, 1, 4).passed);
  }
}

TEST_CASE("flushed denormals pass, and only they") {
  const float tiny = 0x1p-130F;
  CHECK(check_full({{tiny}}, {{1}}, {{0}}).passed);             // an input flushed
  CHECK(check_full({{tiny}}, {{0x1p100F}}, {{0}}).passed);      // an input flushed, the product large
  CHECK(check_full({{0x1p-70F}}, {{0x1p-70F}}, {{0}}).passed);  // a result flushed
  CHECK_FALSE(check_full({{0x1p-60F}}, {{0x1p-60F}}, {{0}}).passed);
  CHECK_FALSE(check_full({{0}}, {{0.5F}}, {{tiny}}).passed);
}

TEST_CASE("a subnormal number beside a huge one in another row or column lets no wrong element pass") {
  Matrix<float> a = random_matrix<float>(40, 30, 5), b = random_matrix<float>(30, 50, 6);
  a(3, 4) = 1e-40f;
  b(5, 7) = 1e38f;
  const Matrix<float> right = multiply_serial(a, b);
  CHECK(check_full(a, b, right).passed);
  CHECK(check_probe(a, b, right, 1, 4).passed);
  for (const auto& [row, column] : {std::pair{3, 8}, {4, 8}, {20, 30}}) {
    Matrix<float> wrong = right;
    wrong(row, column) = 0;
    CHECK(!check_full(a, b, wrong).passed);
  }
}

TEST_CASE("the two ratios") {
  const Matrix<float> third{{1.0F / 3}};
  const Check one = check_full(third, third, multiply_serial(third, third));
  CHECK(one.worst_ratio > 0);
  CHECK(one.worst_ratio < 1);
  CHECK(one.worst_ratio_sqrt == doctest::Approx(one.worst_ratio / 2));  // 2 sqrt(1) u beside gamma_1 = u / (1 - u)
  CHECK(one.bound == doctest::Approx(0x1p-24 / 9));
}

TEST_CASE("the bound stays finite for any k") {
  const std::int64_t k = 1 << 24;
  const Matrix<float> a(1, k, std::vector<float>(static_cast<std::size_t>(k), 1));
  const Matrix<float> b(k, 1, std::vector<float>(static_cast<std::size_t>(k), 1));
  CHECK(check_full(a, b, {{0x1p24F}}).passed);
  CHECK_FALSE(check_full(a, b, {{0x1p26F}}).passed);
}

TEST_CASE("error ratios are those of the full check") {
  const Matrix<float> c = changed(floats.c, [](auto& x) { x(3, 5) += 0.25F; });
  const Matrix<float> ratios = error_ratios(floats.a, floats.b, c);
  const Check full = check_full(floats.a, floats.b, c);
  CHECK(ratios(3, 5) == static_cast<float>(full.worst_ratio));
  CHECK(*std::max_element(ratios.elements().begin(), ratios.elements().end()) == ratios(3, 5));
  CHECK(ratios(3, 6) <= 1);
}

TEST_CASE("random matrices are the same on every machine") {
  CHECK(random_matrix(1, 4, 1) ==
        Matrix<float>{{1116717 * 0x1p-23F, 4123533 * 0x1p-23F, 7902114 * 0x1p-23F, -933498 * 0x1p-23F}});
  CHECK(random_integer_matrix(1, 6, 5, 1) == Matrix<float>{{4, 3, -5, 2, 2, -4}});
  CHECK(random_matrix(8, 8, 1) == random_matrix(8, 8, 1));
  CHECK_FALSE(random_matrix(8, 8, 1) == random_matrix(8, 8, 2));
  double sum = 0;
  const Matrix<float> many = random_matrix(300, 300, 5);
  for (const float x : many.elements()) {
    if (!(x >= -1 && x < 1)) FAIL("out of range: ", x);
    sum += static_cast<double>(x);
  }
  CHECK(std::fabs(sum / 90000) < 0.01);
  const Matrix<float> small = random_integer_matrix(30, 30, 2, 6);
  for (const float x : small.elements())
    if (!(x >= -2 && x <= 2 && x == std::trunc(x))) FAIL("out of range: ", x);
  CHECK(std::ranges::count(small.elements(), -2) > 0);
  CHECK(std::ranges::count(small.elements(), 2) > 0);
  CHECK_THROWS_AS(random_integer_matrix(1, 1, -1, 1), std::invalid_argument);
}

namespace {

template <class T>
constexpr bool complex_v = std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;
template <class T>
constexpr double roundoff = std::is_same_v<T, double> || std::is_same_v<T, std::complex<double>> ? 0x1p-53 : 0x1p-24;

/// alpha op(A) op(B) + beta C0 by the plainest loop, in the accumulator's own arithmetic; integers wrap.
template <class T>
Matrix<accumulator_t<T>> plain(const Matrix<T>& a_stored, const Matrix<T>& b_stored, const Terms<T>& terms) {
  using A = accumulator_t<T>;
  const Matrix<T> a = apply_op(terms.op_a, a_stored), b = apply_op(terms.op_b, b_stored);
  Matrix<A> c(a.rows(), b.columns());
  for (std::int64_t i = 0; i < c.rows(); ++i)
    for (std::int64_t j = 0; j < c.columns(); ++j) {
      if constexpr (std::is_integral_v<T>) {
        std::uint64_t sum = 0;
        const auto wide = [](auto x) { return static_cast<std::uint64_t>(static_cast<std::int64_t>(x)); };
        for (std::int64_t p = 0; p < a.columns(); ++p) sum += wide(a(i, p)) * wide(b(p, j));
        c(i, j) = static_cast<A>(wide(terms.alpha) * sum + (terms.beta != 0 ? wide(terms.beta) * wide((*terms.c0)(i, j)) : 0));
      } else {
        A sum(0);
        for (std::int64_t p = 0; p < a.columns(); ++p) sum += static_cast<A>(a(i, p)) * static_cast<A>(b(p, j));
        c(i, j) = terms.alpha * sum;
        if (terms.beta != A(0)) c(i, j) += terms.beta * (*terms.c0)(i, j);
      }
    }
  return c;
}

/// For every type: f(T()).
template <class F>
void for_each_type(F f) {
  for (const Type type : all_types) with_type(type, f);
}

template <class A>
A scalar(int real, int imaginary) {
  if constexpr (complex_v<A>)
    return A(static_cast<typename A::value_type>(real), static_cast<typename A::value_type>(imaginary));
  else
    return static_cast<A>(real);
}

}  // namespace

TEST_CASE("every type: right products pass and one wrong element is caught, with ops and scalars") {
  for_each_type([]<class T>(T) {
    using A = accumulator_t<T>;
    for (const bool of_integers : {true, false})
      for (const bool scaled : {false, true}) {
        INFO(to_string(type_of<T>()), of_integers ? " integers" : "", scaled ? " scaled" : "");
        const std::int64_t m = 70, n = 66, k = 40;
        const auto random = [&](auto type, std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
          using X = decltype(type);
          return of_integers ? random_integer_matrix<X>(rows, columns, 5, seed) : random_matrix<X>(rows, columns, seed);
        };
        const Matrix<T> a = scaled ? random(T(), k, m, 1) : random(T(), m, k, 1),
                        b = scaled ? random(T(), n, k, 2) : random(T(), k, n, 2);
        const Matrix<A> c0 = random(A(), m, n, 3);
        Terms<T> terms;
        if (scaled) terms = {Op::conjugate_transpose, Op::transpose, scalar<A>(-3, 2), scalar<A>(2, -1), &c0};
        const Matrix<A> c = plain(a, b, terms);
        const bool exact = of_integers || std::is_integral_v<T>;
        CHECK(is_exact_problem(a, b, terms) == exact);
        const Check full = check_full(a, b, c, terms);
        CAPTURE(full.summary);
        CHECK(full.passed);
        CHECK(full.method == (exact ? "exact" : "bound"));
        CHECK(full.worst_ratio <= 0.5);
        CHECK(full.compared == c.size());
        // Products of 8-bit floats have so few bits that a float holds their sums.
        CHECK((full.worst_ratio == 0) == (exact || (sizeof(T) == 1 && !scaled)));
        for (const std::int64_t samples : {4, 4096}) CHECK(check_probe(a, b, c, 1, samples, terms).passed);

        for (const auto& [i, j] : {std::pair<std::int64_t, std::int64_t>{0, 0}, {m - 1, n - 1}, {33, 31}, {m - 1, 5}}) {
          Matrix<A> wrong = c;
          // Integers are off by one, in complex ones the imaginary part; the rest by four times the bound.
          const double size = 45 * static_cast<double>(k + 4) * roundoff<A> * (scaled ? 6 : 1) * 4;
          if constexpr (std::is_integral_v<T>)
            wrong(i, j) = static_cast<A>(static_cast<std::uint32_t>(c(i, j)) + 1U);
          else if constexpr (complex_v<T>) {
            using R = typename T::value_type;
            wrong(i, j) += T(0, exact ? R(1) : static_cast<R>(4 * size));
          } else
            wrong(i, j) += exact ? A(1) : static_cast<A>(size);
          const Check caught = check_full(a, b, wrong, terms);
          check_caught(caught, i, j);
          CHECK(caught.summary.find("WRONG") != std::string::npos);
          CHECK((caught.summary.find("imaginary") != std::string::npos) == complex_v<T>);
          if (exact) CHECK_FALSE(check_probe(a, b, wrong, 7, 4, terms).passed);
        }
        if (!scaled) continue;
        // Each of the terms counts.
        const Matrix<A> zeros(m, n);
        std::vector<Terms<T>> others(4, terms);
        others[0].alpha = scalar<A>(-3, 3) + scalar<A>(1, 0);
        others[1].beta = scalar<A>(2, 1) + scalar<A>(1, 0);
        others[2].c0 = &zeros;
        others[3].beta = A(0);
        if (complex_v<T>) others.emplace_back(terms).op_a = Op::transpose;
        for (const Terms<T>& other : others) {
          CAPTURE(&other - others.data());
          CHECK_FALSE(check_full(a, b, c, other).passed);
          CHECK_FALSE(check_probe(a, b, c, 1, 4, other).passed);
        }
      }
  });
}

TEST_CASE("every type: the serial loop is the product") {
  for_each_type([]<class T>(T) {
    const Matrix<T> a = random_integer_matrix<T>(9, 7, 5, 1), b = random_integer_matrix<T>(7, 8, 5, 2);
    CHECK(multiply_serial(a, b) == plain(a, b, {}));
  });
  const Matrix<std::int32_t> large = random_matrix<std::int32_t>(20, 20, 1);
  CHECK(multiply_serial(large, large) == plain(large, large, {}));
}

TEST_CASE("integers wrap") {
  const Matrix<std::int32_t> a{{65536, 1}}, b{{65536}, {7}};
  CHECK(check_full(a, b, {{7}}).passed);
  CHECK_FALSE(check_full(a, b, {{8}}).passed);
  const Matrix<std::int32_t> minus{{-2}}, three{{3}};
  CHECK(check_full(minus, three, {{-6}}).passed);
  const Check signed_check = check_full(minus, three, {{-5}});
  CHECK(signed_check.got == -5);
  CHECK(signed_check.expected == -6);
  const Matrix<std::uint32_t> most{{0xffffffffU}}, two{{2}};
  CHECK(check_full(most, two, {{0xfffffffeU}}).passed);
  CHECK(check_full(most, two, {{1}}).expected == 4294967294.0);
  CHECK(check_full(Matrix<std::int8_t>{{-128}}, Matrix<std::int8_t>{{-128}}, {{16384}}).passed);
}

TEST_CASE("the probe of integers never misses one wrong element, however even") {
  const Matrix<std::int32_t> a = random_matrix<std::int32_t>(80, 9, 1), b = random_matrix<std::int32_t>(9, 80, 2),
                             c = multiply_serial(a, b);
  CHECK(check_probe(a, b, c, 1, 4).passed);
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    for (const std::uint32_t off : {1U, 0x10000U, 0x80000000U}) {
      Matrix<std::int32_t> wrong = c;
      wrong(40, 33) = static_cast<std::int32_t>(static_cast<std::uint32_t>(c(40, 33)) + off);
      check_caught(check_probe(a, b, wrong, seed, 4), 40, 33);
    }
}

TEST_CASE("doubles are held to double's bound") {
  const Matrix<double> a = random_matrix<double>(20, 30, 1), b = random_matrix<double>(30, 20, 2);
  Matrix<double> c = multiply_serial(a, b);
  const Check right = check_full(a, b, c);
  CHECK(right.passed);
  CHECK(right.worst_ratio > 0.001);
  for (double& x : c.elements()) x = static_cast<double>(static_cast<float>(x));
  CHECK_FALSE(check_full(a, b, c).passed);
  CHECK_FALSE(check_probe(a, b, c, 1, 4).passed);
  const Matrix<double> large{{0x1p52}}, one{{1}};
  CHECK(is_exact_problem(large, one));
  CHECK_FALSE(is_exact_problem(Matrix<double>{{0x1p53}}, one));
}

TEST_CASE("C of 16 bits is rounded once more") {
  const Matrix<half> a = random_matrix<half>(70, 50, 1), b = random_matrix<half>(50, 70, 2);
  const Matrix<float> wide = multiply_serial(a, b);
  Matrix<half> c(70, 70);
  for (std::size_t i = 0; i < 4900; ++i) c.elements()[i] = half(wide.elements()[i]);
  CHECK(check_full(a, b, c).passed);
  CHECK(check_full(a, b, c).worst_ratio <= 1);
  CHECK(check_probe(a, b, c, 1, 4).passed);
  c(40, 50) = half(float(c(40, 50)) * 1.003F);
  CHECK_FALSE(check_full(a, b, c).passed);
  for (std::int64_t j = 0; j < 70; ++j) c(40, j) = c(41, j);
  CHECK_FALSE(check_probe(a, b, c, 1, 4).passed);
  // 60 * 60 * 20 = 72000 is beyond a half; 2049 is rounded to even.
  const Matrix<half> row_of_60(1, 20, std::vector<half>(20, half(60))), column_of_60(20, 1, std::vector<half>(20, half(60)));
  CHECK(check_full(row_of_60, column_of_60, Matrix<half>{{half(inf)}}).passed);
  CHECK_FALSE(check_full(row_of_60, column_of_60, Matrix<half>{{half(-inf)}}).passed);
  CHECK_FALSE(check_full(row_of_60, column_of_60, Matrix<half>{{half(65504)}}).passed);
  // Elements of a row that overflow with both signs: their sum is NaN, and no element of it.
  Matrix<half> large(1, 30), columns(30, 40), overflowing(1, 40);
  for (std::int64_t q = 0; q < 30; ++q) {
    large(0, q) = half(60);
    for (std::int64_t j = 0; j < 40; ++j) columns(q, j) = half(j % 2 == 0 ? 60.0F : -60.0F);
  }
  for (std::int64_t j = 0; j < 40; ++j) overflowing(0, j) = half(j % 2 == 0 ? inf : -inf);
  CHECK(check_probe(large, columns, overflowing, 1, 4).passed);
  overflowing(0, 17) = half(not_a_number);
  CHECK_FALSE(check_probe(large, columns, overflowing, 1, 4).passed);
  const Matrix<half> small(1, 30, std::vector<half>(30, half(1))), unit(30, 40, std::vector<half>(1200, half(1)));
  Matrix<half> of_30(1, 40, std::vector<half>(40, half(30)));
  CHECK(check_probe(small, unit, of_30, 1, 4).passed);
  of_30(0, 17) = half(inf);  // nothing here can overflow
  CHECK_FALSE(check_probe(small, unit, of_30, 1, 4).passed);
  const Matrix<half> odd{{half(2047), half(2)}}, ones{{half(1)}, {half(1)}};
  CHECK(check_full(odd, ones, Matrix<half>{{half(2048)}}).passed);
  CHECK_FALSE(check_full(odd, ones, Matrix<half>{{half(2050)}}).passed);
  // A wrong element is what is named, whatever the rounding of right ones.
  const Matrix<half> two{{half(2048), half(1)}, {half(4092), half(1)}};  // 2049 and 4093: 2048 and 4092 to even
  const Check named = check_full(two, ones, Matrix<half>{{half(2048)}, {half(4094)}});
  CHECK_FALSE(named.passed);
  CHECK(named.row == 1);
  CHECK(named.summary == "exact: WRONG: element (1, 0) is 4094, expected 4093 exactly");
  CHECK(error_ratios(two, ones, Matrix<half>{{half(2048)}, {half(4094)}}) ==
        Matrix<float>{{0}, {std::numeric_limits<float>::infinity()}});
}

TEST_CASE("alpha of 0 hides A and B, beta of 0 hides C0") {
  const Matrix<float> a{{not_a_number}}, b{{1}}, c0{{5}}, hidden{{not_a_number}};
  CHECK(check_full(a, b, {{10}}, {.alpha = 0, .beta = 2, .c0 = &c0}).passed);
  CHECK_FALSE(check_full(a, b, {{not_a_number}}, {.alpha = 0, .beta = 2, .c0 = &c0}).passed);
  CHECK(check_full(b, b, {{3}}, {.alpha = 3, .c0 = &hidden}).passed);
  CHECK(check_full(b, b, {{not_a_number}}, {.alpha = 3, .beta = 1, .c0 = &hidden}).passed);
}

TEST_CASE("complex elements that are not finite") {
  using C = std::complex<float>;
  const Matrix<C> a{{C(inf, 0)}}, b{{C(1, 1)}};
  CHECK(check_full(a, b, {{C(inf, inf)}}).passed);
  CHECK(check_full(a, b, {{C(inf, not_a_number)}}).passed);
  CHECK_FALSE(check_full(a, b, {{C(1, 1)}}).passed);
  CHECK_FALSE(check_full(b, b, {{C(not_a_number, 2)}}).passed);
  CHECK_FALSE(check_full(b, b, {{C(0, inf)}}).passed);
}

TEST_CASE("shapes with ops") {
  const Matrix<float> a(3, 4), b(5, 3), c(4, 5);
  CHECK(check_full(a, b, c, {.op_a = Op::transpose, .op_b = Op::transpose}).passed);
  CHECK_THROWS_WITH_AS(check_full(a, b, c, {.op_b = Op::transpose}),
                       "check_full: A is 3x4 and op(B) is 3x5: the inner sizes 4 and 3 differ", std::invalid_argument);
  CHECK_THROWS_WITH_AS(check_full(a, b, a, {.op_a = Op::transpose, .op_b = Op::transpose}),
                       "check_full: op(A) is 4x3, op(B) is 3x5 and C is 3x4: C must be 4x5", std::invalid_argument);
  const Matrix<float> x(2, 2);
  CHECK_THROWS_WITH_AS(check_full(x, x, x, {.beta = 1}), "check_full: beta is not 0, and there is no C0", std::invalid_argument);
  CHECK_THROWS_WITH_AS(check_probe(x, x, x, 1, 4, {.beta = 1, .c0 = &a}), doctest::Contains("C0 must be 2x2"),
                       std::invalid_argument);
}

TEST_CASE("apply_op") {
  using C = std::complex<double>;
  const Matrix<C> x{{C(1, 2), C(3, 4)}};
  CHECK(apply_op(Op::none, x) == x);
  CHECK(apply_op(Op::transpose, x) == Matrix<C>{{C(1, 2)}, {C(3, 4)}});
  CHECK(apply_op(Op::conjugate_transpose, x) == Matrix<C>{{C(1, -2)}, {C(3, -4)}});
}

TEST_CASE("canonical_product sums blocks of k, and then the blocks") {
  // In one chain, 2^24 would swallow each 1 that follows.
  const std::int64_t k = canonical_block + 3;
  Matrix<float> a(1, k), b(k, 1);
  for (std::int64_t p = 0; p < k; ++p) b(p, 0) = 1;
  a(0, 0) = 0x1p24f;
  for (std::int64_t p = canonical_block; p < k; ++p) a(0, p) = 1;
  CHECK(multiply_serial(a, b)(0, 0) == 0x1p24f);
  CHECK(canonical_product(a, b)(0, 0) == 0x1p24f + 4);  // 3, halfway to even
  const Matrix<float> c0{{3}};
  CHECK(canonical_product(a, b, {.alpha = 0, .beta = 2, .c0 = &c0})(0, 0) == 6);
  CHECK(canonical_product<std::int32_t>({{1 << 30}}, {{4}})(0, 0) == 0);
  CHECK(static_cast<float>(canonical_product<half, half>({{half(60000)}}, {{half(2)}})(0, 0)) == inf);
  CHECK_THROWS_AS(canonical_product(a, a), std::invalid_argument);
}

TEST_CASE("an extended product is held to 4 u M, however long the sum") {
  const std::int64_t k = 4096;
  Matrix<float> a(1, k), b(k, 1);
  for (std::int64_t p = 0; p < k; ++p) a(0, p) = b(p, 0) = 1.0f + static_cast<float>(p) * 0x1p-20f;
  double exact = 0;
  for (std::int64_t p = 0; p < k; ++p) exact += static_cast<double>(a(0, p)) * static_cast<double>(b(p, 0));
  const Terms<float> extended{.precision = Precision::extended};
  const auto passed = [&](double error, const Terms<float>& terms) {
    return check_full(a, b, {{static_cast<float>(exact * (1 + error))}}, terms).passed;
  };
  CHECK(passed(0x1p-23, extended));
  CHECK_FALSE(passed(0x1p-21, extended));
  CHECK(passed(0x1p-21, {}));
}

TEST_CASE("what matrix cores may have summed is held to 4 K u M: halves where it is said, floats with Precision::fast") {
  const std::int64_t k = 1024;
  const auto passed = [&]<class T>(T third, double error, const Terms<T, float>& terms) {
    Matrix<T> a(1, k), b(k, 1);
    double exact = 0;
    for (std::int64_t p = 0; p < k; ++p) {
      a(0, p) = b(p, 0) = third;
      exact += static_cast<double>(static_cast<float>(third)) * static_cast<double>(static_cast<float>(third));
    }
    const Check check = check_full<T, float>(a, b, {{static_cast<float>(exact * (1 + error))}}, terms);
    CHECK(check.greatest_bound == check.bound);  // of one element
    return check.passed;
  };
  const double u = 0x1p-24, few = 3 * k * u, many = 5 * k * u;
  CHECK_FALSE(passed(half(1.0f / 3), few, {}));
  CHECK(passed(half(1.0f / 3), few, {.matrix_cores = true}));
  CHECK_FALSE(passed(half(1.0f / 3), many, {.matrix_cores = true}));
  CHECK(passed(bfloat16(1.0f / 3), few, {.matrix_cores = true}));
  CHECK_FALSE(passed(1.0f / 3, few, {.matrix_cores = true}));  // floats are TF32 there, which is Precision::fast
  CHECK(passed(1.0f / 3, 0x1p-9 + few, {.precision = Precision::fast}));
  CHECK_FALSE(passed(1.0f / 3, 0x1p-9 + many, {.precision = Precision::fast}));
}

TEST_CASE("a quantised operand has two roundings more, but where the product is reproducible") {
  const Matrix<float> a{{1.0f / 3}}, b{{1}};
  const auto passed = [&](int units, const Terms<float>& terms) {
    return check_full(a, b, {{static_cast<float>(a(0, 0) * (1 + units * 0x1p-24))}}, terms).passed;
  };
  CHECK_FALSE(passed(2, {}));
  CHECK(passed(2, {.quantized = true}));
  CHECK_FALSE(passed(4, {.quantized = true}));
  CHECK_FALSE(passed(2, {.precision = Precision::reproducible, .quantized = true}));
}

TEST_CASE("the median of the ratios") {
  const Matrix<float> a{{1}}, b{{0.5f, 0.5f, 0.5f, 0.5f}};
  const Check check = check_full(a, b, {{0.5f, 0.5f, 0.5f, 0.6f}});
  CHECK(check.worst_ratio > 1);
  CHECK(check.median_ratio == 0);
  CHECK(check_full(a, b, {{0.5f, 0.6f, 0.6f, 0.6f}}).median_ratio > 1);
}

TEST_CASE("the summary says where the worst error is, and the median") {
  const auto says = [](const Check& check, const std::string& part) {
    CAPTURE(check.summary);
    CHECK(check.summary.find(part) != std::string::npos);
  };
  const Check right = check_full(floats.a, floats.b, floats.c);
  const auto place = [](const Check& x) { return "element (" + std::to_string(x.row) + ", " + std::to_string(x.column) + ")"; };
  REQUIRE(right.worst_ratio > 0);
  says(right, ", in " + place(right) + ", and the median error ");
  const Check wrong = check_full(floats.a, floats.b, changed(floats.c, [](auto& c) { c(3, 5) += 100; }));
  says(wrong, "WRONG: element (3, 5) is ");
  says(wrong, " times its bound; the median error is ");
  CHECK(wrong.median_ratio == doctest::Approx(right.median_ratio).epsilon(0.1));
}
