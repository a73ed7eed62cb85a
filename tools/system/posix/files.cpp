// Files where the system is POSIX: see files.hpp.
#include "system/files.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>

namespace glgemm::tools {
namespace {

namespace fs = std::filesystem;

/// Fills in what stat() or fstat() has found, whose result is `failed`.
int take_status(int failed, const struct stat& found, FileStatus& status) {
  if (failed != 0) return errno;
  const auto nanoseconds = [](const timespec& time) { return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; };
  status = {S_ISDIR(found.st_mode),     S_ISREG(found.st_mode),     found.st_size,
            nanoseconds(found.st_mtim), nanoseconds(found.st_ctim), found.st_ino};
  return 0;
}

/// Calls pread or pwrite until all is done, the file ends or there is an error.
template <class Call, class Data>
int transfer(Call call, int file, std::int64_t offset, Data data, std::size_t bytes, std::size_t& done) {
  for (done = 0; done < bytes;) {
    const ssize_t got = call(file, data + done, bytes - done, offset + static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) return 0;
    done += static_cast<std::size_t>(got);
  }
  return 0;
}

/// Another program may rename or remove the file before it is locked here; then there is another one to lock.
int open_and_lock(const std::string& path, Descriptor& file, bool& held) {
  struct stat opened {
  }, named{};
  do {
    file.reset(open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (file.get() < 0) return errno;
    held = flock(file.get(), LOCK_EX | LOCK_NB) != 0;
    if (held) return errno;
  } while (fstat(file.get(), &opened) == 0 && (lstat(path.c_str(), &named) != 0 || named.st_ino != opened.st_ino));
  return 0;
}

int opened(std::FILE* stream) {
  return stream ? 0 : errno;
}

}  // namespace

fs::path to_path(std::string_view text) {
  return text;
}

std::string to_text(const fs::path& path) {
  return path.string();
}

std::string system_message(int error) {
  return error == ENOSPC ? "the disk is full" : std::generic_category().message(error);
}

void Descriptor::reset(int descriptor) noexcept {
  if (descriptor_ >= 0) close(descriptor_);
  descriptor_ = descriptor;
}

int find_status(const std::string& path, FileStatus& status) {
  struct stat found {};
  return take_status(stat(path.c_str(), &found), found, status);
}

int find_status(int file, FileStatus& status) {
  struct stat found {};
  return take_status(fstat(file, &found), found, status);
}

bool is_missing(int error) {
  return error == ENOENT || error == ENOTDIR;
}

std::string whole_path(const std::string& path) {
  std::error_code error;
  const fs::path whole = fs::absolute(path, error);
  return error ? path : whole.string();
}

std::string without_ignored_end(const std::string& path) {
  return path;
}

int find_real_path(const std::string& path, std::string& real) {
  std::error_code error;
  real = fs::canonical(path, error).string();
  return error.value();
}

std::uint64_t free_bytes(const std::string& folder) {
  std::error_code unknown;
  const fs::space_info space = fs::space(folder, unknown);
  return unknown ? std::uint64_t{1} << 62 : space.available;
}

bool is_link(const std::string& path) {
  std::error_code missing;
  return fs::is_symlink(fs::symlink_status(path, missing));
}

bool same_file(const std::string& path, const std::string& other) {
  const auto name = [](const std::string& x) { return x == "-" ? "/dev/stdout" : x.c_str(); };
  std::error_code missing;
  return fs::equivalent(name(path), name(other), missing) && !missing;
}

int check_writable(const std::string& path) {
  return access(path.c_str(), W_OK) == 0 ? 0 : errno;
}

int open_file(const std::string& path, Opening opening, Descriptor& file, bool* held) {
  bool ignored = false;
  if (opening == Opening::alone) return open_and_lock(path, file, held ? *held : ignored);
  const int how = opening == Opening::read ? O_RDONLY : O_RDWR | O_CREAT | O_NOFOLLOW;
  file.reset(open(path.c_str(), how | O_CLOEXEC, 0666));
  return file.get() < 0 ? errno : 0;
}

int create_file(const std::string& path, std::FILE*& stream, bool& exists) {
  stream = std::fopen(path.c_str(), "wbx");
  const int error = opened(stream);
  exists = error == EEXIST;
  return error;
}

int open_stream(const std::string& path, std::FILE*& stream) {
  stream = std::fopen(path.c_str(), "wb");
  return opened(stream);
}

int open_standard_output(std::FILE*& stream) {
  const int descriptor = dup(STDOUT_FILENO);
  stream = descriptor < 0 ? nullptr : fdopen(descriptor, "wb");
  return opened(stream);
}

int read_at(int file, std::int64_t offset, void* data, std::size_t bytes, std::size_t& done) {
  return transfer(pread, file, offset, static_cast<char*>(data), bytes, done);
}

int write_at(int file, std::int64_t offset, const void* data, std::size_t bytes, std::size_t& done) {
  return transfer(pwrite, file, offset, static_cast<const char*>(data), bytes, done);
}

int read_standard_input(void* data, std::size_t bytes, std::size_t& done) {
  ssize_t got = -1;
  do got = ::read(STDIN_FILENO, data, bytes);
  while (got < 0 && errno == EINTR);
  done = got < 0 ? 0 : static_cast<std::size_t>(got);
  return got < 0 ? errno : 0;
}

int resize_file(int file, std::int64_t bytes) {
  return ftruncate(file, bytes) == 0 ? 0 : errno;
}

int allocate_file(int file, std::int64_t bytes) {
  if (const int error = resize_file(file, 0)) return error;
  const int error = bytes > 0 ? posix_fallocate(file, 0, bytes) : 0;
  // Where the file system cannot set room aside, a full disk is told later.
  return error == EOPNOTSUPP || error == EINVAL ? resize_file(file, bytes) : error;
}

int sync_file(int file) {
  return fdatasync(file) == 0 ? 0 : errno;
}

int replace_file(const std::string& from, const std::string& to) {
  return std::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

void remove_file(const std::string& path) noexcept {
  unlink(path.c_str());
}

void copy_permissions(const std::string& from, const std::string& to) noexcept {
  std::error_code error;
  const fs::file_status status = fs::status(from, error);
  if (!error) fs::permissions(to, status.permissions(), error);
}

int make_folders(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  return error.value();
}

void remove_folder(const std::string& path) noexcept {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

int make_temporary_folder(std::string& path) {
  std::error_code error;
  path = (fs::temp_directory_path(error) / "glgemm-XXXXXX").string();
  return error ? error.value() : mkdtemp(path.data()) ? 0 : errno;
}

}  // namespace glgemm::tools
