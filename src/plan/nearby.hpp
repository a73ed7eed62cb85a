// When two problems are the same work on the same memory.
#pragma once

#include <cstdint>

#include <glgemm/tuning.hpp>

namespace glgemm {

/// m, n and k as they are where C is row-major, of the transposed product where it is column-major; and the items of a batch.
struct Sizes {
  std::int64_t m, n, k, batch;
  friend bool operator==(const Sizes&, const Sizes&) = default;
};

Sizes sizes(const Problem& problem, const MemoryOrder& order);

/// Whether two letters of a MemoryOrder may be the same.
bool agree(char x, char y);

}  // namespace glgemm
