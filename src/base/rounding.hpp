// Whole multiples of what is not negative.
#pragma once

#include <cstdint>

namespace glgemm {

constexpr std::int64_t ceil_div(std::int64_t value, std::int64_t step) {
  return value / step + (value % step != 0);
}
constexpr std::int64_t round_up(std::int64_t value, std::int64_t step) {
  return ceil_div(value, step) * step;
}

}  // namespace glgemm
