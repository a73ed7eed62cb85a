// What a check has found, as JSON and in words: the same of every verb.
#pragma once

#include <array>
#include <string>

#include <nlohmann/json.hpp>

#include "files/product.hpp"

namespace glgemm::tools {

/// {"method", "passed", "compared", "worst_ratio", "worst_ratio_sqrt", "median_ratio", "row", "column", "got", "expected",
/// "bound", "summary"}; of a batch "product" says which of it is meant. JSON has no infinity: the ratio of a NaN is the greatest
/// double, and other numbers that are not finite are null.
nlohmann::ordered_json check_json(const ProductCheck& check);

/// Cells of a table, of such JSON: the worst error and the median one as parts of their bounds, and "ok, bound, worst at (3, 5)".
/// What older reports lack is left out.
std::array<std::string, 3> check_cells(const nlohmann::ordered_json& check);

}  // namespace glgemm::tools
