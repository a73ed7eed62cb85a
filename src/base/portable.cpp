// In programs made with GLGEMM_PORTABLE: what the static C++ library would take from a C library as new as its own.
#include <sys/random.h>

#include <cstdint>
#include <cstdlib>

// For std::random_device; glibc has it since 2.36.
extern "C" __attribute__((visibility("hidden"))) std::uint32_t arc4random() noexcept {
  std::uint32_t value = 0;
  if (getrandom(&value, sizeof value, 0) != sizeof value) std::abort();
  return value;
}
