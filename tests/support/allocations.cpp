#include "support/allocations.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

#ifndef _WIN32
#include <dlfcn.h>
#include <execinfo.h>
#endif

namespace glgemm::test {
namespace {

std::atomic<std::int64_t> left = 0;  ///< until one fails; 0: none does
std::atomic<bool> has_failed = false;
std::atomic<const char*> failing_file = "";

#ifndef _WIN32
/// Whether operator new was called by code of that file, maybe by way of the C++ library's functions. It returns to `caller`.
bool is_call_of(const char* file, void* caller) {
  void* frames[12];
  void** const end = frames + ::backtrace(frames, 12);
  for (void** frame = std::find(frames, end, caller); frame != end; ++frame) {
    Dl_info place{};
    if (::dladdr(*frame, &place) == 0 || !place.dli_fname) return false;
    if (std::strstr(place.dli_fname, "libstdc++")) continue;
    const char* const slash = std::strrchr(place.dli_fname, '/');
    return std::strstr(slash ? slash : place.dli_fname, file) != nullptr;
  }
  return false;
}
#endif

bool shall_fail([[maybe_unused]] void* caller) {
#ifndef _WIN32
  if (left.load() == 0 || !is_call_of(failing_file, caller) || left.fetch_sub(1) != 1) return false;
  has_failed = true;
  return true;
#else
  return false;
#endif
}

void* allocate(std::size_t size, void* caller) {
  if (allocations.armed) {
    if (allocations.count < 8) allocations.sizes[allocations.count] = size;
    ++allocations.count;
  }
  void* const memory = shall_fail(caller) ? nullptr : std::malloc(size > 0 ? size : 1);
  if (!memory) throw std::bad_alloc();
  return memory;
}

}  // namespace

void fail_allocation(std::int64_t number, const char* file) {
#ifndef _WIN32
  void* frame = nullptr;
  ::backtrace(&frame, 1);  // which allocates at its first call
#endif
  failing_file = file;
  has_failed = false;
  left = number;
}

bool end_failing() {
  left = 0;
  return has_failed;
}

}  // namespace glgemm::test

using glgemm::test::allocate;

// The program's own, all of it, so that each delete belongs to its new.
void* operator new(std::size_t size) {
  return allocate(size, __builtin_return_address(0));
}
void* operator new[](std::size_t size) {
  return allocate(size, __builtin_return_address(0));
}
// The library's own ones call malloc behind a sanitizer's back and are freed by the operators below, so that these are replaced
// too.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return std::malloc(size > 0 ? size : 1);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return std::malloc(size > 0 ? size : 1);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}
