// The date that tables and reports carry.
#pragma once

#include <array>
#include <chrono>
#include <cstdio>
#include <string>

namespace glgemm::tools {

/// Today, in UTC, as "2000-12-31".
inline std::string today() {
  const std::chrono::year_month_day day{std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now())};
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02u-%02u", static_cast<int>(day.year()), static_cast<unsigned>(day.month()),
                static_cast<unsigned>(day.day()));
  return text.data();
}

}  // namespace glgemm::tools
