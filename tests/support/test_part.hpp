// The part of the programs that a run of the tests takes.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

namespace glgemm::test {

/// GLGEMM_TEST_PART=I/N: the I-th part from 0 on of N parts of the programs. They take longest to compile on the newer Mesas, of which
/// each takes another part. So do tests of plans and of the tuner, by random numbers or problems, which are slow under sanitizers.
struct Part {
  std::uint32_t index = 0, of = 1;
  /// Whether a program, or a random number, is in it: as if by chance, since every other one in their list is of one kind.
  bool has(std::size_t program) const { return (static_cast<std::uint32_t>(program) * 0x9e3779b9u >> 16) % of == index; }
};
inline Part part() {
  Part result;
  const char* const text = std::getenv("GLGEMM_TEST_PART");
  if (!text) return result;
  if (std::sscanf(text, "%u/%u", &result.index, &result.of) != 2 || result.index >= result.of)
    throw std::invalid_argument("GLGEMM_TEST_PART is not I/N with I below N: " + std::string(text));
  return result;
}
/// Those of the part that this run of the tests takes.
template <class T>
std::vector<T> in_part(const std::vector<T>& all) {
  std::vector<T> result;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (part().has(i)) result.push_back(all[i]);
  return result;
}

}  // namespace glgemm::test
