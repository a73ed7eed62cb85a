// NumPy's promotion: see promotion.hpp. The rules: numpy.org/neps/nep-0050-scalar-promotion.html
#include "product/promotion.hpp"

#include <algorithm>
#include <bit>
#include <string_view>
#include <utility>

namespace glgemm::tools {
namespace {

/// Each kind's values are among those of a later one, if that has bytes enough.
constexpr std::string_view kinds = "buifc";

/// The bytes of the smallest real floating-point type that holds values of this type.
int float_bytes(const NpyType& type) {
  switch (type.kind) {
    case 'b':
      return 2;
    case 'u':
    case 'i':
      return std::min(2 * type.bytes, 8);
    case 'c':
      return type.bytes / 2;
    default:
      return type.bytes;
  }
}

}  // namespace

NpyType promote(const NpyType& first, const NpyType& second) {
  NpyType a = first, b = second;
  if (kinds.find(a.kind) > kinds.find(b.kind)) std::swap(a, b);
  NpyType result{b.kind, std::max(a.bytes, b.bytes)};
  if (b.kind == 'c') {
    result.bytes = 2 * std::max(float_bytes(a), float_bytes(b));
  } else if (b.kind == 'f') {
    result.bytes = std::max(float_bytes(a), b.bytes);
  } else if (a.kind == 'u' && b.kind == 'i' && a.bytes >= b.bytes) {
    result = a.bytes == 8 ? NpyType{'f', 8} : NpyType{'i', 2 * a.bytes};
  }
  result.big_endian = std::endian::native == std::endian::big && result.bytes > 1;
  return result;
}

bool holds(const NpyType& to, const NpyType& from) {
  const NpyType both = promote(to, from);
  return both.kind == to.kind && both.bytes == to.bytes;
}

}  // namespace glgemm::tools
