// What a report has found, by parts: for its goals and its text.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace glgemm::tools {

/// In three or four digits.
inline std::string number(double value) {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), value >= 1000 ? "%.0f" : value >= 100 ? "%.4g" : "%.3g", value);
  return text.data();
}

/// What `bench` found, of all steps.
inline std::vector<const nlohmann::ordered_json*> benches(const nlohmann::ordered_json& report, std::string_view section = {}) {
  std::vector<const nlohmann::ordered_json*> list;
  for (const nlohmann::ordered_json& bench : report.at("bench"))
    if (section.empty() || bench.at("section") == section) list.push_back(&bench.at("found"));
  return list;
}

inline std::string shape_text(const nlohmann::ordered_json& result) {
  std::string text = std::to_string(result.at("m").get<std::int64_t>()) + " x " +
                     std::to_string(result.at("n").get<std::int64_t>()) + " x " +
                     std::to_string(result.at("k").get<std::int64_t>());
  const std::string ops = result.value("op_a", "n") + result.value("op_b", "n");
  return text + (ops == "nn" ? "" : ", " + ops);
}

/// "64 x 64 x 64, 3 dispatches, in a scope"
inline std::string enqueued_text(const nlohmann::ordered_json& x) {
  const int dispatches = x.at("dispatches");
  return shape_text(x) + ", " + std::to_string(dispatches) + (dispatches == 1 ? " dispatch, " : " dispatches, ") +
         (x.at("scope").get<bool>() ? "in a scope" : "without a scope");
}

}  // namespace glgemm::tools
