// The cost model beside what was measured on a GPU.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include <glgemm/kernel.hpp>
#include <glgemm/limits.hpp>
#include <glgemm/problem.hpp>

#include "plan/cost_model.hpp"
#include "support/test_data.hpp"

using namespace glgemm;

namespace {

struct Row {
  std::string line;
  std::tuple<std::int64_t, std::int64_t, std::int64_t> sizes;
  std::string family;
  double measured = 0, expected = 0;  ///< ms

  int parameter(const std::string& name) const {
    const std::size_t at = line.find(name + '=');
    return at == std::string::npos ? 0 : std::atoi(line.c_str() + at + name.size() + 1);
  }
  /// Whether the planner takes such a kernel for this device. What the compiler makes of more sums, or of a step that is not
  /// written out, is no matter of prices.
  bool is_considered() const {
    return family != "blocked" ||
           (parameter("tile_m") * parameter("tile_n") <= 64 && parameter("step_k") >= std::min(16, parameter("block_k")));
  }
  double off() const { return std::max(expected / measured, measured / expected); }
};

/// tests/data/h200.csv, and what the model expects.
std::vector<Row> rows_of_h200() {
  std::vector<Row> rows;
  const std::vector<char> file = test_data<char>("h200.csv");
  std::istringstream in(std::string(file.begin(), file.end()));
  const Limits limits = usual_limits(DeviceClass::nvidia_hopper);
  for (std::string line; std::getline(in, line);) {
    long long m = 0, n = 0, k = 0, parts = 0;
    double ms = 0;
    char name[200]{};
    if (std::sscanf(line.c_str(), "%lld,%lld,%lld,%lld,%lf,\"%199[^\"]", &m, &n, &k, &parts, &ms, name) != 6) continue;
    const Kernel kernel = parse_kernel(name);
    const Problem problem{.m = m, .n = n, .k = k};
    rows.push_back({line,
                    {m, n, k},
                    to_string(kernel).substr(0, to_string(kernel).find(':')),
                    ms,
                    1e3 * expected_seconds(problem, kernel, limits, parts, 1e9)});
  }
  return rows;
}

/// The share of the rows for which that holds.
template <class Rows, class Holds>
double share(const Rows& rows, const Holds& holds) {
  return static_cast<double>(std::count_if(rows.begin(), rows.end(), holds)) / static_cast<double>(rows.size());
}

}  // namespace

TEST_CASE("the cost model expects what an H200 took") {
  const std::vector<Row> rows = rows_of_h200();
  REQUIRE(rows.size() >= 300);
  for (const Row& row : rows) {
    CAPTURE(row.line);
    CAPTURE(row.expected);
    // `blocked` depends on what the compiler makes of its registers too, and so does `gemv` with many sums.
    const bool has_many = row.family == "gemv" && row.parameter("tile_n") > 1;
    CHECK(row.off() < (row.family == "blocked" ? 2.0 : has_many ? 1.5 : row.family == "gemv" ? 1.4 : 1.3));
  }
  CHECK(share(rows, [](const Row& row) { return row.off() < 1.15; }) > 0.8);
  CHECK(share(rows, [](const Row& row) { return row.off() < 1.3; }) > 0.92);
}

TEST_CASE("of two kernels that differ, the cost model takes the right one for faster, and the fastest is near the best") {
  std::map<decltype(Row::sizes), std::vector<Row>> by_sizes;
  for (Row& row : rows_of_h200())
    if (row.is_considered()) by_sizes[row.sizes].push_back(std::move(row));
  std::int64_t pairs = 0, right = 0;
  for (const auto& [sizes, rows] : by_sizes) {
    for (const Row& x : rows)
      for (const Row& y : rows)
        if (1.3 * x.measured < y.measured) {
          ++pairs;
          right += x.expected <= y.expected;
        }
    const auto slower = [](double Row::*of) { return [of](const Row& x, const Row& y) { return x.*of < y.*of; }; };
    const Row& taken = *std::min_element(rows.begin(), rows.end(), slower(&Row::expected));
    const Row& best = *std::min_element(rows.begin(), rows.end(), slower(&Row::measured));
    CAPTURE(taken.line);
    CAPTURE(best.line);
    CHECK(taken.measured < 1.2 * best.measured);
  }
  CAPTURE(pairs);
  CHECK(pairs > 1000);
  CHECK(static_cast<double>(right) > 0.97 * static_cast<double>(pairs));
}
