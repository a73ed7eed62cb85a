// Sections of matrices on the host's side, read part by part.
#include "stream/sections.hpp"

#include <cstring>

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
