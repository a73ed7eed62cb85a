// Why a product is not streamed: the memory that there may be is too small.
#pragma once

#include <cstdint>
#include <stdexcept>

namespace glgemm {

/// Bytes that buffers may have together: those on the device, and those there and on the host.
struct StreamMemory {
  std::int64_t device = 0, both = 0;
};

/// No piece fits the limits. Those that are too small are not 0, and neither is the least of each.
class MemoryTooSmall : public std::invalid_argument {
 public:
  MemoryTooSmall(const StreamMemory& too_small, const StreamMemory& needed);

  StreamMemory limits, least;
};

}  // namespace glgemm
