// Files of tests/data.
#pragma once

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "processes/child.hpp"

/// The bytes of tests/data/NAME as numbers of T. The folder lies where it does in a build folder, beside that of the test
/// program.
template <class T>
std::vector<T> test_data(const std::string& name) {
  const std::filesystem::path file =
      std::filesystem::path(glgemm::tools::program_beside("glgemm")).parent_path() / "../tests/data" / name;
  std::ifstream stream(file, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
  if (bytes.empty() || bytes.size() % sizeof(T) != 0) throw std::runtime_error("no test data in " + file.string());
  std::vector<T> numbers(bytes.size() / sizeof(T));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}
