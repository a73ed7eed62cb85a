// Pieces of messages.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace glgemm {

/// "3x4", for messages.
inline std::string size_text(std::int64_t rows, std::int64_t columns) {
  return fmt::format("{}x{}", rows, columns);
}

/// "f32, f64, ...": the names of all elements of a list, by a function or a member.
template <class List, class Name>
std::string names_of(const List& list, Name name_of) {
  std::string text;
  for (const auto& each : list) text += fmt::format("{}{}", text.empty() ? "" : ", ", std::invoke(name_of, each));
  return text;
}

/// The element of a list that has this name. `what` and `plural` say what the list has.
/// @throws std::invalid_argument  there is none; the message lists all names
template <class List, class Name>
const auto& find_named(const List& list, std::string_view name, Name name_of, std::string_view what, std::string_view plural) {
  const auto found = std::find_if(std::begin(list), std::end(list),
                                  [&](const auto& each) { return std::string_view(std::invoke(name_of, each)) == name; });
  if (found != std::end(list)) return *found;
  throw std::invalid_argument(fmt::format("unknown {} \"{}\"; known {}: {}", what, name, plural, names_of(list, name_of)));
}

/// @throws std::invalid_argument  always: "gemm: " and the text
template <class... Args>
[[noreturn]] void refuse_product(fmt::format_string<Args...> text, Args&&... args) {
  throw std::invalid_argument("gemm: " + fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace glgemm
