// Numbers of plans, as text, and the lines that show them.
#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <iostream>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>
#include <glgemm/inspect.hpp>

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

/// 1,234 pieces, or 1 piece.
inline std::string counted(std::int64_t count, std::string_view one, std::string_view ending = "s") {
  return fmt::format("{} {}{}", grouped(count), one, count == 1 ? "" : ending);
}

/// 20,000 or 7.642.
inline std::string decimal(double value) {
  if (value < 1e15 && (value >= 1000 || value == std::floor(value))) return grouped(std::llround(value));
  return fmt::format("{:.4g}", value);
}

template <class... Parts>
void line(std::string_view label, fmt::format_string<Parts...> text, Parts&&... parts) {
  std::cout << fmt::format("{:<13} {}\n", label, fmt::format(text, std::forward<Parts>(parts)...));
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
  const Block block = block_of(plan.kernel);
  return {ceil_div(plan.piece_n, block.columns), ceil_div(plan.piece_m, block.rows)};
}

}  // namespace glgemm::tools
