// What `glgemm report` makes of its findings: goals and Markdown, pure functions of the JSON that it collects.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace glgemm::tools {

/// The goals that glgemm has set itself and that the report has measured: [{"what", "value", "must", "aim", "at_most", "met"}],
/// "must" null where a figure is just reported. Which goals hold depends on the device and its driver.
nlohmann::ordered_json goals(const nlohmann::ordered_json& report);

/// Why a step is left out whose time was up.
constexpr const char* time_was_up = "the time was up";

/// The report in Markdown.
std::string markdown(const nlohmann::ordered_json& report);

/// Without the folders of absolute paths, which are of no use elsewhere.
std::string without_folders(const std::string& text);

struct TestResult {
  bool passed = false;
  std::string text;  ///< "120 test cases passed", "2 of 120 test cases failed: 'a', 'b'", "no test case ran"
};

/// The result of a test program, with doctest or a script of tests/cli_*.sh, by what it wrote to its standard output. Passed is
/// only what says so itself, after at least one test, and ends with status 0.
/// @param trouble  how it ended otherwise, as in "exit status 139" or "no end within 10 s"; empty for status 0
TestResult test_result(const std::string& output, const std::string& trouble);

/// In three or four digits.
inline std::string number(double value) {
  return value >= 1000 ? fmt::format("{:.0f}", value) : fmt::format("{:.{}g}", value, value >= 100 ? 4 : 3);
}

/// What `bench` found, of all steps.
inline std::vector<const nlohmann::ordered_json*> benches(const nlohmann::ordered_json& report, std::string_view section = {}) {
  std::vector<const nlohmann::ordered_json*> list;
  for (const nlohmann::ordered_json& bench : report.at("bench"))
    if (section.empty() || bench.at("section") == section) list.push_back(&bench.at("found"));
  return list;
}

inline std::string shape_text(const nlohmann::ordered_json& result) {
  const std::string text = fmt::format("{} x {} x {}", result.at("m").dump(), result.at("n").dump(), result.at("k").dump());
  const std::string ops = result.value("op_a", "n") + result.value("op_b", "n");
  return text + (ops == "nn" ? "" : ", " + ops);
}

/// Whether bench measured the ratio on the product of this result.
inline bool is_of_product(const nlohmann::ordered_json& ratio, const nlohmann::ordered_json& result) {
  if (!ratio.contains("product")) return false;
  for (const auto& [field, value] : ratio.at("product").items())
    if (result.at(field) != value) return false;
  return true;
}

/// What a test measured: its name, and what of.
inline std::string figure_text(const nlohmann::ordered_json& figure) {
  const std::string of = figure.at("of");
  return figure.at("name").get<std::string>() + (of.empty() ? "" : ", " + of);
}

/// "64 x 64 x 64, 3 dispatches, in a scope"
inline std::string enqueued_text(const nlohmann::ordered_json& x) {
  const int dispatches = x.at("dispatches");
  return fmt::format("{}, {} dispatch{}, {} a scope", shape_text(x), dispatches, dispatches == 1 ? "" : "es",
                     x.at("scope").get<bool>() ? "in" : "without");
}

}  // namespace glgemm::tools
