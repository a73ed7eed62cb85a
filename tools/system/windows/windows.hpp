// What the Windows side of this folder shares: windows.h without its macros, UTF-8 to UTF-16 and back, and paths of any length.
#pragma once

#define WIN32_LEAN_AND_MEAN
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>

#include <string>
#include <string_view>
#include <utility>

namespace glgemm::tools {

inline int last_error() {
  return static_cast<int>(GetLastError());
}
std::wstring wide(std::string_view utf8);
std::string utf8(std::wstring_view wide);
/// A path for Windows' functions: made absolute if it is so long that they would refuse it otherwise.
std::wstring native_path(const std::string& path);

/// A handle, closed in the end; or none.
class Handle {
 public:
  explicit Handle(HANDLE handle = nullptr) noexcept : handle_(handle == INVALID_HANDLE_VALUE ? nullptr : handle) {}
  ~Handle() { reset(); }
  Handle(Handle&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    reset(std::exchange(other.handle_, nullptr));
    return *this;
  }
  HANDLE get() const noexcept { return handle_; }
  explicit operator bool() const noexcept { return handle_ != nullptr; }
  void reset(HANDLE handle = nullptr) noexcept {
    if (handle_) CloseHandle(handle_);
    handle_ = handle == INVALID_HANDLE_VALUE ? nullptr : handle;
  }
  HANDLE release() noexcept { return std::exchange(handle_, nullptr); }

 private:
  HANDLE handle_;
};

}  // namespace glgemm::tools
