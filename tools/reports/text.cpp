// The Markdown of `glgemm report`, and what it reads of test programs.
#include "reports/text.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "bench/table.hpp"
#include "product/check_json.hpp"
#include "product/shapes.hpp"

namespace glgemm::tools {
namespace {

using Json = nlohmann::ordered_json;

/// What a table's cell may hold.
std::string cell(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '|') result += '\\';
    result += c == '\n' ? ' ' : c;
  }
  return result;
}

std::string row(const std::vector<std::string>& cells) {
  std::string text = "|";
  for (const std::string& one : cells) text += " " + cell(one) + " |";
  return text + "\n";
}

std::string head(const std::vector<std::string>& names) {
  std::string text = row(names) + "|";
  for (std::size_t i = 0; i < names.size(); ++i) text += "---|";
  return text + "\n";
}

std::string kernel_text(const Json& result) {
  const Json& tile = result.at("tile");
  return fmt::format("{} {}x{}", result.at("kernel").get<std::string>(), tile[0].get<int>(), tile[1].get<int>());
}

/// A limit or a probe in words.
std::string value_text(const Json& value) {
  if (value.is_string()) return value;
  if (value.is_null() || (value.is_array() && value.empty())) return "none";
  if (value.is_number_float()) return number(value);
  if (!value.is_structured()) return value.is_boolean() ? (value.get<bool>() ? "yes" : "no") : value.dump();
  std::string text;
  for (const auto& [key, part] : value.items())
    text += (text.empty() ? "" : ", ") + (value.is_object() ? key + ": " : "") + value_text(part);
  return text;
}

/// Limits and probes, a column for each device that can be used; the others below.
std::string devices_text(const Json& devices) {
  std::vector<const Json*> usable;
  std::vector<std::string> names{""};
  std::string others, text;
  for (const Json& device : devices) {
    const std::string name = std::to_string(device.at("index").get<int>()) + ": " + device.at("renderer").get<std::string>();
    if (!device.at("usable").get<bool>()) {
      others += "- " + name + " cannot be used: " + device.value("failure", "") + "\n";
      continue;
    }
    usable.push_back(&device);
    names.push_back(name + ", OpenGL " + device.at("version").get<std::string>() + ", by EGL's platform " +
                    device.at("platform").get<std::string>());
  }
  if (!usable.empty()) {
    text += head(names);
    for (const char* part : {"limits", "probes"})
      for (const auto& item : usable.front()->at(part).items()) {
        std::vector<std::string> cells{item.key()};
        for (const Json* device : usable) cells.push_back(value_text(device->at(part).at(item.key())));
        text += row(cells);
      }
    if (!others.empty()) text += "\n";
  }
  return text + others;
}

}  // namespace

std::string without_folders(const std::string& text) {
  constexpr std::string_view before = " \t\n\v\f\r'\"(=:", ends = " \t\n\v\f\r'\":/";
  std::string result;
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::size_t last = at;  // the slash behind the last folder
    const bool begins = text[at] == '/' && (at == 0 || before.find(text[at - 1]) != std::string_view::npos);
    const auto next = [&] { return std::min(text.find_first_of(ends, last + 1), text.size()); };
    for (std::size_t end = next(); begins && end < text.size() && text[end] == '/' && end > last + 1; end = next()) last = end;
    if (last == at) result += text[at];
    at = last;
  }
  return result;
}

namespace {

/// How fast this device is with glgemm, against what, and what failed: a line for each.
std::string summary_text(const Json& report) {
  const Json* fastest = nullptr;
  std::vector<std::string> than, failed;
  double reached = 0;
  for (const Json* bench : benches(report, "roofline")) reached = bench->at("roofline").at("gflops");
  for (const Json* bench : benches(report))
    for (const Json& x : bench->at("results"))
      if (x.value("requested", "") == "auto" && x.value("type", "") == "f32" && x.contains("kernel_ms") &&
          x.value("batch", 1) == 1 && (!fastest || x.at("gflops") > fastest->at("gflops")))
        fastest = &x;
  if (report.at("cublas").is_object())
    for (const Json& set : report.at("cublas").at("sets"))
      for (const Json& x : set.at("results"))
        if (set.at("name") == "squares") than.push_back(number(x.at("ratio")) + " of cuBLAS for " + shape_text(x));
  for (const Json* bench : benches(report, "peers"))
    for (const Json& ratio : bench->at("ratios"))
      if (ratio.at("of") == "auto" && ratio.contains("product"))
        than.push_back(number(ratio.at("value")) + " of " + ratio.at("over").get<std::string>() + " for " +
                       shape_text(ratio.at("product")));
  std::int64_t missed = 0, late = 0;
  for (const Json& goal : report.at("goals")) missed += goal.at("met") == false;
  for (const Json& step : report.at("steps"))
    if (step.at("state") == "failed")
      failed.push_back(step.at("name"));
    else
      late += step.value("why", "") == time_was_up;
  std::string text = "\n- **How fast**: ";
  text += fastest ? fmt::format("{} GFLOP/s in f32, for {}, by {}.\n", number(fastest->at("gflops")), shape_text(*fastest),
                                kernel_text(*fastest))
                  : "nothing was measured.\n";
  if (fastest && reached > 0)
    than.push_back(number(fastest->at("gflops").get<double>() / reached) +
                   " of what a shader reaches that only multiplies and adds");
  if (fastest && fastest->contains("baseline"))
    than.push_back(number(fastest->at("baseline").at("ms").get<double>() / fastest->at("kernel_ms").get<double>()) +
                   " times a serial loop on the CPU");
  text += fmt::format("- **Against what**: {}.\n", than.empty() ? "nothing" : fmt::format("{}", fmt::join(than, "; ")));
  text += fmt::format("- **What failed**: {}{}{}.\n", failed.empty() ? "no step" : fmt::format("{}", fmt::join(failed, "; ")),
                      missed > 0 ? fmt::format("; of the goals, {} of {} are missed", missed, report.at("goals").size()) : "",
                      late > 0 ? fmt::format("; steps left out for want of time: {}", late) : "");
  return text;
}

std::string heading_text(const Json& report) {
  std::string text;
  const Json& device = report.at("device");
  text += "# glgemm on " + device.value("renderer", "a device that cannot be used") + "\n" + summary_text(report) + "\n";
  text += head({"", ""});
  if (!device.empty()) {
    text += row({"device", device.value("renderer", "")});
    text += row({"vendor", device.value("vendor", "")});
    text += row({"driver", "OpenGL " + device.value("version", "")});
    text += row({"computes on", device.value("software", false) ? "the CPU (a software driver)" : "a GPU"});
  }
  text += row({"date", report.at("date")});
  text += row({"glgemm", report.at("glgemm")});
  text += row({"made by", "`" + report.at("command").get<std::string>() + "`"});
  if (report.at("quick").get<bool>())
    text += "\nA quick run: small sizes and few repeats, which show that all works rather than how fast it is.\n";
  return text;
}

std::string steps_text(const Json& report) {
  bool failed = false;
  for (const Json& step : report.at("steps")) failed |= step.at("state") == "failed";
  std::string text = "\n## Steps\n\n";
  if (failed) text += "**Some steps failed; what they would have found is missing below.**\n\n";
  text += head({"step", "state", "seconds", "command"});
  for (const Json& step : report.at("steps")) {
    const std::string why = step.value("why", "");
    text += row({step.at("name"), step.at("state").get<std::string>() + (why.empty() ? "" : ": " + why),
                 fmt::format("{:.1f}", step.value("seconds", 0.0)),
                 step.value("command", "").empty() ? "" : "`" + step.at("command").get<std::string>() + "`"});
  }
  return text;
}

std::string goals_text(const Json& report) {
  if (report.at("goals").empty()) return "\n## Goals\n\nNone was measured.\n";
  std::string text = "\n## Goals\n\n" + head({"what", "value", "must", "aim", ""});
  for (const Json& goal : report.at("goals")) {
    const bool has = !goal.at("must").is_null();
    const char* const bound = goal.at("at_most").get<bool>() ? "at most " : "";
    text += row({goal.at("what"), number(goal.at("value")), has ? bound + number(goal.at("must")) : "-",
                 has ? bound + number(goal.at("aim")) : "-",
                 !has                         ? "reported"
                 : goal.at("met").get<bool>() ? "met"
                                              : "**missed**"});
  }
  return text;
}

/// What was measured in a section of benches, below its heading and words: a row for each result. Empty without any.
std::string section_text(const Json& report, const char* section, const std::string& opening,
                         const std::vector<std::string>& columns, const std::function<std::string(const Json& result)>& row_of) {
  if (benches(report, section).empty()) return {};
  std::string text = "\n## " + opening + "\n\n" + head(columns);
  for (const Json* bench : benches(report, section))
    for (const Json& x : bench->at("results")) text += row_of(x);
  return text;
}

std::string roofline_text(const Json& report) {
  std::string text;
  for (const Json* bench : benches(report, "roofline")) {
    const Json& limits = bench->at("roofline");
    text += "\n## What shaders reach here\n\n" + head({"", "rate", "by"});
    text += row({"arithmetic in f32", number(limits.at("gflops")) + " GFLOP/s", limits.at("flops_program")});
    text += row({"reading a storage buffer", number(limits.at("storage_gb_per_s")) + " GB/s", limits.at("storage_program")});
    text += row({"reading an image of a buffer", number(limits.at("image_gb_per_s")) + " GB/s", limits.at("image_program")});
  }
  return text;
}

std::string table_text(const Json& report) {
  const std::string text =
      section_text(report, "table",
                   "Square products\n\nf32, C = A B. Times are medians, of the kernel alone; speed-up is over the serial loop. "
                   "Errors are parts of their proven bounds: the worst, and the median.",
                   {"N", "serial ms", "asked for", "kernel", "kernel ms", "GFLOP/s", "speed-up", "error", "at", "median", "check",
                    "paper, ms", "paper, GFLOP/s"},
                   [](const Json& x) {
                     const std::int64_t n = x.at("n");
                     const double serial = x.at("baseline").at("ms"), ms = x.at("kernel_ms");
                     std::string paper_ms, paper_rate;
                     for (const PaperResult& paper : paper_results)
                       if (paper.n == n && x.at("requested") == "tiled") {
                         paper_ms = number(paper.gpu_ms);
                         paper_rate = number(flops({n, n, n}) / paper.gpu_ms / 1e6);
                       }
                     const auto [error, place, median, verdict] = check_cells(x.at("check"));
                     return row({std::to_string(n), (x.at("baseline").at("rows_measured") < n ? "~" : "") + number(serial),
                                 x.at("requested"), kernel_text(x), number(ms), number(x.at("gflops")), number(serial / ms),
                                 error, place, median, verdict, paper_ms, paper_rate});
                   });
  constexpr const char* note =
      "\nThe paper's figures are of its kernel, here `tiled`, on a Quadro 4000; ~: extrapolated from some rows.\n";
  return text.empty() ? text : text + note;
}

/// The products of a section, with what they are compared with.
std::string results_text(const Json& report, const char* section, const std::string& title) {
  std::string text;
  if (benches(report, section).empty()) return text;
  text += "\n## " + title + "\n\n" +
          head({"m x n x k", "asked for", "kernel", "ms", "GFLOP/s", "error", "at", "median", "check", "ratios"});
  for (const Json* bench : benches(report, section)) {
    Json all = bench->at("results");
    if (bench->contains("peers"))
      for (const Json& x : bench->at("peers").at("results")) all.push_back(x);
    for (const Json& x : all) {
      std::string ratios;
      for (const Json& ratio : bench->at("ratios"))
        if (ratio.at("of") == x.at("requested") && is_of_product(ratio, x))
          ratios += (ratios.empty() ? "" : ", ") + number(ratio.at("value")) + " over " + ratio.at("over").get<std::string>();
      const bool ours = x.contains("kernel");
      const std::string type = x.at("type");
      const int batch = x.at("batch");
      const auto [error, place, median, verdict] = check_cells(x.at("check"));
      text += row({shape_text(x) + (type == "f32" ? "" : " " + type) + (batch == 1 ? "" : ", batch of " + std::to_string(batch)),
                   x.at("requested"), ours ? kernel_text(x) : "", number(x.at(ours ? "kernel_ms" : "call_ms")),
                   number(x.at("gflops")), error, place, median, verdict, ratios});
    }
    bool first = true;
    for (const Json& ratio : bench->at("ratios")) {
      if (!ratio.contains("mean_of")) continue;
      text += (first ? "\n- " : "- ") + ratio.at("name").get<std::string>() + ": " + number(ratio.at("value")) + "\n";
      first = false;
    }
  }
  return text;
}

std::string enqueue_text(const Json& report) {
  return section_text(report, "enqueue",
                      "What a call costs\n\nMicroseconds of each call of `gemm()` for a repeated product, without waiting for "
                      "the device. A driver that computes in the call shows on the clock.",
                      {"m x n x k", "kernel", "CPU, its thread", "CPU, all threads", "on the clock"}, [](const Json& x) {
                        return row({enqueued_text(x), x.at("kernel"), number(x.at("cpu_us")), number(x.at("process_cpu_us")),
                                    number(x.at("wall_us"))});
                      });
}

std::string first_text(const Json& report) {
  return section_text(report, "first",
                      "The first product of a process\n\nMilliseconds from host to host, in new processes; cold: no program is "
                      "kept; warm: glgemm's cache has the programs, the driver's own is empty; both warm: that is filled too.",
                      {"m x n x k", "kernel", "cold", "warm", "both warm", "second product", "from the process' start, cold",
                       "warm", "both warm"},
                      [](const Json& x) {
                        std::vector<std::string> cells{shape_text(x), x.at("kernel")};
                        for (const char* name : {"cold_ms", "warm_ms", "both_warm_ms", "second_ms", "cold_from_start_ms",
                                                 "warm_from_start_ms", "both_warm_from_start_ms"})
                          cells.push_back(x.contains(name) ? number(x.at(name)) : "no binaries are given");
                        return row(cells);
                      });
}

std::string streamed_text(const Json& report) {
  return section_text(
      report, "streamed",
      "Streamed from the host\n\nSeconds, with an eighth of A, B and C on the device; resident: the product alone, on matrices "
      "that are there; transfers: as many bytes moved without a product.",
      {"m x n x k", "piece x k", "streamed", "resident", "transfers", "MiB moved", "over the bound"}, [](const Json& x) {
        const double moved = x.at("bytes_moved");
        const Json& piece = x.at("piece");
        return row({shape_text(x), fmt::format("{} x {} x {}", piece[0].dump(), piece[1].dump(), piece[2].dump()),
                    number(x.at("streamed_seconds")), number(x.at("resident_seconds")), number(x.at("transfers_alone_seconds")),
                    number(moved / 1048576), number(moved / x.at("bound_bytes").get<double>())});
      });
}

std::string cublas_text(const Json& report) {
  const Json& cublas = report.at("cublas");
  if (!cublas.is_object()) return {};
  std::string text =
      fmt::format(
          "\n## Beside cuBLAS\n\nThrough {}. Both were run in turn, {} each, in processes of their own; times are medians of "
          "medians, on the GPU's clock.\n\n",
          cublas.at("library").get<std::string>(), cublas.at("rounds") == 1 ? "once" : cublas.at("rounds").dump() + " times") +
      head({"m x n x k", "cuBLAS' arithmetic", "kernel", "glgemm ms", "cuBLAS ms", "glgemm GFLOP/s", "cuBLAS GFLOP/s",
            "glgemm over cuBLAS"});
  for (const Json& set : cublas.at("sets"))
    for (const Json& x : set.at("results"))
      text += row({shape_text(x) + (set.at("batch") == 1 ? "" : ", batch of " + set.at("batch").dump()), set.at("arithmetic"),
                   kernel_text(x), number(x.at("glgemm_ms")), number(x.at("cublas_ms")), number(x.at("glgemm_gflops")),
                   number(x.at("cublas_gflops")), number(x.at("ratio"))});
  return text;
}

std::string tuning_text(const Json& report) {
  const Json& tuning = report.at("tuning");
  if (!tuning.is_object() || tuning.at("entries").empty()) return {};
  std::string text = "\n## Tuned here\n\n" + head({"m x n x k", "batch", "type", "kernel", "parts of k", "GFLOP/s"});
  for (const Json& entry : tuning.at("entries"))
    text += row({shape_text(entry) + " " + entry.at("op").get<std::string>(), entry.value("batch", Json(1)).dump(),
                 entry.at("type"), "`" + entry.at("kernel").get<std::string>() + "`", entry.value("split_k", Json(0)).dump(),
                 number(entry.value("gflops", 0.0))});
  return text;
}

std::string tests_text(const Json& report) {
  std::string text = report.at("tests_say").empty() ? "" : "\n## What the tests say\n\n";
  for (const Json& x : report.at("tests_say"))
    text += fmt::format("- {}: {} ({})\n", figure_text(x), number(x.at("value")), x.at("note").get<std::string>());
  return text;
}

}  // namespace

std::string markdown(const Json& report) {
  std::string text;
  text += heading_text(report);
  text += steps_text(report);
  text += goals_text(report);
  if (!report.at("devices").empty()) text += "\n## Devices\n\n" + devices_text(report.at("devices"));
  text += roofline_text(report);
  text += table_text(report);
  if (report.at("quick").get<bool>()) text += results_text(report, "roofline", "Few columns: reading is the limit");
  text += results_text(report, "peers", "Beside other libraries, on the host's clock");
  text += results_text(report, "narrow", "Few columns: reading is the limit");
  text += results_text(report, "shapes", "Given shapes");
  text += results_text(report, "types", "Other types, and batches of small products");
  text += enqueue_text(report);
  text += first_text(report);
  text += streamed_text(report);
  text += cublas_text(report);
  text += tuning_text(report);
  text += tests_text(report);
  return text;
}

TestResult test_result(const std::string& output, const std::string& trouble) {
  constexpr std::string_view test_case = "TEST CASE:  ", failed_script = "FAILED: ";
  std::string name, last;
  std::vector<std::string> failures;
  int cases = -1, passed = 0, failed = 0;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    last = line;
    if (line.starts_with(test_case))
      name = line.substr(test_case.size());
    else if (line.find(": ERROR: ") != std::string::npos || line.find(": FATAL ERROR: ") != std::string::npos)
      failures.push_back("'" + name + "'");
    else if (line.starts_with(failed_script))
      failures.push_back("'" + line.substr(failed_script.size(), 100) + "'");
    else
      std::sscanf(line.c_str(), "[doctest] test cases: %d | %d passed | %d failed", &cases, &passed, &failed);
  }
  failures.erase(std::unique(failures.begin(), failures.end()), failures.end());
  const std::size_t count = failures.size();
  std::string named;
  for (std::size_t i = 0; i < std::min<std::size_t>(count, 20); ++i) named += (i > 0 ? ", " : ": ") + failures[i];
  if (count > 20) named += fmt::format(" and {} more", count - 20);

  const bool script_passed = cases < 0 && count == 0 && last == "all passed";
  TestResult result;
  result.passed = trouble.empty() && (script_passed || (count == 0 && passed > 0 && passed == cases));
  if (cases == 0)
    result.text = "no test case ran";
  else if (cases > 0 && (failed > 0 || count > 0))
    result.text = fmt::format("{} of {} test cases failed{}", failed, cases, named);
  else if (cases > 0)
    result.text = fmt::format("{} test cases passed", passed);
  else if (script_passed)
    result.text = "passed";
  else
    result.text = count > 0 ? "failed" + named : "it ended without a result";
  if (!result.passed && !trouble.empty()) result.text += ", " + trouble;
  return result;
}

}  // namespace glgemm::tools
