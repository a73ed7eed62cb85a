// What `glgemm bench` tells: tables for people, and JSON.
#pragma once

#include <array>
#include <cstdint>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "bench/bench.hpp"
#include "bench/measure.hpp"
#include "bench/ratios.hpp"
#include "bench/roofline.hpp"
#include "peers/peers.hpp"

namespace glgemm::tools {

/// Operations in 10^9 per second. A time of 0, from a clock too coarse for the work, is taken as a nanosecond.
double gflops(double flops, double milliseconds);
/// A time in milliseconds or a rate, with decimals that line up below each other unless it is very small.
std::string digits(double value);

/// "OpenGL 4.5 ...", "OpenGL ES 3.2 ...".
std::string api_and_version(const DeviceInfo& device);

/// The rows of the table: its header is here, so that the two agree.
class Table {
 public:
  Table(std::ostream& out, const BenchOptions& options);
  void header(const DeviceInfo& device, std::span<const PeerClient> peers, const Roofline* roofline);
  void rule();
  /// The size and the baseline stand in the first row of a shape only.
  void row(const Shape& shape, bool first, const Baseline& baseline, const Measurement& result);
  void row(const Ratio& ratio);
  void note(const std::string& text) { notes_.push_back(text); }
  void notes();

 private:
  using Text = const std::string&;
  void line(Text size, Text serial_ms, Text serial_rate, Text kernel, Text kernel_ms, Text rate, Text total_ms, Text faster,
            Text error, Text median, Text check);

  std::ostream& out_;
  const BenchOptions& options_;
  int size_width_ = 6;
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
/// Adds what was measured on one shape.
void add_results(nlohmann::ordered_json& json, const Shape& shape, const BenchOptions& options, const Baseline& baseline,
                 std::span<const Measurement> results, std::span<const Ratio> ratios);

void add_ratio(nlohmann::ordered_json& json, const Ratio& ratio);
void add_ratios(nlohmann::ordered_json& json, std::span<const Ratio> ratios);

BenchResult bench_result(bool passed, const nlohmann::ordered_json& json);

}  // namespace glgemm::tools
