// Prints what was measured, and writes it as JSON.
#include "bench/table.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "arguments/json.hpp"
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
       << (options_.beta == 0.0 ? "" : " + beta C") << " in " << to_string(options_.formats)
       << (is_integer(options_.type()) ? ", elements random" : ", elements random in [-1, 1)")
       << ". Times are medians; total is with the copies to and from the device.\n"
       << (options_.batch == 1
               ? ""
               : fmt::format("Each line is a batch of {} products; times and rates are of them all.\n", options_.batch))
       << (is_complex(options_.type())   ? "GFLOP/s: 8 m n k / time, the operations of real numbers."
           : is_integer(options_.type()) ? "GFLOP/s: 2 m n k / time, operations of integers here."
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
  const double work = flops(shape, options_.type(), options_.batch);
  const auto [error, place, median_error, verdict] = check_cells(check_json(x.check));
  line(once(to_string(shape)), once(serial_ms), once(digits(gflops(work, baseline.ms))), x.ran, kernel_ms,
       digits(gflops(work, kernel_time)), x.total_times.empty() ? "-" : digits(median(x.total_times)),
       speed_up(baseline.ms, kernel_time), error, median_error, verdict + (place.empty() ? "" : ", worst at " + place));
}

void Table::row(const Ratio& ratio) {
  out_ << fmt::format("{:{}} {} over {}{}: {:.4g} ({:.4g} to {:.4g})\n", "", size_width_, ratio.of, ratio.over,
                      ratio.mean_of > 0 ? fmt::format(", geometric mean of {}", ratio.mean_of) : "", ratio.value, ratio.low,
                      ratio.high)
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

namespace {

nlohmann::ordered_json scalar_json(std::complex<double> value, Type type) {
  if (is_complex(type)) return {value.real(), value.imag()};
  return value.real();
}

nlohmann::ordered_json result_json(const Shape& shape, const BenchOptions& options, const Baseline& baseline,
                                   const Measurement& x) {
  const double work = flops(shape, options.type(), options.batch);
  nlohmann::ordered_json json = product_json(shape, options);
  json.update({{"alpha", scalar_json(options.alpha, options.type())},
               {"beta", scalar_json(options.beta, options.type())},
               {"requested", x.requested}});
  if (x.kernel) {
    const Block block = block_of(*x.kernel);
    json.update({{"kernel", std::string(name(*x.kernel))},
                 {"tile", {block.rows, block.columns}},
                 {"slices", x.report.slices},
                 {"dispatches", x.report.dispatches},
                 {"kernel_ms", median(x.times())},
                 {"total_ms", median(x.total_times)}});
  }
  json.update({{"call_ms", median(x.call_times)},
               {"runs", x.call_times.size()},
               {"gflops", gflops(work, median(x.times()))},
               {"baseline",
                {{"name", "serial"},
                 {"ms", baseline.ms},
                 {"gflops", gflops(work, baseline.ms)},
                 {"rows_measured", baseline.rows_measured}}},
               {"check", check_json(x.check)}});
  return json;
}

}  // namespace

nlohmann::ordered_json bench_json(const DeviceInfo& device, std::span<const PeerClient> peers, const Roofline* roofline) {
  using Json = nlohmann::ordered_json;
  Json json{{"device", device_json(device)}, {"results", Json::array()}, {"ratios", Json::array()}};
  json["device"]["device_clock"] = device.device_clock;
  if (!peers.empty()) {
    json["peers"] = {{"devices", Json::object()}, {"results", Json::array()}};
    for (const PeerClient& peer : peers) json["peers"]["devices"][peer.name()] = peer.device();
  }
  if (roofline)
    json["roofline"] = {{"gflops", roofline->gflops},
                        {"storage_gb_per_s", roofline->storage_gb_per_s},
                        {"image_gb_per_s", roofline->image_gb_per_s},
                        {"bytes", roofline->bytes},
                        {"flops_program", roofline->flops_program},
                        {"storage_program", roofline->storage_program},
                        {"image_program", roofline->image_program}};
  return json;
}

nlohmann::ordered_json shape_json(const Shape& shape, const BenchOptions& options) {
  return {{"m", shape.m}, {"n", shape.n}, {"k", shape.k}, {"type", to_string(options.formats)}};
}

nlohmann::ordered_json product_json(const Shape& shape, const BenchOptions& options) {
  nlohmann::ordered_json json = shape_json(shape, options);
  json.update({{"op_a", to_string(shape.op_a)}, {"op_b", to_string(shape.op_b)}, {"batch", options.batch}});
  return json;
}

void add_results(nlohmann::ordered_json& json, const Shape& shape, const BenchOptions& options, const Baseline& baseline,
                 std::span<const Measurement> results, std::span<const Ratio> ratios) {
  for (const Measurement& x : results)
    (x.kernel ? json["results"] : json["peers"]["results"]).push_back(result_json(shape, options, baseline, x));
  add_ratios(json, ratios);
}

BenchResult bench_result(bool passed, const nlohmann::ordered_json& json) {
  return {passed ? 0 : 1, json_text(json)};
}

void add_ratio(nlohmann::ordered_json& json, const Ratio& x) {
  json["ratios"].push_back(
      {{"name", x.name}, {"value", x.value}, {"of", x.of}, {"over", x.over}, {"low", x.low}, {"high", x.high}});
  if (!x.product.is_null()) json["ratios"].back()["product"] = x.product;
  if (x.mean_of > 0) json["ratios"].back()["mean_of"] = x.mean_of;
}

void add_ratios(nlohmann::ordered_json& json, std::span<const Ratio> ratios) {
  for (const Ratio& x : ratios) add_ratio(json, x);
}

}  // namespace glgemm::tools
