// What a check has found, as JSON and in words, for all verbs.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "product/product.hpp"

namespace glgemm::tools {

/// {"method", "passed", "compared", "worst_ratio", "worst_ratio_sqrt", "median_ratio", "row", "column", "got", "expected",
/// "bound", "summary"}; of a batch "product" says which of it is meant. JSON has no infinity: the ratio of a NaN is the greatest
/// double, and other numbers that are not finite are null.
nlohmann::ordered_json check_json(const ProductCheck& check);

/// What tables have of such JSON. What older reports lack is empty.
struct CheckCells {
  std::string error;    ///< the worst, as a part of its bound
  std::string place;    ///< where: "(3, 5)", of a batch "(2; 3, 5)"; empty where there is no error
  std::string median;   ///< error, as a part of its bound
  std::string verdict;  ///< "ok, bound"
};
CheckCells check_cells(const nlohmann::ordered_json& check);

}  // namespace glgemm::tools
