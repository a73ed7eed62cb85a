// What operator new gives: counted, and refused on purpose. For programs that have allocations.cpp.
#pragma once

#include <cstddef>
#include <cstdint>

namespace glgemm::test {

/// The allocations of this thread while it is armed.
struct Allocations {
  bool armed = false;
  std::int64_t count = 0;
  std::size_t sizes[8] = {};
};
inline thread_local Allocations allocations;

/// From now on one allocation fails: the `number`-th one, from 1 on, that code of a program or library with `file` in its name
/// makes, on any thread. Drivers' code does without: LLVM's ends the process. Not on Windows.
void fail_allocation(std::int64_t number, const char* file);
/// No allocation fails from now on. Returns whether one has.
bool end_failing();

}  // namespace glgemm::test
