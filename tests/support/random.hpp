// Random numbers that depend on the seed alone: the same on all systems.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <random>

namespace glgemm::test {

class Random {
 public:
  explicit Random(std::uint64_t seed = 0) : engine_(seed) {}
  void seed(std::uint64_t seed) { engine_.seed(seed); }
  /// Any 64 bits.
  std::uint64_t bits() { return engine_(); }
  /// From 0 up to, but not including, `end`.
  std::int64_t below(std::int64_t end) { return static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(end)); }
  bool coin() { return below(2) == 1; }
  template <class T>
  T pick(std::initializer_list<T> values) {
    return values.begin()[below(static_cast<std::int64_t>(values.size()))];
  }
  /// One of a container's elements.
  template <class List>
  auto& one_of(List& list) {
    return list[static_cast<std::size_t>(engine_() % list.size())];
  }
  /// From -1 up to, but not including, 1.
  long double uniform() { return static_cast<long double>(engine_() >> 11) * 0x1p-52L - 1; }

 private:
  std::mt19937_64 engine_;
};

}  // namespace glgemm::test
