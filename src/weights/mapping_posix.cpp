// Mapped files where the system is POSIX: see mapping.hpp.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "weights/mapping.hpp"

namespace glgemm {

std::error_code map_file(const std::filesystem::path& path, Mapping& mapping) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  std::error_code failed(file < 0 ? errno : 0, std::generic_category());
  if (failed) return failed;
  struct stat found {};
  std::size_t size = 0;
  void* data = nullptr;
  if (::fstat(file, &found) != 0)
    failed.assign(errno, std::generic_category());
  else if (static_cast<std::uintmax_t>(found.st_size) > SIZE_MAX)
    failed = std::make_error_code(std::errc::file_too_large);
  else if (size = static_cast<std::size_t>(found.st_size); size > 0) {  // what is empty cannot be mapped
    data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
    if (data == MAP_FAILED) failed.assign(errno, std::generic_category());
  }
  ::close(file);
  if (failed || size == 0) return failed;
  mapping.keeper.reset(static_cast<const void*>(data), [data, size](const void*) { ::munmap(data, size); });
  mapping.bytes = {static_cast<const std::byte*>(data), size};
  return failed;
}

}  // namespace glgemm
