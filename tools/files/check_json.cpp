// Writes what a check has found as JSON.
#include "files/check_json.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

namespace glgemm::tools {

nlohmann::ordered_json check_json(const ProductCheck& check) {
  const auto finite = [](double x) { return std::min(x, std::numeric_limits<double>::max()); };
  nlohmann::ordered_json json{{"method", check.method},
                              {"passed", check.passed},
                              {"compared", check.compared},
                              {"worst_ratio", finite(check.worst_ratio)},
                              {"worst_ratio_sqrt", finite(check.worst_ratio_sqrt)},
                              {"median_ratio", finite(check.median_ratio)},
                              {"row", check.row},
                              {"column", check.column}};
  if (check.batch > 1) json["product"] = check.item;
  json.update({{"got", check.got}, {"expected", check.expected}, {"bound", check.bound}, {"summary", check.summary}});
  return json;
}

std::array<std::string, 3> check_cells(const nlohmann::ordered_json& check) {
  const auto ratio = [&](const char* name) {
    if (!check.contains(name)) return std::string();
    const double value = check[name];
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.2g", value < std::numeric_limits<double>::max() ? value : HUGE_VAL);
    return std::string(text.data());
  };
  std::string text = (check.at("passed").get<bool>() ? "ok, " : "WRONG, ") + check.at("method").get<std::string>();
  if (check.value("worst_ratio", 0.0) > 0 && check.contains("row"))
    text += ", worst at (" + (check.contains("product") ? check["product"].dump() + "; " : "") + check["row"].dump() + ", " +
            check.at("column").dump() + ")";
  return {ratio("worst_ratio"), ratio("median_ratio"), text};
}

}  // namespace glgemm::tools
