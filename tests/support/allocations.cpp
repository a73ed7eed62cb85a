#include "support/allocations.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <new>

#ifndef _WIN32
#include <execinfo.h>
#include <link.h>
#endif

namespace glgemm::test {
namespace {

std::atomic<std::int64_t> left = 0;  ///< until one fails; 0: none does
std::atomic<bool> has_failed = false;

#ifndef _WIN32
/// Where the code lies of programs and libraries that have `name` in theirs. A driver's compiler allocates millions of times, so
/// that nothing but addresses may be compared then.
class Code {
 public:
  void find(const char* name) {
    name_ = name;
    count_ = 0;
    ::dl_iterate_phdr(&add, this);
  }
  bool has(const void* place) const {
    const auto at = reinterpret_cast<std::uintptr_t>(place);
    return std::any_of(parts_, parts_ + count_, [&](const Part& part) { return at >= part.begin && at < part.end; });
  }

 private:
  struct Part {
    std::uintptr_t begin, end;
  };

  static int add(dl_phdr_info* file, std::size_t, void* code) {
    Code& self = *static_cast<Code*>(code);
    const char* const path = *file->dlpi_name ? file->dlpi_name : program_invocation_name;
    const char* const slash = std::strrchr(path, '/');
    if (!std::strstr(slash ? slash : path, self.name_)) return 0;
    for (const ElfW(Phdr)* part = file->dlpi_phdr; part != file->dlpi_phdr + file->dlpi_phnum; ++part) {
      const std::uintptr_t begin = file->dlpi_addr + part->p_vaddr;
      if (part->p_type == PT_LOAD && (part->p_flags & PF_X) && self.count_ < std::size(self.parts_))
        self.parts_[self.count_++] = {begin, begin + part->p_memsz};
    }
    return 0;
  }

  const char* name_ = "";
  Part parts_[8] = {};
  std::size_t count_ = 0;
};
Code failing_code, library_code;

/// Whether operator new was called by the failing code, maybe by way of the C++ library's functions. It returns to `caller`.
bool is_call_of_failing_code(void* caller) {
  if (!library_code.has(caller)) return failing_code.has(caller);
  void* frames[12];
  void** const end = frames + ::backtrace(frames, 12);
  void** const frame = std::find_if(std::find(frames, end, caller), end, [](void* place) { return !library_code.has(place); });
  return frame != end && failing_code.has(*frame);
}
#endif

bool shall_fail([[maybe_unused]] void* caller) {
#ifndef _WIN32
  if (left.load() == 0 || !is_call_of_failing_code(caller) || left.fetch_sub(1) != 1) return false;
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

void fail_allocation([[maybe_unused]] std::int64_t number, [[maybe_unused]] const char* file) {
#ifndef _WIN32
  void* frame = nullptr;
  ::backtrace(&frame, 1);  // which allocates at its first call
  failing_code.find(file);
  library_code.find("libstdc++");
#endif
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
