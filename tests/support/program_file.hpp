// What a file of the program cache is made of, for tests that change such files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/hash.hpp"
#include "gl/program_cache.hpp"

namespace glgemm::test {

constexpr std::size_t program_header_size = 32;

/// Gives a file's contents the hash that belongs to the header and the binary in them, if they are as long as the header says.
inline void sign(std::string& contents) {
  std::uint64_t binary_size = 0;
  if (contents.size() < program_header_size) return;
  std::memcpy(&binary_size, contents.data() + 24, sizeof binary_size);
  if (binary_size > contents.size() || program_header_size + binary_size + sizeof(Hash128) > contents.size()) return;
  const Hash128 hash = fnv1a_128(std::string_view(contents).substr(0, program_header_size + binary_size));
  std::memcpy(contents.data() + program_header_size + binary_size, &hash, sizeof hash);
}

}  // namespace glgemm::test
