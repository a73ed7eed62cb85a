// What the library asks of the system, where that is POSIX: see system.hpp.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "base/system.hpp"
#include "base/thread.hpp"

namespace glgemm {

std::optional<std::string> variable(const char* name) {
#if defined(__GLIBC__)
  const char* const value = secure_getenv(name);
#else
  const char* const value = std::getenv(name);
#endif
  if (!value) return std::nullopt;
  return value;
}

const std::string_view no_user_cache = "neither XDG_CACHE_HOME nor HOME names a folder";

std::filesystem::path whole_path(const std::filesystem::path& path) {
  return std::filesystem::absolute(path);
}

std::filesystem::path user_cache(std::string_view rest) {
  const std::pair<const char*, std::string_view> places[] = {{"XDG_CACHE_HOME", ""}, {"HOME", ".cache"}};
  for (const auto& [name, between] : places) {
    const std::filesystem::path home = variable(name).value_or("");
    if (home.is_absolute()) return between.empty() ? home / rest : home / between / rest;
  }
  return {};
}

std::string distrust(const std::filesystem::path& folder) {
  struct stat found {};
  if (::stat(folder.c_str(), &found) != 0) return "it can't be looked at";
  if (found.st_uid != ::geteuid()) return "it belongs to another user";
  if (found.st_mode & S_IWOTH) return "others may write into it";
  return "";
}

std::error_code make_file(const std::filesystem::path& path, std::string_view bytes) {
  const auto error = [] { return std::error_code(errno, std::generic_category()); };
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (file < 0) return error();
  const UnsignalledWrites unsignalled;
  std::error_code failed;
  while (!bytes.empty() && !failed) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written >= 0)
      bytes.remove_prefix(static_cast<std::size_t>(written));
    else if (errno != EINTR)
      failed = error();
  }
  if (::close(file) != 0 && !failed) failed = error();
  return failed;
}

bool is_open_elsewhere(const std::error_code&) {
  return false;
}

bool is_wine() {
  return false;
}

std::int64_t main_memory_bytes() {
#if defined(_SC_PHYS_PAGES)
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  if (pages > 0 && page > 0) return std::int64_t{pages} * page;
#endif
  return 0;
}

void* load_library(const std::string& name, std::string& why, bool if_loaded) {
  void* const library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | (if_loaded ? RTLD_NOLOAD : 0));
  if (!library && !if_loaded) why = ::dlerror();
  return library;
}

LibraryFunction library_function(void* library, const char* name) {
  return reinterpret_cast<LibraryFunction>(::dlsym(library, name));
}

void keep_loaded(const void* address) noexcept {
  Dl_info found{};
  if (::dladdr(address, &found) != 0 && found.dli_fname) ::dlopen(found.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

std::string& last_error_text() {
  thread_local std::string text;
  return text;
}

}  // namespace glgemm
