// Texts for people: see texts.hpp.
#include "terminal/texts.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <sstream>

#include <fmt/core.h>

namespace glgemm::tools {
namespace {

/// How many bytes the UTF-8 character at the beginning has, 0 if none begins there; and its number.
std::size_t take_character(std::string_view text, char32_t& character) {
  const auto first = static_cast<unsigned char>(text.front());
  const std::size_t length = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  if (length == 0 || length > text.size()) return 0;
  character = length == 1 ? first : first & (0x7fU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xc0U) != 0x80) return 0;
    character = character << 6 | (next & 0x3fU);
  }
  constexpr std::array<char32_t, 5> least{0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = character >= 0xd800 && character <= 0xdfff;
  return character < least[length] || character > 0x10ffff || surrogate ? 0 : length;
}

bool is_printable(char32_t c) {
  const bool control = c < 0x20 || (c >= 0x7f && c < 0xa0);
  const bool line_or_direction = (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0x200e || c == 0x200f;
  return !control && !line_or_direction;
}

}  // namespace

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if ('A' <= c && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

std::string visible(std::string_view text, std::string_view kept) {
  std::string result;
  while (!text.empty()) {
    char32_t character = 0;
    const std::size_t length = take_character(text, character);
    const std::string_view bytes = text.substr(0, std::max<std::size_t>(length, 1));
    text.remove_prefix(bytes.size());
    if ((length > 0 && is_printable(character)) || kept.find(bytes) != kept.npos) {
      result += bytes;
      continue;
    }
    for (const char byte : bytes)
      result += byte == '\n'   ? "\\n"
                : byte == '\t' ? "\\t"
                : byte == '\r' ? "\\r"
                               : fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  }
  return result;
}

std::string quote(std::string_view text) {
  return "'" + visible(text) + "'";
}

std::string wrapped(const std::string& text, std::size_t indent, std::size_t columns) {
  std::istringstream words(text);
  std::string result;
  std::size_t column = indent;
  bool first_of_line = true;
  for (std::string word; words >> word; first_of_line = false) {
    if (!first_of_line && column + 1 + word.size() > columns) {
      result += '\n' + std::string(indent, ' ');
      column = indent;
      first_of_line = true;
    }
    if (!first_of_line) {
      result += ' ';
      ++column;
    }
    result += word;
    column += word.size();
  }
  return result;
}

std::string bytes_text(double bytes) {
  std::size_t unit = 0;
  for (; bytes >= 999.5 && unit < 6; ++unit) bytes /= 1000;
  const char* const name = std::array{"bytes", "kB", "MB", "GB", "TB", "PB", "EB"}[unit];
  if (bytes >= 1e5) return fmt::format("{:.3g} {}", bytes, name);
  return fmt::format("{:.{}f} {}", bytes, unit == 0 || bytes >= 99.95 ? 0 : bytes < 9.995 ? 2 : 1, name);
}

std::string percent(double share) {
  return fmt::format("{} %", std::lround(100 * share));
}

std::string duration_text(double seconds) {
  const auto whole = static_cast<long long>(std::ceil(seconds));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

std::string time_text(std::chrono::duration<double> time) {
  const double seconds = time.count();
  if (seconds >= 100) return duration_text(seconds);
  return seconds < 1 ? fmt::format("{:.4g} ms", 1e3 * seconds) : fmt::format("{:.4g} s", seconds);
}

std::string today() {
  const std::chrono::year_month_day day{std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now())};
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(day.year()), static_cast<unsigned>(day.month()),
                     static_cast<unsigned>(day.day()));
}

}  // namespace glgemm::tools
