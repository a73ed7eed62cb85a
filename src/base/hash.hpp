// FNV-1a, the hash by Fowler, Noll and Vo: http://www.isthe.com/chongo/tech/comp/fnv/.
#pragma once

#include <cstdint>
#include <string_view>

namespace glgemm {

/// A hash of 128 bits, high half first.
struct Hash128 {
  std::uint64_t high = 0, low = 0;
  friend bool operator==(const Hash128&, const Hash128&) = default;
};
constexpr Hash128 fnv1a_128(std::string_view bytes) noexcept {
  Hash128 hash{0x6c62272e07bb0142u, 0x62b821756295c58du};
  constexpr std::uint64_t small = 0x13b;  // the prime is 2^88 + 0x13b
  for (const char byte : bytes) {
    hash.low ^= static_cast<unsigned char>(byte);
    const std::uint64_t lower = (hash.low & 0xffffffffu) * small, upper = (hash.low >> 32) * small + (lower >> 32);
    hash.high = hash.high * small + (upper >> 32) + (hash.low << 24);
    hash.low *= small;
  }
  return hash;
}

}  // namespace glgemm
