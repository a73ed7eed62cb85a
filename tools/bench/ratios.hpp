// The ratios that `glgemm bench` states: how one thing compares with another, measured in the same run.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/bench.hpp"
#include "bench/measure.hpp"
#include "bench/roofline.hpp"

namespace glgemm::tools {

/// How many times as fast `of` is as `over`: the ratio of the medians of their times, or the share of a limit that is reached.
/// `low` and `high` are the spread. `low` compares the slower quartile of `of` with the faster quartile of `over`; `high` is the
/// reverse.
struct Ratio {
  std::string name;  ///< "auto over tiled, 1024x1024x1024 f32"
  std::string of;    ///< as requested, or a peer's name
  std::string over;  ///< as requested, a peer's name, "roofline", "reading rate" or "best of space"
  double value = 0;
  double low = 0;
  double high = 0;
  std::int64_t points = 0;  ///< of the space
};

constexpr std::string_view best_of_space = "best of space";

/// "1024x700x2048-tn f32, batch of 3": every size, so that names can be looked up without rules.
std::string product_text(const Shape& shape, const BenchOptions& options);

/// Of quotients that were measured pairwise: their median and quartiles.
Ratio ratio_of(const std::string& name, const std::string& of, const std::string& over, const std::vector<double>& values);

/// Of the results on one shape:
///  - auto (where it was not asked for, each kernel) over tiled and over naive, of kernel times;
///  - auto over the best of the space, if both were asked for, of kernel times;
///  - each kernel over each peer, of times on the host's clock, from the call until C is there;
///  - with a roofline, each kernel's share of what is reachable there: of the lesser of the arithmetic's rate and of the reading
///    rate times the operations for each byte, where A and B (and C, with beta) are read once and C is written once; and where m
///    or n is at most 8, its share of the reading rate, of the same bytes.
std::vector<Ratio> ratios(const Shape& shape, const BenchOptions& options, const std::vector<Measurement>& results,
                          const Roofline* roofline);

/// The geometric mean of the ratios of several shapes, for each pair of `of` and `over`: "auto over tiled, geometric mean of 4".
std::vector<Ratio> geometric_means(std::span<const Ratio> ratios);

/// Two ratios of each run under a budget. The first is the share of the calls of advance that took over twice the budget, once
/// the rate was known. The second is the time of the run over the time of the plain product.
std::vector<Ratio> budget_ratios(const Shape& shape, const BenchOptions& options, const std::vector<Measurement>& results);

/// Bytes of A, B and C, and of C once more if it is read.
double min_bytes(const Shape& shape, const BenchOptions& options);

}  // namespace glgemm::tools
