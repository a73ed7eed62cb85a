// What `glgemm bench` tells: ratios, tables for people, and JSON.
#pragma once

#include <array>
#include <cstdint>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "bench/bench.hpp"
#include "bench/measure.hpp"
#include "bench/roofline.hpp"
#include "peers/peers.hpp"

namespace glgemm::tools {

// How one thing compares with another, measured in the same run.

/// How many times as fast `of` is as `over`: the ratio of the medians of their times, or the share of a limit that is reached.
/// `low` and `high` are the spread. `low` compares the slower quartile of `of` with the faster quartile of `over`; `high` is the
/// reverse.
struct Ratio {
  std::string name;  ///< "auto over tiled, 1024x1024x1024 f32"
  std::string of;    ///< as requested, or a peer's name
  std::string over;  ///< as requested, a peer's name, "roofline" or "reading rate"
  double value = 0;
  double low = 0;
  double high = 0;
  nlohmann::ordered_json product = nullptr;  ///< product_json() of what was measured; null where it is none
  int mean_of = 0;                           ///< a geometric mean of so many products
};

/// "1024x700x2048-tn f32, batch of 3": every size, so that names can be looked up without rules.
std::string product_text(const Shape& shape, const BenchOptions& options);

/// The median and the quartiles of quotients that were measured pairwise.
Ratio ratio_of(const std::string& name, const std::string& of, const std::string& over, const std::vector<double>& values);

/// What is compared of the results on one shape:
///  - auto (where it was not asked for, each kernel) over tiled and over naive, of kernel times;
///  - each kernel over each peer, of times on the host's clock, from the call until C is there;
///  - with a roofline, each kernel's share of what is reachable there: of the lesser of the arithmetic's rate and of the reading
///    rate times the operations for each byte, where A and B (and C, with beta) are read once and C is written once; and where m
///    or n is at most 8, its share of the reading rate, for these bytes.
std::vector<Ratio> ratios(const Shape& shape, const BenchOptions& options, const std::vector<Measurement>& results,
                          const Roofline* roofline);

/// The geometric mean of the ratios of several shapes, for each pair of `of` and `over`: "auto over tiled, geometric mean of 4".
std::vector<Ratio> geometric_means(std::span<const Ratio> ratios);

/// Two ratios of each run under a budget. The first is the share of the calls of advance that took over twice the budget, once
/// the rate was known. The second is the time of the run over the time of the plain product.
std::vector<Ratio> budget_ratios(const Shape& shape, const BenchOptions& options, const std::vector<Measurement>& results);

/// Operations in 10^9 per second. A time of 0, from a clock too coarse for the work, is taken as a nanosecond.
double gflops(double flops, double milliseconds);
/// "1.20 to 1.45": the least and the most of times.
std::string range_text(const std::vector<double>& times);
/// A time in milliseconds or a rate, with decimals that line up below each other unless it is very small.
std::string digits(double value);

/// "OpenGL 4.5 ...", "OpenGL ES 3.2 ...".
std::string api_and_version(const DeviceInfo& device);

/// A text for people: its words in lines that keep to the terminal's width, or to other columns elsewhere. All lines but the
/// first are indented.
void say(std::ostream& out, const std::string& text, std::size_t indent = 0, std::size_t columns_elsewhere = 120);
inline constexpr std::size_t one_line = 1'000'000;  ///< columns

/// A table for people. What does not fit a terminal's width is left out, a column at a time, and that is said.
class Columns {
 public:
  struct Column {
    const char* heading;
    std::size_t width;
    int rank = 0;  ///< those of the highest rank are left out first, those of 0 never
    bool left = false;
  };
  Columns(std::ostream& out, std::vector<Column> columns);
  void header();
  void rule();
  /// A cell for each column.
  void row(const std::vector<std::string>& cells);

 private:
  std::size_t width() const;
  std::ostream& out_;
  std::vector<Column> columns_;
  std::vector<bool> shown_;
};

/// The table of products.
class Table {
 public:
  Table(std::ostream& out, const BenchOptions& options);
  void header(const DeviceInfo& device, std::span<const PeerClient> peers, const Roofline* roofline);
  void rule() { columns_.rule(); }
  /// The size and the baseline stand in the first row of a shape only.
  void row(const Shape& shape, bool first, const Baseline& baseline, const Measurement& result);
  void row(const Ratio& ratio);
  void note(const std::string& text) { notes_.push_back(text); }
  void notes();

 private:
  std::ostream& out_;
  const BenchOptions& options_;
  std::size_t size_width_;
  Columns columns_;
  std::vector<std::string> notes_;
};

/// The published experiment: square products on a Quadro 4000, with times in milliseconds.
struct PaperResult {
  std::int64_t n;
  double cpu_ms;
  double gpu_ms;
};

/// Times only: the published CPU rates count twice the operations of the GPU rates, so rates and speed-ups are taken from the
/// times.
inline constexpr std::array<PaperResult, 6> paper_results{{
    {128, 2.35, 0.31},
    {256, 19.02, 0.72},
    {512, 236.7, 4.02},
    {1024, 7967.3, 29.14},
    {2048, 86792, 230.85},
    {4096, 763312, 1831},
}};

/// What the comparison with the published figures needs of a result.
struct Ours {
  std::int64_t n;
  std::string kernel;
  double cpu_ms;
  double kernel_ms;
};

void print_paper(std::ostream& out, const std::vector<Ours>& ours);

// What was measured, as JSON.

/// {"device": {...}, "results": [], "ratios": []}; and where they are there, "peers": {"devices": {...}, "results": []} and
/// "roofline": {...}.
nlohmann::ordered_json bench_json(const DeviceInfo& device, std::span<const PeerClient> peers, const Roofline* roofline);
/// {"m", "n", "k", "type"}: with what every result begins.
nlohmann::ordered_json shape_json(const Shape& shape, const BenchOptions& options);
/// shape_json() with "op_a", "op_b" and "batch".
nlohmann::ordered_json product_json(const Shape& shape, const BenchOptions& options);
/// Adds what was measured on one shape.
void add_results(nlohmann::ordered_json& json, const Shape& shape, const BenchOptions& options, const Baseline& baseline,
                 std::span<const Measurement> results, std::span<const Ratio> ratios);

void add_ratio(nlohmann::ordered_json& json, const Ratio& ratio);
void add_ratios(nlohmann::ordered_json& json, std::span<const Ratio> ratios);

/// With "run", see run_json().
BenchResult bench_result(bool passed, const nlohmann::ordered_json& json);

/// {"kernel_ms_low": ...}: of times whose median is in `name`, "kernel_ms", the quartiles, least and most.
nlohmann::ordered_json spread_json(const std::string& name, const std::vector<double>& times);

/// The results in a JSON of bench, peers' too, as CSV: a row for each, a column for each value ("check.method"), and the device,
/// the version and the date.
std::string csv_text(const nlohmann::ordered_json& json);

}  // namespace glgemm::tools
