// Prints what was measured, and writes it as JSON.
#include "bench/table.hpp"

#include <algorithm>
#include <iostream>
#include <map>
#include <utility>

#include <fmt/core.h>

#include "arguments/json.hpp"
#include "product/check_json.hpp"
#include "system/program.hpp"
#include "terminal/texts.hpp"

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

std::string range_text(const std::vector<double>& times) {
  return digits(quantile(times, 0)) + " to " + digits(quantile(times, 1));
}

namespace {

/// Of the terminal that a stream goes to; 0: there is none, or its width is not known.
std::size_t columns_of(const std::ostream& out) {
  if (&out != &std::cout && &out != &std::cerr) return 0;
  return static_cast<std::size_t>(terminal_columns(&out == &std::cout ? Stream::out : Stream::error));
}

}  // namespace

void say(std::ostream& out, const std::string& text, std::size_t indent, std::size_t columns_elsewhere) {
  const std::size_t columns = columns_of(out);
  out << wrapped(text, indent, columns > 0 ? columns : columns_elsewhere) << '\n' << std::flush;
}

Columns::Columns(std::ostream& out, std::vector<Column> columns)
    : out_(out), columns_(std::move(columns)), shown_(columns_.size(), true) {
  const std::size_t room = columns_of(out);
  while (room > 0 && width() > room) {
    std::size_t next = 0;
    for (std::size_t i = 0; i < columns_.size(); ++i)
      if (shown_[i] && columns_[i].rank > (shown_[next] ? columns_[next].rank : 0)) next = i;
    if (!shown_[next] || columns_[next].rank == 0) return;
    shown_[next] = false;
  }
}

std::size_t Columns::width() const {
  std::size_t all = 0;
  for (std::size_t i = 0; i < columns_.size(); ++i)
    if (shown_[i]) all += columns_[i].width + (all > 0 ? 2 : 0);
  return all;
}

void Columns::header() {
  std::vector<std::string> headings;
  std::string left_out;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    headings.emplace_back(columns_[i].heading);
    if (!shown_[i]) left_out += (left_out.empty() ? "" : ", ") + headings.back();
  }
  if (!left_out.empty()) say(out_, "Left out, for want of columns, and in --json and --csv: " + left_out + ".");
  out_ << '\n';
  row(headings);
}

void Columns::rule() {
  out_ << std::string(width(), '-') << '\n' << std::flush;
}

void Columns::row(const std::vector<std::string>& cells) {
  std::string line;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (!shown_[i]) continue;
    const auto& [heading, width, rank, left] = columns_[i];
    line += (line.empty() ? "" : "  ") +
            (left ? fmt::format("{:<{}}", cells.at(i), width) : fmt::format("{:>{}}", cells.at(i), width));
  }
  line.erase(line.find_last_not_of(' ') + 1);
  out_ << line << '\n' << std::flush;
}

Table::Table(std::ostream& out, const BenchOptions& options)
    : out_(out),
      options_(options),
      size_width_([&] {
        std::size_t width = 6;
        for (const Shape& shape : options.shapes) width = std::max(width, to_string(shape).size());
        return width;
      }()),
      columns_(out, {{"size", size_width_},
                     {"serial ms", 10, 5},
                     {"GFLOP/s", 9, 8},
                     {"kernel", 15, 0, true},
                     {"kernel ms", 10},
                     {"least to most", 18, 9},
                     {"GFLOP/s", 9},
                     {"total ms", 10, 4},
                     {"speed-up", 8, 2},
                     {"error", 7, 3},
                     {"median", 7, 7},
                     {"check", 9, 0, true},
                     {"worst at", 10, 6, true}}) {}

void Table::header(const DeviceInfo& device, std::span<const PeerClient> peers, const Roofline* roofline) {
  const bool transposes = std::any_of(options_.shapes.begin(), options_.shapes.end(),
                                      [](const Shape& shape) { return shape.op_a != Op::none || shape.op_b != Op::none; });
  say(out_, fmt::format("{}{}; {}{}", device.renderer, device.software ? ", a software device" : "", api_and_version(device),
                        device.device_clock ? "" : "; no timer: kernel times are the host's"));
  say(out_,
      fmt::format("C = {}{}{} in {}, elements random{}. Times are medians; total is with the copies to and from the device.",
                  options_.alpha == 1.0 ? "" : "alpha ", transposes ? "op(A) op(B)" : "A B",
                  options_.beta == 0.0 ? "" : " + beta C", to_string(options_.formats),
                  is_integer(options_.type()) ? "" : " in [-1, 1)"));
  if (options_.batch > 1)
    say(out_, fmt::format("Each line is a batch of {} products; times and rates are of them all.", options_.batch));
  say(out_, std::string(is_complex(options_.type())   ? "GFLOP/s: 8 m n k / time, the operations of real numbers."
                        : is_integer(options_.type()) ? "GFLOP/s: 2 m n k / time, operations of integers here."
                                                      : "GFLOP/s: 2 m n k / time.") +
                " Speed-up: the serial loop's time / the kernel's. Error: the worst, as a part of its proven bound; median: of "
                "the elements' errors, likewise.");
  for (const PeerClient& peer : peers) say(out_, peer.name() + ": " + peer.device() + "; times on the host's clock.");
  if (roofline)
    say(out_, fmt::format("Within reach of shaders here: {} GFLOP/s in f32 ({}); reading {} GB/s from a storage buffer ({}), {} "
                          "GB/s from an image of it ({}).",
                          digits(roofline->gflops), roofline->flops_program, digits(roofline->storage_gb_per_s),
                          roofline->storage_program, digits(roofline->image_gb_per_s), roofline->image_program));
  if (!peers.empty() || roofline || options_.kernels.size() > 1)
    say(out_,
        "Ratios: of rates, or of what is within reach; in brackets, the slower quartile of the one over the faster of the "
        "other, and the reverse.");
  columns_.header();
  rule();
}

void Table::row(const Shape& shape, bool first, const Baseline& baseline, const Measurement& x) {
  const double kernel_time = median(x.times());
  const std::string serial_ms = (baseline.rows_measured < shape.m || options_.batch > 1 ? "~" : "") + digits(baseline.ms);
  const std::string kernel_ms = (x.clock_note.empty() ? "" : "*") + digits(kernel_time);
  const auto once = [&](const std::string& text) { return first ? text : std::string(); };
  const double work = flops(shape, options_.type(), options_.batch);
  const auto [error, place, median_error, verdict] = check_cells(check_json(x.check));
  columns_.row({once(to_string(shape)), once(serial_ms), once(digits(gflops(work, baseline.ms))), x.ran, kernel_ms,
                range_text(x.times()), digits(gflops(work, kernel_time)),
                x.total_times.empty() ? "-" : digits(median(x.total_times)), speed_up(baseline.ms, kernel_time), error,
                median_error, verdict, place});
}

void Table::row(const Ratio& ratio) {
  out_ << std::string(size_width_ + 2, ' ');
  say(out_,
      fmt::format("{} over {}{}: {:.4g} ({:.4g} to {:.4g})", ratio.of, ratio.over,
                  ratio.mean_of > 0 ? fmt::format(", geometric mean of {}", ratio.mean_of) : "", ratio.value, ratio.low,
                  ratio.high),
      size_width_ + 2, one_line);
}

void Table::notes() {
  for (const std::string& text : notes_) say(out_, text, 0, one_line);
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
                 {"whole_kernel", to_string(*x.kernel)},
                 {"kernel_ms", median(x.times())}});
    json.update(spread_json("kernel_ms", x.times()));
    json["total_ms"] = median(x.total_times);
  }
  json["call_ms"] = median(x.call_times);
  json.update(spread_json("call_ms", x.call_times));
  json.update({{"runs", x.call_times.size()},
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
  nlohmann::ordered_json all{{"run", run_json()}};
  all.update(json);
  return {passed ? 0 : 1, json_text(all)};
}

nlohmann::ordered_json spread_json(const std::string& name, const std::vector<double>& times) {
  return {{name + "_low", quantile(times, 0.25)},
          {name + "_high", quantile(times, 0.75)},
          {name + "_least", quantile(times, 0)},
          {name + "_most", quantile(times, 1)}};
}

std::string csv_text(const nlohmann::ordered_json& json) {
  std::vector<std::map<std::string, std::string>> rows;
  std::vector<std::string> names;
  const auto add = [&](const std::string& name, const nlohmann::ordered_json& value) {
    std::string text = value.is_null() ? "" : value.is_string() ? value.get<std::string>() : value.dump();
    if (text.find_first_of(",\"\n") != text.npos) {
      for (std::size_t at = text.find('"'); at != text.npos; at = text.find('"', at + 2)) text.insert(at, 1, '"');
      text = '"' + text + '"';
    }
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    rows.back()[name] = text;
  };
  auto results = json.at("results");
  if (json.contains("peers")) results.insert(results.end(), json["peers"]["results"].begin(), json["peers"]["results"].end());
  for (const auto& result : results) {
    rows.emplace_back();
    for (const auto& [key, value] : result.items())
      if (value.is_object())
        for (const auto& [part, of_part] : value.items()) add(key + "." + part, of_part);
      else
        add(key, value);
    if (json.contains("device")) add("renderer", json["device"]["renderer"]);
    add("version", json.at("run").at("version"));
    add("date", json.at("run").at("date"));
  }
  std::string text;
  const auto line = [&](const auto& cell_of) {
    for (const std::string& name : names) text += (&name == &names.front() ? "" : ",") + cell_of(name);
    text += '\n';
  };
  line([](const std::string& name) { return name; });
  for (auto& row : rows) line([&](const std::string& name) { return row[name]; });
  return text;
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
