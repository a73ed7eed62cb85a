// A folder of a test's own, removed with all that is in it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>

#include "support/messages.hpp"

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::random_device random;
    do path_ = std::filesystem::temp_directory_path() / ("glgemm-test-" + std::to_string(random()));
    while (!std::filesystem::create_directory(path_));
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string file(std::string_view name) const { return (path_ / name).string(); }
  std::string file(std::string_view name, std::string_view contents) const {
    std::ofstream(path_ / name, std::ios::binary).write(contents.data(), static_cast<std::streamsize>(contents.size()));
    return file(name);
  }
  /// How many files are in it, hidden ones included.
  std::ptrdiff_t count() const { return std::distance(std::filesystem::directory_iterator(path_), {}); }

  static std::string contents(const std::string& path) {
    std::ifstream stream(std::filesystem::path(path), std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

 private:
  std::filesystem::path path_;
};
