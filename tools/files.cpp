// Files for the tools: see files.hpp.
#include "files.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <random>
#include <system_error>

namespace glgemm::tools {
namespace {

namespace fs = std::filesystem;

std::string message(int error) {
  return std::generic_category().message(error);
}

/// The temporary files that exist, for the signal handler: it may touch nothing but lock-free atomics.
std::array<std::atomic<const char*>, 16> temporaries{};
static_assert(std::atomic<const char*>::is_always_lock_free);

void remove_temporaries(int signal) {
  for (auto& temporary : temporaries)
    if (const char* path = temporary.exchange(nullptr)) unlink(path);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void remember(const std::string& path) {
  for (int signal : {SIGINT, SIGTERM, SIGHUP})
    if (std::signal(signal, remove_temporaries) == SIG_IGN) std::signal(signal, SIG_IGN);  // as nohup wants it
  for (auto& temporary : temporaries) {
    const char* none = nullptr;
    if (temporary.compare_exchange_strong(none, path.c_str())) return;
  }
}

void forget(const std::string& path) {
  for (auto& temporary : temporaries) {
    const char* expected = path.c_str();
    if (temporary.compare_exchange_strong(expected, nullptr)) return;
  }
}

std::string random_name() {
  constexpr std::string_view digits = "0123456789abcdefghijklmnopqrstuv";
  std::random_device random;
  std::string name = ".glgemm-";
  for (int i = 0; i < 10; ++i) name += digits[random() % digits.size()];
  return name + ".tmp";
}

}  // namespace

InputFile::InputFile(const std::string& path) : path_(path) {
  // Looked at before it is opened: opening a pipe would wait for its other end.
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) throw FileError("cannot read '" + path + "': " + message(errno));
  if (S_ISDIR(status.st_mode)) throw FileError("cannot read '" + path + "': it is a folder");
  if (!S_ISREG(status.st_mode)) throw FileError("cannot read '" + path + "': it is not a regular file");
  file_.reset(std::fopen(path.c_str(), "rb"));
  if (!file_) throw FileError("cannot read '" + path + "': " + message(errno));
  size_ = status.st_size;
}

void InputFile::read(std::int64_t offset, void* data, std::size_t bytes) {
  if (bytes == 0) return;
  errno = 0;
  if (fseeko(file_.get(), static_cast<off_t>(offset), SEEK_SET) != 0 || std::fread(data, 1, bytes, file_.get()) != bytes) {
    if (std::ferror(file_.get()) || errno != 0) throw FileError("cannot read '" + path_ + "': " + message(errno));
    throw FileError("'" + path_ + "' ended while it was read: " + std::to_string(bytes) + " bytes were expected from byte " +
                    std::to_string(offset) + " on");
  }
}

OutputFile::OutputFile(const std::string& path) : path_(path), target_(path) {
  if (path.empty()) throw FileError("cannot write a file without a name");
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::exists(status)) {
    if (fs::is_directory(status)) throw FileError("cannot write '" + path + "': it is a folder");
    if (access(path.c_str(), W_OK) != 0) fail(errno);
    target_ = fs::canonical(path, error).string();
    if (error) fail(error.value());
    if (!fs::is_regular_file(status)) {
      file_ = std::fopen(path.c_str(), "wb");
      if (!file_) fail(errno);
      return;
    }
  } else {
    if (error && status.type() != fs::file_type::not_found) fail(error.value());
    if (fs::is_symlink(fs::symlink_status(path, error))) throw FileError("cannot write '" + path + "': it is a link to nothing");
    if (fs::path(path).filename().empty()) throw FileError("cannot write '" + path + "': it names a folder");
    const fs::path given = fs::path(path).parent_path();
    const fs::path folder = given.empty() ? fs::path(".") : given;
    if (!fs::is_directory(folder, error)) {
      if (error && error != std::errc::no_such_file_or_directory) fail(error.value());
      throw FileError("cannot write '" + path + "': there is no folder '" + folder.string() + "'");
    }
    target_ = (fs::canonical(folder, error) / fs::path(path).filename()).string();
    if (error) fail(error.value());
  }
  // Short, and no longer than any name that the folder can hold in practice.
  do {
    temporary_ = (fs::path(target_).parent_path() / random_name()).string();
    file_ = std::fopen(temporary_.c_str(), "wbx");
  } while (!file_ && errno == EEXIST);
  if (!file_) {
    const int reason = errno;
    temporary_.clear();
    fail(reason);
  }
  remember(temporary_);
  if (fs::exists(status))
    fs::permissions(temporary_, status.permissions(), error);  // the contents matter more than a failure here
}

OutputFile::~OutputFile() {
  if (file_) std::fclose(file_);
  if (!temporary_.empty()) {
    unlink(temporary_.c_str());
    forget(temporary_);
  }
}

void OutputFile::fail(int error) {
  throw FileError("cannot write '" + path_ + "': " + (error == ENOSPC ? "the disk is full" : message(error)));
}

void OutputFile::write(const void* data, std::size_t bytes) {
  if (bytes > 0 && std::fwrite(data, 1, bytes, file_) != bytes) fail(errno);
}

void OutputFile::finish() {
  if (!file_) return;
  const int flushed = std::fflush(file_);
  const int reason = errno;
  const int closed = std::fclose(file_);
  file_ = nullptr;
  if (flushed != 0) fail(reason);
  if (closed != 0) fail(errno);
}

void OutputFile::commit() {
  finish();
  if (temporary_.empty()) return;
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) fail(errno);
  forget(temporary_);
  temporary_.clear();
}

}  // namespace glgemm::tools
