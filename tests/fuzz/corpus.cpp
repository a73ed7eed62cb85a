// The kept corpus as an ordinary test: each file of corpus/NAME goes to the target NAME, as the fuzzer would give it.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

using Target = int(const std::uint8_t* data, std::size_t size);
#define GLGEMM_FUZZ_TARGET(name) extern "C" Target glgemm_fuzz_##name;
#include "fuzz_targets.h"
#undef GLGEMM_FUZZ_TARGET

namespace {

/// Gives the target what is in the folder; returns how many files that was.
int run(const std::filesystem::path& folder, const std::string& name, Target* target) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder / name)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const std::filesystem::path& file : files) {
    std::cout << name << '/' << file.filename().string() << std::endl;  // it may be the last line
    std::ifstream stream(file, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(stream), {}};
    target(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  }
  return static_cast<int>(files.size());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  bool each_has_files = true;
#define GLGEMM_FUZZ_TARGET(name) each_has_files = run(argv[1], #name, glgemm_fuzz_##name) > 0 && each_has_files;
#include "fuzz_targets.h"
#undef GLGEMM_FUZZ_TARGET
  return each_has_files ? 0 : 1;
}
