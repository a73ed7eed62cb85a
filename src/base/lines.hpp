// Whether two matrices in one memory have bytes in common.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

namespace glgemm {

/// Lines of `width` bytes, `step` bytes apart, the first at `begin`: a matrix in a buffer, or in main memory.
struct ByteLines {
  std::int64_t begin = 0;
  std::int64_t count = 0;
  std::int64_t width = 0;
  std::int64_t step = 0;

  /// Behind the last byte.
  std::int64_t end() const noexcept { return count == 0 ? begin : begin + (count - 1) * step + width; }
};

inline bool overlap(ByteLines a, ByteLines b) noexcept {
  if (a.width == 0 || b.width == 0 || a.end() <= b.begin || b.end() <= a.begin) return false;
  if (a.count > b.count) std::swap(a, b);
  // Line i of a meets line j of b where b.begin + j * b.step lies in (begin - b.width, end): one division for each i finds the
  // least j.
  const std::int64_t step = std::max<std::int64_t>(1, b.step);  // a single line needs none
  for (std::int64_t i = 0; i < a.count; ++i) {
    const std::int64_t begin = a.begin + i * a.step, after = begin - b.width - b.begin;  // b's line starts later than this
    const std::int64_t j = after < 0 ? 0 : after / step + 1;
    if (j < b.count && b.begin + j * step < begin + a.width) return true;
  }
  return false;
}

}  // namespace glgemm
