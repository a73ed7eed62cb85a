// Multiples and products of numbers that are not negative.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>

namespace glgemm {

constexpr std::int64_t ceil_div(std::int64_t value, std::int64_t step) {
  return value / step + (value % step != 0);
}
constexpr std::int64_t round_up(std::int64_t value, std::int64_t step) {
  return ceil_div(value, step) * step;
}

/// The product of all, or the largest number where that is less.
constexpr std::int64_t saturating_product(std::initializer_list<std::int64_t> factors) {
  constexpr std::int64_t max = std::numeric_limits<std::int64_t>::max();
  std::int64_t result = 1;
  for (const std::int64_t factor : factors) result = factor != 0 && result > max / factor ? max : result * factor;
  return result;
}

}  // namespace glgemm
