// Types and precisions by their names.
#include <glgemm/precision.hpp>
#include <glgemm/types.hpp>

#include <cmath>
#include <limits>

#include "base/text.hpp"

namespace glgemm {
namespace {

constexpr auto name_of = [](auto each) { return to_string(each); };

}  // namespace

std::string type_names() {
  return names_of(all_types, name_of);
}

Type parse_type(std::string_view text) {
  return find_named(all_types, text, name_of, "type", "types");
}

Precision parse_precision(std::string_view text) {
  return find_named(all_precisions, text, name_of, "precision", "precisions");
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
