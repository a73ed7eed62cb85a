// Bytes that are changed at random, for as long as the variable says: what becomes of files.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <span>
#include <string>

#include "support/random.hpp"

namespace glgemm::test {

/// Calls `round` for GLGEMM_MUTATION_SECONDS, by default 2; returns how often. The push's run sets the variable.
template <class Round>
std::int64_t for_mutation_seconds(const Round& round) {
  const char* const given = std::getenv("GLGEMM_MUTATION_SECONDS");
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(given ? std::atof(given) : 2);
  std::int64_t rounds = 0;
  for (; std::chrono::steady_clock::now() < end; ++rounds) round();
  return rounds;
}

/// The text after `changes` changes: a bit is turned, a byte of `bytes` or any is set, bytes are cut out, filled or repeated, one
/// of `pieces` or a part of it is put in, or the end is lost.
inline std::string mutated(std::string text, std::int64_t changes, std::span<const std::string> pieces, std::string_view bytes,
                           Random& random) {
  for (; changes > 0 && !text.empty(); --changes) {
    const std::int64_t size = std::ssize(text);
    const auto at = static_cast<std::size_t>(random.below(size)), length = static_cast<std::size_t>(random.below(200));
    const auto any = static_cast<char>(random.below(256));
    const std::string& piece = random.one_of(pieces);
    switch (random.below(8)) {
      case 0:
        text[at] = static_cast<char>(text[at] ^ 1 << random.below(8));
        break;
      case 1:  // near the beginning
        text[static_cast<std::size_t>(random.below(std::min<std::int64_t>(size, 32)))] = any;
        break;
      case 2:
        text[at] = bytes.empty() ? any : random.one_of(bytes);
        break;
      case 3:
        text.erase(at, 1 + length % 20);
        break;
      case 4:
        text.replace(at, length, std::min(length, text.size() - at), any);
        break;
      case 5:
        text.insert(at,
                    random.coin() ? piece : piece.substr(static_cast<std::size_t>(random.below(std::ssize(piece) + 1)), length));
        break;
      case 6:
        text.insert(at, text.substr(static_cast<std::size_t>(random.below(size)), length));
        break;
      default:
        if (random.below(4) == 0) text.resize(at);
    }
  }
  return text;
}

}  // namespace glgemm::test
