// Histograms of errors: every element is in the bin of its ratio.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>

#include <glgemm/verify.hpp>

#include "drawing/error_histogram.hpp"

using namespace glgemm;
using namespace glgemm::tools;

namespace {

std::int64_t all(const ErrorBins& found) {
  return found.none + found.endless + std::accumulate(found.bins.begin(), found.bins.end(), std::int64_t{0});
}

std::int64_t count(const std::string& text, const std::string& part) {
  std::int64_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("error histogram - each ratio in its bin, and the bound ends one") {
  constexpr float inf = std::numeric_limits<float>::infinity();
  const ErrorBins found = error_bins({{0, 0, 1, 1.0001F}, {0.1F, 0.05F, inf, std::nanf("")}});
  CHECK(found.none == 2);
  CHECK(found.endless == 2);
  CHECK(found.first == -6);  // 0.05 is above 10^(-6/4)
  REQUIRE(found.bins.size() == 7);
  CHECK(found.bins == std::vector<std::int64_t>{1, 0, 1, 0, 0, 1, 1});  // 0.1F is above 10^-1, and 1 ends its bin
  CHECK(found.worst == std::numeric_limits<double>::infinity());
  CHECK(found.worst_at == 6);
  CHECK(found.median == doctest::Approx(0.1F));
  CHECK(all(found) == 8);
  CHECK_THROWS_AS(error_bins(Matrix<float>(0, 3)), std::invalid_argument);
}

TEST_CASE("error histogram - a planted error is alone in the last bin") {
  const Matrix<float> a = random_matrix(40, 100, 1), b = random_matrix(100, 30, 2);
  Matrix<float> c = multiply_serial(a, b);
  const ErrorBins right = error_bins(error_ratios(a, b, c));
  CHECK(all(right) == 40 * 30);
  CHECK(right.worst == doctest::Approx(check_full(a, b, c).worst_ratio));
  CHECK(right.median == doctest::Approx(check_full(a, b, c).median_ratio));
  CHECK(right.first + static_cast<int>(right.bins.size()) == 0);  // the bound
  c(7, 9) += 1;
  const Matrix<float> ratios = error_ratios(a, b, c);
  const ErrorBins wrong = error_bins(ratios);
  CHECK(all(wrong) == 40 * 30);
  CHECK(wrong.bins.back() == 1);
  CHECK(wrong.first + static_cast<int>(wrong.bins.size()) > 4);
  CHECK(wrong.worst_at == 7 * 30 + 9);
  const std::string picture = error_histogram(ratios, "Errors of <C>");
  CHECK(picture.find("Errors of &lt;C&gt;") != std::string::npos);
  CHECK(picture.find(" at (7, 9)</text>") != std::string::npos);
  CHECK(count(picture, "class=\"c1 fill\" fill=\"#d55e00\"") == 2);  // the bar beyond the bound, and the legend's
  CHECK(error_histogram(ratios, "", 4).find(" at product 0, (7, 9)</text>") != std::string::npos);
  CHECK(error_histogram(ratios, "", 8).find(" at product 1, (2, 9)</text>") != std::string::npos);
}

TEST_CASE("error histogram - without any error") {
  const ErrorBins found = error_bins(Matrix<float>(2, 2));
  CHECK(found.none == 4);
  CHECK(all(found) == 4);
  CHECK(error_histogram(Matrix<float>(2, 2), "").find("<title>4 elements without an error</title>") != std::string::npos);
}
