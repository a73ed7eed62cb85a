// What a report has found, by parts: for its goals and its text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace glgemm::tools {

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

/// "64 x 64 x 64, 3 dispatches, in a scope"
inline std::string enqueued_text(const nlohmann::ordered_json& x) {
  const int dispatches = x.at("dispatches");
  return fmt::format("{}, {} dispatch{}, {} a scope", shape_text(x), dispatches, dispatches == 1 ? "" : "es",
                     x.at("scope").get<bool>() ? "in" : "without");
}

}  // namespace glgemm::tools
