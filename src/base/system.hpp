// What the library asks of the system beyond the C++ library: system_posix.cpp and system_windows.cpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace glgemm {

/// A variable of the environment, nothing if it is not set or this program has more rights than its user: such a program must not
/// load what the user chooses.
std::optional<std::string> variable(const char* name);

/// The path from the file system's root on. The C++ library's own function takes \\server\share for a folder of the current
/// drive, where that library is mingw-w64's.
std::filesystem::path whole_path(const std::filesystem::path& path);

/// A place in the user's folder for what can be made again, `rest` being its end; empty if there is no such folder.
std::filesystem::path user_cache(std::string_view rest);
/// Why there is none, for messages.
extern const std::string_view no_user_cache;

/// Why nothing may be loaded from the folder; empty if it may be.
std::string distrust(const std::filesystem::path& folder);

/// Replaces a file, or makes it. Who reads it sees the old one or the new one, whole; there is no wait for the disk. The new one
/// is written beside it first, as PATH.<16 digits>.tmp: nobody can guess that name, and nothing that has it is opened. What is no
/// regular file, such as a device or a link, is not replaced.
std::error_code replace_file(const std::filesystem::path& path, std::string_view bytes);
/// Makes a file, which must not be there yet.
std::error_code make_file(const std::filesystem::path& path, std::string_view bytes);

/// Whether a file was not replaced since another program has the old one open: a reason on Windows alone.
bool is_open_elsewhere(const std::error_code& error);

/// Whether this is Wine. Its OpenGL puts a debug callback of its own before the application's: a program that asks for the
/// application's callback gets Wine's, which crashes when a thread of the driver calls it.
bool is_wine();

/// The bytes of this machine's memory; 0 if the system does not say.
std::int64_t main_memory_bytes();

/// A shared library, which stays loaded: by its path, or where the system looks for its name. Null if there is none, and `why`
/// then has the system's reason; `if_loaded`: null as well if nobody in this process has loaded it.
void* load_library(const std::string& name, std::string& why, bool if_loaded = false);
/// A function of it by its name; null if it has none.
using LibraryFunction = void (*)();
LibraryFunction library_function(void* library, const char* name);

/// Keeps the library that has this address loaded to the end of the process.
void keep_loaded(const void* address) noexcept;

/// Where the C interface keeps this thread's last error, as long as the thread lives.
std::string& last_error_text();

/// Texts are UTF-8, paths too, whatever the system's own are.
inline std::filesystem::path to_path(std::string_view text) {
#ifdef _WIN32  // the C runtime, which is below mingw-w64's C++ library, takes no \\?\ before a path
  constexpr std::string_view plain = R"(\\?\)", share = R"(\\?\UNC\)";
  if (text.starts_with(share)) return to_path(R"(\\)" + std::string(text.substr(share.size())));
  if (text.starts_with(plain) && text.substr(plain.size() + 1).starts_with(':')) text.remove_prefix(plain.size());
#endif
  return std::u8string(text.begin(), text.end());
}
inline std::string to_text(const std::filesystem::path& path) {
  const std::u8string text = path.u8string();
  return {text.begin(), text.end()};
}

}  // namespace glgemm
