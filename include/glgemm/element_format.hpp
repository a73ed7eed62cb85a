// What the elements of a matrix are: numbers of a type, or codes.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include <glgemm/export.hpp>
#include <glgemm/quantization.hpp>
#include <glgemm/types.hpp>

namespace glgemm {

/// What the elements of a matrix are: numbers of a type; or codes that stand for numbers of that type, which is then f32.
struct ElementFormat {
  Type type = Type::f32;
  Quantization quantization{};
  friend auto operator<=>(const ElementFormat&, const ElementFormat&) = default;
};
/// "f16", "q4_0".
GLGEMM_EXPORT std::string to_string(const ElementFormat& format);
/// Reads what `to_string` writes.  @throws std::invalid_argument  the message lists the known types and formats
GLGEMM_EXPORT ElementFormat parse_format(std::string_view text);
/// The bytes that so many successive elements take, from the beginning of a block on: whole blocks of a quantised matrix. Its
/// scales count where they lie in the blocks. INT64_MAX if they are more.
constexpr std::int64_t storage_bytes(const ElementFormat& format, std::int64_t elements) noexcept {
  const std::int64_t codes = format.quantization ? block_codes(format.quantization) : 1;
  const std::int64_t bytes = format.quantization ? block_bytes(format.quantization) : element_bytes(format.type);
  const std::int64_t blocks = elements / codes + (elements % codes > 0 ? 1 : 0);
  return blocks > INT64_MAX / bytes ? INT64_MAX : blocks * bytes;
}

}  // namespace glgemm
