// Prints what was measured.
#include "bench/table.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "bench/paper.hpp"
#include "product/check_json.hpp"

namespace glgemm::tools {
namespace {

std::string speed_up(double before, double after) {
  const double ratio = before / std::max(after, 1e-6);
  return fmt::format("{:.{}f}x", ratio, ratio < 1 ? 2 : 1);
}

}  // namespace

double gflops(double flops, double milliseconds) {
  return flops / std::max(milliseconds, 1e-6) / 1e6;
}

std::string digits(double value) {
  return fmt::format("{:.{}f}", value, value < 0.1 ? 4 : 2);
}

std::string api_and_version(const DeviceInfo& device) {
  return (device.version.starts_with("OpenGL") ? "" : "OpenGL ") + device.version;
}

Table::Table(std::ostream& out, const BenchOptions& options) : out_(out), options_(options) {
  for (const Shape& shape : options.shapes) size_width_ = std::max(size_width_, static_cast<int>(to_string(shape).size()));
}

void Table::header(const DeviceInfo& device, std::span<const PeerClient> peers, const Roofline* roofline) {
  const bool transposes = std::any_of(options_.shapes.begin(), options_.shapes.end(),
                                      [](const Shape& shape) { return shape.op_a != Op::none || shape.op_b != Op::none; });
  out_ << device.renderer << (device.software ? ", a software device" : "") << "; " << api_and_version(device)
       << (device.device_clock ? "" : "; no timer: kernel times are the host's") << '\n'
       << "C = " << (options_.alpha == 1.0 ? "" : "alpha ") << (transposes ? "op(A) op(B)" : "A B")
       << (options_.beta == 0.0 ? "" : " + beta C") << " in " << to_string(options_.type)
       << (is_integer(options_.type) ? ", elements random" : ", elements random in [-1, 1)")
       << ". Times are medians; total is with the copies to and from the device.\n"
       << (options_.batch == 1
               ? ""
               : fmt::format("Each line is a batch of {} products; times and rates are of them all.\n", options_.batch))
       << (is_complex(options_.type)   ? "GFLOP/s: 8 m n k / time, the operations of real numbers."
           : is_integer(options_.type) ? "GFLOP/s: 2 m n k / time, operations of integers here."
                                       : "GFLOP/s: 2 m n k / time.")
       << " Speed-up: the serial loop's time / the kernel's. Error: the worst, as a part of its proven bound; median: of the\n"
          "elements' errors, likewise.\n";
  for (const PeerClient& peer : peers) out_ << peer.name() << ": " << peer.device() << "; times on the host's clock.\n";
  if (roofline)
    out_ << fmt::format(
        "Within reach of shaders here: {} GFLOP/s in f32 ({}); reading {} GB/s from a storage buffer ({}), {} GB/s from an image "
        "of it ({}).\n",
        digits(roofline->gflops), roofline->flops_program, digits(roofline->storage_gb_per_s), roofline->storage_program,
        digits(roofline->image_gb_per_s), roofline->image_program);
  if (!peers.empty() || roofline || options_.kernels.size() > 1)
    out_ << "Ratios: of rates, or of what is within reach; in brackets, the slower quartile of the one over the faster of the "
            "other, and the reverse.\n";
  out_ << '\n';
  line("size", "serial ms", "GFLOP/s", "kernel", "kernel ms", "GFLOP/s", "total ms", "speed-up", "error", "median", "check");
  rule();
}

void Table::rule() {
  out_ << std::string(static_cast<std::size_t>(size_width_) + 113, '-') << '\n' << std::flush;
}

void Table::row(const Shape& shape, bool first, const Baseline& baseline, const Measurement& x) {
  const double kernel_time = median(x.times());
  const std::string serial_ms = (baseline.rows_measured < shape.m || options_.batch > 1 ? "~" : "") + digits(baseline.ms);
  const std::string kernel_ms = (x.clock_note.empty() ? "" : "*") + digits(kernel_time);
  const auto once = [&](const std::string& text) { return first ? text : std::string(); };
  const double work = flops(shape, options_.type, options_.batch);
  const auto [error, place, median_error, verdict] = check_cells(check_json(x.check));
  line(once(to_string(shape)), once(serial_ms), once(digits(gflops(work, baseline.ms))), x.ran, kernel_ms,
       digits(gflops(work, kernel_time)), x.total_times.empty() ? "-" : digits(median(x.total_times)),
       speed_up(baseline.ms, kernel_time), error, median_error, verdict + (place.empty() ? "" : ", worst at " + place));
}

void Table::row(const Ratio& ratio) {
  const std::size_t mean = ratio.name.find(", geometric mean");
  out_ << fmt::format("{:{}} {} over {}{}{}: {:.4g} ({:.4g} to {:.4g})\n", "", size_width_, ratio.of, ratio.over,
                      mean == std::string::npos ? "" : ratio.name.substr(mean),
                      ratio.points > 0 ? fmt::format(" ({} points)", ratio.points) : "", ratio.value, ratio.low, ratio.high)
       << std::flush;
}

void Table::notes() {
  for (const std::string& text : notes_) out_ << text << '\n';
}

void Table::line(Text size, Text serial_ms, Text serial_rate, Text kernel, Text kernel_ms, Text rate, Text total_ms, Text faster,
                 Text error, Text median, Text check) {
  out_ << fmt::format("{:>{}} {:>11} {:>9}   {:<14} {:>11} {:>9}  {:>10}  {:>8}  {:>7}  {:>7}  {}\n", size, size_width_,
                      serial_ms, serial_rate, kernel, kernel_ms, rate, total_ms, faster, error, median, check)
       << std::flush;
}

void print_paper(std::ostream& out, const std::vector<Ours>& ours) {
  const auto print = [&](const auto&... cells) {
    out << fmt::format("{:>6}  {:<14} {:>11} {:>9}  {:>11} {:>9}  {:>8}\n", cells...);
  };
  const std::string rule(74, '-');
  out << "\nThe published figures (Quadro 4000; rates and speed-ups computed from the published times) and ours:\n\n";
  print("size", "", "serial ms", "GFLOP/s", "kernel ms", "GFLOP/s", "speed-up");
  out << rule << '\n';
  for (const PaperResult& paper : paper_results) {
    const double work = flops({paper.n, paper.n, paper.n});
    const auto line = [&](const std::string& label, const std::string& who, double cpu_ms, double gpu_ms) {
      print(label, who, digits(cpu_ms), digits(gflops(work, cpu_ms)), digits(gpu_ms), digits(gflops(work, gpu_ms)),
            speed_up(cpu_ms, gpu_ms));
    };
    line(std::to_string(paper.n), "published", paper.cpu_ms, paper.gpu_ms);
    for (const Ours& x : ours)
      if (x.n == paper.n) line("", x.kernel, x.cpu_ms, x.kernel_ms);
  }
  out << rule << '\n';
}

}  // namespace glgemm::tools
