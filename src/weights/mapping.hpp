// Files whose bytes are read where the system keeps them: mapping_posix.cpp and mapping_windows.cpp.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <system_error>

namespace glgemm {

/// A file's bytes, there as long as `keeper` or a copy of it lives.
struct Mapping {
  std::shared_ptr<const void> keeper;
  std::span<const std::byte> bytes;
};
/// Maps a regular file to be read.
std::error_code map_file(const std::filesystem::path& path, Mapping& mapping);

}  // namespace glgemm
