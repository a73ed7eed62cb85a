// The kept corpus as an ordinary test: each file of corpus/NAME goes to the target NAME, as the fuzzer would give it; and then
// such files that are changed at random, for as long as GLGEMM_MUTATION_SECONDS says, by default a second for each target.
//
//   glgemm_fuzz_corpus FOLDER [SEED]    prints the seed before a target's changed files
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "support/random.hpp"

using Target = int(const std::uint8_t* data, std::size_t size);
#define GLGEMM_FUZZ_TARGET(name) extern "C" Target glgemm_fuzz_##name;
#include "fuzz_targets.h"
#undef GLGEMM_FUZZ_TARGET

namespace {

using glgemm::test::Random;

void give(Target* target, const std::string& bytes) {
  target(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

/// The text after a change: a bit is turned, a byte is set, bytes are cut out, filled or repeated, one of `pieces` or a part of
/// it is put in, or the end is lost.
std::string changed(std::string text, const std::vector<std::string>& pieces, Random& random) {
  if (text.empty()) return random.one_of(pieces);
  const std::int64_t size = std::ssize(text);
  const auto at = static_cast<std::size_t>(random.below(size)), length = static_cast<std::size_t>(random.below(200));
  const auto any = static_cast<char>(random.below(256));
  const std::string& piece = random.one_of(pieces);
  const auto from = static_cast<std::size_t>(random.below(std::ssize(piece) + 1));
  switch (random.below(8)) {
    case 0:
      text[at] = static_cast<char>(text[at] ^ 1 << random.below(8));
      break;
    case 1:  // near the beginning
      text[static_cast<std::size_t>(random.below(std::min<std::int64_t>(size, 32)))] = any;
      break;
    case 2:
      text[at] = from < piece.size() ? piece[from] : any;
      break;
    case 3:
      text.erase(at, 1 + length % 20);
      break;
    case 4:
      text.replace(at, length, std::min(length, text.size() - at), any);
      break;
    case 5:
      text.insert(at, random.coin() ? piece : piece.substr(from, length));
      break;
    case 6:
      text.insert(at, text.substr(static_cast<std::size_t>(random.below(size)), length));
      break;
    default:
      if (random.below(4) == 0) text.resize(at);
  }
  return text;
}

/// Gives the target what is in the folder, and for so many seconds what becomes of it. Whether there is anything.
bool run(const std::filesystem::path& folder, const std::string& name, Target* target, double seconds, std::uint64_t seed) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder / name)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<std::string> contents;
  for (const std::filesystem::path& file : files) {
    std::cout << name << '/' << file.filename().string() << std::endl;  // it may be the last line
    std::ifstream stream(file, std::ios::binary);
    give(target, contents.emplace_back(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()));
  }
  std::cout << name << ", changed with the seed " << seed << std::endl;
  Random random(seed);
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (!contents.empty() && std::chrono::steady_clock::now() < end) {
    std::string bytes = random.one_of(contents);
    for (std::int64_t changes = 1 + random.below(4); changes > 0; --changes) bytes = changed(std::move(bytes), contents, random);
    give(target, bytes);
  }
  return !contents.empty();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) return 2;
  const char* const given = std::getenv("GLGEMM_MUTATION_SECONDS");
  const double seconds = given ? std::atof(given) : 1;
  const std::uint64_t seed = argc == 3 ? std::strtoull(argv[2], nullptr, 10) : std::random_device()();
  bool each_has_files = true;
#define GLGEMM_FUZZ_TARGET(name) each_has_files = run(argv[1], #name, glgemm_fuzz_##name, seconds, seed) && each_has_files;
#include "fuzz_targets.h"
#undef GLGEMM_FUZZ_TARGET
  return each_has_files ? 0 : 1;
}
