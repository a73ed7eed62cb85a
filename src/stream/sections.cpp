// Sections of matrices on the host's side, read part by part.
#include "stream/sections.hpp"

#include <cstring>

#include "base/rounding.hpp"

namespace glgemm {
namespace {

/// Converts elements, in place or to other memory.
template <class From, class To>
void convert_all(const std::byte* from, std::byte* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, from + static_cast<std::int64_t>(sizeof(From)) * i, sizeof(From));
    const auto converted = static_cast<To>(value);
    std::memcpy(to + static_cast<std::int64_t>(sizeof(To)) * i, &converted, sizeof(To));
  }
}

}  // namespace

QuantizedLayout quantized_layout(const Quantization& quantization, std::int64_t lines, std::int64_t width) {
  QuantizedLayout result{.bytes = quantized_bytes(quantization, lines, width)};
  result.scales = round_up(result.bytes.codes, 4);
  result.zeros = result.scales + round_up(result.bytes.scales, 4);
  result.size_bytes = result.zeros + round_up(result.bytes.zeros, 4);
  return result;
}

std::int64_t max_codes(const Quantization& quantization, std::int64_t width, std::int64_t max_bytes) {
  const std::int64_t unit = section_codes(quantization);
  const auto fitting = [&](std::int64_t codes) {
    const QuantizedBytes one = quantized_bytes(quantization, 1, codes);
    return (max_bytes - 3 * 3) / (one.codes + one.scales + one.zeros);  // up to 3 bytes fill each array's last word
  };
  const std::int64_t lines = fitting(width);
  return lines > 0 ? lines * width : fitting(unit) * unit;
}

std::int64_t window_bytes(const Problem& problem, Role role, std::int64_t rows, std::int64_t k) {
  const ElementFormat& format = format_of(problem, role);
  return format.quantization ? quantized_layout(format.quantization, rows, k).size_bytes : rows * k * element_bytes(format.type);
}

void read_wide(const HostMatrix& matrix, const Section& section, std::byte* room) {
  const std::int64_t count = section.rows * section.columns;
  const Type wide = accumulator(matrix.type);
  if (matrix.type == wide) return matrix.read(section, room);
  // Narrow elements are read into the end of the room, so that they can be widened in it from the first on.
  std::byte* const narrow = room + count * (element_bytes(wide) - element_bytes(matrix.type));
  matrix.read(section, narrow);
  with_type(matrix.type, [&]<class T>(T) { convert_all<T, accumulator_t<T>>(narrow, room, count); });
}

void convert_sums(Type c_type, std::byte* elements, std::int64_t count) {
  if (c_type == accumulator(c_type)) return;
  with_type(c_type, [&]<class T>(T) { convert_all<accumulator_t<T>, T>(elements, elements, count); });
}

}  // namespace glgemm
