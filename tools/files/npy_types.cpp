// The types of .npy files.
#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <stdexcept>

#include <fmt/core.h>

#include "files/npy.hpp"
#include "terminal/texts.hpp"

namespace glgemm::tools {

std::string to_string(const NpyType& type) {
  if (type.beyond_numpy) return std::string(info(*type.beyond_numpy).numpy);
  if (type.kind == 'b') return type.big_endian ? "bool, big-endian" : "bool";
  const std::string_view word = type.kind == 'f' ? "float" : type.kind == 'i' ? "int" : type.kind == 'u' ? "uint" : "complex";
  return fmt::format("{}{}{}", word, 8 * type.bytes, type.big_endian ? ", big-endian" : "");
}

std::string size_text(std::int64_t rows, std::int64_t columns) {
  return fmt::format("{}x{}", rows, columns);
}

std::optional<Type> type_in(const NpyType& type) {
  if (type.beyond_numpy) return type.beyond_numpy;
  const std::string code = type.kind + std::to_string(type.bytes);
  const auto found = std::find_if(all_types.begin(), all_types.end(), [&](Type one) { return info(one).npy == code; });
  return found != all_types.end() ? std::optional(*found) : std::nullopt;
}

NpyType npy_type(Type type, const std::string& path) {
  const std::string_view code = info(type).npy;
  if (code.empty())
    throw std::invalid_argument(fmt::format("NumPy has no {}, so {} cannot be written", info(type).numpy, quote(path)));
  NpyType result;
  result.kind = code[0];
  std::from_chars(code.data() + 1, code.data() + code.size(), result.bytes);
  result.big_endian = std::endian::native == std::endian::big && result.bytes > 1;
  return result;
}

std::string_view overflow_name(Type type) {
  return with_type(type, []<class T>(T) -> std::string_view {
    if constexpr (SmallFloat<T>)
      if (std::isnan(static_cast<float>(T(std::numeric_limits<float>::infinity())))) return "NaN";
    return "infinite";
  });
}

}  // namespace glgemm::tools
