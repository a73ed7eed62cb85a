// Prints what was measured.
#include "bench/table.hpp"

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>

#include "bench/paper.hpp"
#include "product/check_json.hpp"

namespace glgemm::tools {
namespace {

[[gnu::format(printf, 1, 2)]] std::string format(const char* pattern, ...) {
  std::array<char, 512> text{};
  va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(text.data(), text.size(), pattern, arguments);
  va_end(arguments);
  return text.data();
}

std::string speed_up(double before, double after) {
  const double ratio = before / std::max(after, 1e-6);
  return format(ratio < 1 ? "%.2fx" : "%.1fx", ratio);
}

}  // namespace

double gflops(double flops, double milliseconds) {
  return flops / std::max(milliseconds, 1e-6) / 1e6;
}

std::string digits(double value) {
  return format(value < 0.1 ? "%.4f" : "%.2f", value);
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
       << (options_.batch > 1
               ? "Each line is a batch of " + std::to_string(options_.batch) + " products; times and rates are of them all.\n"
               : "")
       << (is_complex(options_.type)   ? "GFLOP/s: 8 m n k / time, the operations of real numbers."
           : is_integer(options_.type) ? "GFLOP/s: 2 m n k / time, operations of integers here."
                                       : "GFLOP/s: 2 m n k / time.")
       << " Speed-up: the serial loop's time / the kernel's. Error: the worst, as a part of its proven bound; median: of the\n"
          "elements' errors, likewise.\n";
  for (const PeerClient& peer : peers) out_ << peer.name() << ": " << peer.device() << "; times on the host's clock.\n";
  if (roofline)
    out_ << format(
        "Within reach of shaders here: %s GFLOP/s in f32 (%s); reading %s GB/s from a storage buffer (%s), %s GB/s from an "
        "image of it (%s).\n",
        digits(roofline->gflops).c_str(), roofline->flops_program.c_str(), digits(roofline->storage_gb_per_s).c_str(),
        roofline->storage_program.c_str(), digits(roofline->image_gb_per_s).c_str(), roofline->image_program.c_str());
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
  const std::string what = ratio.of + " over " + ratio.over + (mean == std::string::npos ? "" : ratio.name.substr(mean)) +
                           (ratio.points > 0 ? " (" + std::to_string(ratio.points) + " points)" : "") + ":";
  out_ << format("%*s %s %.4g (%.4g to %.4g)\n", size_width_, "", what.c_str(), ratio.value, ratio.low, ratio.high) << std::flush;
}

void Table::notes() {
  for (const std::string& text : notes_) out_ << text << '\n';
}

void Table::line(Text size, Text serial_ms, Text serial_rate, Text kernel, Text kernel_ms, Text rate, Text total_ms, Text faster,
                 Text error, Text median, Text check) {
  out_ << format("%*s %11s %9s   %-14s %11s %9s  %10s  %8s  %7s  %7s  %s\n", size_width_, size.c_str(), serial_ms.c_str(),
                 serial_rate.c_str(), kernel.c_str(), kernel_ms.c_str(), rate.c_str(), total_ms.c_str(), faster.c_str(),
                 error.c_str(), median.c_str(), check.c_str())
       << std::flush;
}

void print_paper(std::ostream& out, const std::vector<Ours>& ours) {
  constexpr const char* pattern = "%6s  %-14s %11s %9s  %11s %9s  %8s\n";
  const std::string rule(74, '-');
  out << "\nThe published figures (Quadro 4000; rates and speed-ups computed from the published times) and ours:\n\n"
      << format(pattern, "size", "", "serial ms", "GFLOP/s", "kernel ms", "GFLOP/s", "speed-up") << rule << '\n';
  for (const PaperResult& paper : paper_results) {
    const double work = flops({paper.n, paper.n, paper.n});
    const auto line = [&](const std::string& label, const std::string& who, double cpu_ms, double gpu_ms) {
      out << format(pattern, label.c_str(), who.c_str(), digits(cpu_ms).c_str(), digits(gflops(work, cpu_ms)).c_str(),
                    digits(gpu_ms).c_str(), digits(gflops(work, gpu_ms)).c_str(), speed_up(cpu_ms, gpu_ms).c_str());
    };
    line(std::to_string(paper.n), "published", paper.cpu_ms, paper.gpu_ms);
    for (const Ours& x : ours)
      if (x.n == paper.n) line("", x.kernel, x.cpu_ms, x.kernel_ms);
  }
  out << rule << '\n';
}

}  // namespace glgemm::tools
