// Precisions by their names.
#include <glgemm/precision.hpp>

#include <algorithm>
#include <stdexcept>

namespace glgemm {

Precision parse_precision(std::string_view text) {
  const auto* const found =
      std::find_if(all_precisions.begin(), all_precisions.end(), [&](Precision each) { return to_string(each) == text; });
  if (found != all_precisions.end()) return *found;
  std::string names;
  for (const Precision each : all_precisions) names += (names.empty() ? "" : ", ") + std::string(to_string(each));
  throw std::invalid_argument("unknown precision \"" + std::string(text) + "\"; known precisions: " + names);
}

}  // namespace glgemm
