// The types by their names.
#include <glgemm/types.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace glgemm {

std::string type_names() {
  std::string names;
  for (const Type type : all_types) names += (names.empty() ? "" : ", ") + std::string(to_string(type));
  return names;
}

Type parse_type(std::string_view text) {
  const auto* const found = std::find_if(all_types.begin(), all_types.end(), [&](Type type) { return to_string(type) == text; });
  if (found == all_types.end())
    throw std::invalid_argument("unknown type \"" + std::string(text) + "\"; known types: " + type_names());
  return *found;
}

bool holds(Type type, double x) noexcept {
  return with_type(type, [&]<class T>(T) {
    if constexpr (std::is_integral_v<T>)
      return x >= std::numeric_limits<T>::min() && x <= std::numeric_limits<T>::max() && std::trunc(x) == x;
    else if constexpr (SmallFloat<T>)
      return !std::isfinite(x) || std::fabs(x) <= T::largest();
    else if constexpr (std::is_floating_point_v<T>)
      return !std::isfinite(x) || std::fabs(x) <= std::numeric_limits<T>::max();
    else
      return !std::isfinite(x) || std::fabs(x) <= std::numeric_limits<typename T::value_type>::max();
  });
}

}  // namespace glgemm
