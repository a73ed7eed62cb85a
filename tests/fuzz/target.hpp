// What every target of the fuzzer has: how it reports a finding, and how it draws values from the fuzzer's bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <string_view>

/// libFuzzer's entry. Whatever the bytes, it returns 0, or ends the program: by a sanitizer or by glgemm::fuzz::require.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace glgemm::fuzz {

/// Ends the program where a property does not hold: that is what the fuzzer looks for.
inline void require(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "FOUND: %s\n", what.c_str());
  std::abort();
}

inline std::string_view text(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Values from the fuzzer's bytes, the first byte first; zeros when they are used up.
class Bytes {
 public:
  Bytes(const std::uint8_t* data, std::size_t size) : data_(data), end_(data + size) {}

  std::uint8_t byte() { return data_ == end_ ? std::uint8_t{0} : *data_++; }
  bool coin() { return byte() % 2 != 0; }
  std::size_t below(std::size_t end) { return (end > 256 ? byte() * std::size_t{256} + byte() : byte()) % end; }
  std::int64_t pick(std::initializer_list<std::int64_t> values) { return values.begin()[below(values.size())]; }
  std::int64_t integer() {
    std::uint64_t value = 0;
    for (int i = 0; i < 8; ++i) value = value << 8 | byte();
    return static_cast<std::int64_t>(value);
  }

 private:
  const std::uint8_t* data_;
  const std::uint8_t* end_;
};

}  // namespace glgemm::fuzz
