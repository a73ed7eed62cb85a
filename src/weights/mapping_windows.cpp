// Mapped files on Windows: see mapping.hpp.
#define WIN32_LEAN_AND_MEAN
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>

#include <cstdint>

#include "weights/mapping.hpp"

namespace glgemm {

std::error_code map_file(const std::filesystem::path& path, Mapping& mapping) {
  const HANDLE file = CreateFileW(path.c_str(), GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_DELETE, nullptr, OPEN_EXISTING,
                                  FILE_ATTRIBUTE_NORMAL, nullptr);
  const auto last_error = [] { return std::error_code(static_cast<int>(GetLastError()), std::system_category()); };
  if (file == INVALID_HANDLE_VALUE) return last_error();
  std::error_code failed;
  LARGE_INTEGER size{};
  const void* data = nullptr;
  if (!GetFileSizeEx(file, &size)) {
    failed = last_error();
  } else if (static_cast<std::uint64_t>(size.QuadPart) > SIZE_MAX) {
    failed = std::make_error_code(std::errc::file_too_large);
  } else if (size.QuadPart > 0) {  // what is empty cannot be mapped
    const HANDLE section = CreateFileMappingW(file, nullptr, PAGE_READONLY, 0, 0, nullptr);
    data = section ? MapViewOfFile(section, FILE_MAP_READ, 0, 0, 0) : nullptr;
    if (!data) failed = last_error();
    if (section) CloseHandle(section);
  }
  CloseHandle(file);
  if (!data) return failed;
  mapping.keeper.reset(data, [](const void* view) { UnmapViewOfFile(view); });
  mapping.bytes = {static_cast<const std::byte*>(data), static_cast<std::size_t>(size.QuadPart)};
  return failed;
}

}  // namespace glgemm
