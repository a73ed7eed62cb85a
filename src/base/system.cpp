// What the library asks of the system, alike on all systems: see system.hpp.
#include "base/system.hpp"

#include <fmt/core.h>

#include <random>

namespace glgemm {

namespace fs = std::filesystem;

std::error_code replace_file(const fs::path& path, std::string_view bytes) {
  std::error_code error, ignored;
  const fs::file_status there = fs::symlink_status(path, ignored);
  if (fs::exists(there) && !fs::is_regular_file(there)) return std::make_error_code(std::errc::file_exists);
  // Process numbers would not do: they may be equal on two machines or in two containers that share the folder.
  std::random_device random;
  fs::path temporary = path;
  temporary += fmt::format(".{:08x}{:08x}.tmp", random(), random());
  error = make_file(temporary, bytes);
  if (error == std::errc::file_exists) return error;  // another's
  if (!error) fs::rename(temporary, path, error);
  if (error) fs::remove(temporary, ignored);
  return error;
}

}  // namespace glgemm
