// What the library asks of Windows: see system.hpp.
#define WIN32_LEAN_AND_MEAN
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>

#include <algorithm>

#include "base/fork.hpp"
#include "base/system.hpp"

namespace glgemm {
namespace {

/// Where each thread keeps its text.
class TextSlot {
 public:
  TextSlot() = default;
  ~TextSlot() { FlsFree(number_); }
  TextSlot(const TextSlot&) = delete;
  TextSlot& operator=(const TextSlot&) = delete;
  std::string& get() const {
    auto* text = static_cast<std::string*>(FlsGetValue(number_));
    if (!text) FlsSetValue(number_, text = new std::string);
    return *text;
  }

 private:
  static void NTAPI end(void* text) { delete static_cast<std::string*>(text); }
  DWORD number_ = FlsAlloc(end);
};

/// Whether the path begins at a drive's root or at a share: mingw-w64's C++ library does not know of shares.
bool is_whole(const std::filesystem::path& path) {
  return path.is_absolute() || path.native().starts_with(LR"(\\)");
}

}  // namespace

std::optional<std::string> variable(const char* name) {
  const std::wstring wide = to_path(name).wstring();
  std::wstring value;
  for (DWORD size = 256; size > value.size();) {  // it may grow meanwhile
    value.resize(size);
    SetLastError(ERROR_SUCCESS);
    size = GetEnvironmentVariableW(wide.c_str(), value.data(), size);
    if (size == 0 && GetLastError() != ERROR_SUCCESS) return std::nullopt;
    if (size < value.size()) {
      value.resize(size);
      break;
    }
  }
  return to_text(std::filesystem::path(value));
}

const std::string_view no_user_cache = "LOCALAPPDATA names no folder";

std::filesystem::path whole_path(const std::filesystem::path& path) {
  std::wstring whole(32768, L'\0');  // the longest that there is
  const DWORD size = GetFullPathNameW(path.c_str(), static_cast<DWORD>(whole.size()), whole.data(), nullptr);
  if (size == 0 || size >= whole.size()) return path;
  return whole.substr(0, size);
}

std::filesystem::path user_cache(std::string_view rest) {
  const std::filesystem::path home = to_path(variable("LOCALAPPDATA").value_or(""));
  return is_whole(home) ? (home / to_path(rest)).make_preferred() : std::filesystem::path();
}

// Whose a folder is and who may write there is said by its access list; what lies below a user's own folder is the user's.
std::string distrust(const std::filesystem::path&) {
  return "";
}

std::error_code make_file(const std::filesystem::path& path, std::string_view bytes) {
  const auto error = [] { return std::error_code(static_cast<int>(GetLastError()), std::system_category()); };
  const HANDLE file = CreateFileW(path.c_str(), GENERIC_WRITE, 0, nullptr, CREATE_NEW, FILE_ATTRIBUTE_NORMAL, nullptr);
  if (file == INVALID_HANDLE_VALUE) return error();
  std::error_code failed;
  while (!bytes.empty() && !failed) {
    const auto part = static_cast<DWORD>(std::min<std::size_t>(bytes.size(), 1 << 30));
    DWORD written = 0;
    if (WriteFile(file, bytes.data(), part, &written, nullptr))
      bytes.remove_prefix(written);
    else
      failed = error();
  }
  if (!CloseHandle(file) && !failed) failed = error();
  return failed;
}

bool is_open_elsewhere(const std::error_code& error) {
  return error == std::errc::permission_denied || error == std::error_code(ERROR_SHARING_VIOLATION, std::system_category());
}

bool is_wine() {
  const HMODULE system = GetModuleHandleW(L"ntdll.dll");
  return system && GetProcAddress(system, "wine_get_version");
}

std::int64_t main_memory_bytes() {
  MEMORYSTATUSEX status{};
  status.dwLength = sizeof status;
  return GlobalMemoryStatusEx(&status) ? static_cast<std::int64_t>(status.ullTotalPhys) : 0;
}

void* load_library(const std::string& name, std::string& why, bool if_loaded) {
  const std::filesystem::path path = to_path(name);
  const HMODULE library = if_loaded ? GetModuleHandleW(path.c_str())
                                    : LoadLibraryExW(path.c_str(), nullptr, is_whole(path) ? LOAD_WITH_ALTERED_SEARCH_PATH : 0);
  if (!library && !if_loaded) why = std::error_code(static_cast<int>(GetLastError()), std::system_category()).message();
  return library;
}

LibraryFunction library_function(void* library, const char* name) {
  return reinterpret_cast<LibraryFunction>(reinterpret_cast<void*>(GetProcAddress(static_cast<HMODULE>(library), name)));
}

void keep_loaded(const void* address) noexcept {
  HMODULE found = nullptr;
  GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_PIN, static_cast<LPCWSTR>(address),
                     &found);
}

// Windows has no fork.
void watch_forks() {}
bool is_forked() noexcept {
  return false;
}
void check_not_forked(const char*) {}

// mingw-w64 frees the memory of a thread's variables before it calls their destructors.
std::string& last_error_text() {
  static const TextSlot slot;
  return slot.get();
}

}  // namespace glgemm
