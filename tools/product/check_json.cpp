// Writes what a check has found as JSON.
#include "product/check_json.hpp"

#include <algorithm>
#include <limits>

#include <fmt/core.h>

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

CheckCells check_cells(const nlohmann::ordered_json& check) {
  const auto ratio = [&](const char* name) {
    if (!check.contains(name)) return std::string();
    const double value = check[name];
    return value < std::numeric_limits<double>::max() ? fmt::format("{:.2g}", value) : "inf";
  };
  CheckCells cells{ratio("worst_ratio"), "", ratio("median_ratio"), ""};
  if (check.contains("row") && check.at("worst_ratio") > 0)
    cells.place = "(" + (check.contains("product") ? check["product"].dump() + "; " : "") + check["row"].dump() + ", " +
                  check.at("column").dump() + ")";
  cells.verdict = (check.at("passed").get<bool>() ? "ok, " : "WRONG, ") + check.at("method").get<std::string>();
  return cells;
}

}  // namespace glgemm::tools
