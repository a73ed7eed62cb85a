// Texts for people: what comes from outside, made safe to show; amounts, times and dates.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace glgemm::tools {

/// A text from outside (a file's name or contents, an option's value, a driver's words) as a terminal may show it. Printable
/// UTF-8 stays. Bytes that control a terminal or end a line, bytes that are no UTF-8, and characters that turn the direction of
/// writing become escapes: \n, \t, \r, or \x1b and the like. `kept` has control characters that stay.
std::string visible(std::string_view text, std::string_view kept = {});
/// visible() between quotes: 'A.npy'.
std::string quote(std::string_view text);

/// The text with small letters in place of A to Z, by which names and endings are compared.
std::string lower(std::string_view text);

/// The words of a text in lines of at most `columns`. The first line goes on at column `indent`, the others are indented so.
std::string wrapped(const std::string& text, std::size_t indent = 0, std::size_t columns = 80);

/// 123456789 as "123 MB".
std::string bytes_text(double bytes);
/// 0.123 as "12 %".
std::string percent(double share);

/// How long something will take: "45 s", "12 min 5 s" or "3 h 20 min".
std::string duration_text(double seconds);
/// How long something took: "123.4 ms", "12.34 s" or "12 min 5 s".
std::string time_text(std::chrono::duration<double> time);

/// Today, in UTC, as "2000-12-31".
std::string today();

}  // namespace glgemm::tools
