// Numbers of plans, as text.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <string>

#include <glgemm/plan.hpp>

namespace glgemm::tools {

/// 1234567 as 1,234,567.
inline std::string grouped(std::int64_t value) {
  std::string text = std::to_string(value);
  for (std::size_t i = text.size(); i > 3 + (value < 0 ? 1U : 0U);) text.insert(i -= 3, ",");
  return text;
}

inline std::string times(std::initializer_list<std::int64_t> sizes) {
  std::string text;
  for (const std::int64_t size : sizes) text += (text.empty() ? "" : " x ") + grouped(size);
  return text;
}

/// 20,000 or 7.642.
inline std::string decimal(double value) {
  if (value < 1e15 && (value >= 1000 || value == std::floor(value))) return grouped(std::llround(value));
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.4g", value);
  return text.data();
}

inline std::int64_t ceil_div(std::int64_t value, std::int64_t step) {
  return value / step + (value % step != 0);
}

struct Grid {
  std::int64_t columns;
  std::int64_t rows;
};

/// The workgroups of a whole piece.
inline Grid grid(const Plan& plan) {
  const Tile block = tile(plan.kernel);
  return {ceil_div(plan.piece_n, block.columns), ceil_div(plan.piece_m, block.rows)};
}

}  // namespace glgemm::tools
