// Files for the tools: see files.hpp.
#include "files/files.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
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

/// What the signal handler says, and how many bytes it has.
std::atomic<const char*> last_words{};
std::atomic<std::size_t> last_words_bytes{};

std::atomic<void (*)()> before_ending{};

void remove_temporaries(int signal) {
  if (void (*const f)() = before_ending.exchange(nullptr)) f();
  if (const char* text = last_words.exchange(nullptr)) {
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text, last_words_bytes);
  }
  for (auto& temporary : temporaries)
    if (const char* path = temporary.exchange(nullptr)) unlink(path);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void catch_signals() {
  for (int signal : {SIGINT, SIGTERM, SIGHUP})
    if (std::signal(signal, remove_temporaries) == SIG_IGN) std::signal(signal, SIG_IGN);  // as nohup wants it
}

void remember(const std::string& path) {
  catch_signals();
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

[[noreturn]] void fail_to_write(const std::string& path, int error) {
  throw FileError("cannot write '" + path + "': " + (error == ENOSPC ? "the disk is full" : message(error)));
}

std::int64_t modified(const struct stat& status) {
  return std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
}

/// What an output's path leads to.
struct Target {
  std::string path;  ///< with links resolved
  bool exists = false;
  bool regular = true;  ///< or does not exist
  fs::perms permissions = fs::perms::unknown;
};

/// @throws FileError  as OutputFile
Target target_of(const std::string& path) {
  if (path.empty()) throw FileError("cannot write a file without a name");
  Target target{path};
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  target.exists = fs::exists(status);
  if (target.exists) {
    if (fs::is_directory(status)) throw FileError("cannot write '" + path + "': it is a folder");
    if (access(path.c_str(), W_OK) != 0) fail_to_write(path, errno);
    target.path = fs::canonical(path, error).string();
    if (error) fail_to_write(path, error.value());
    target.regular = fs::is_regular_file(status);
    target.permissions = status.permissions();
    return target;
  }
  if (error && status.type() != fs::file_type::not_found) fail_to_write(path, error.value());
  if (fs::is_symlink(fs::symlink_status(path, error))) throw FileError("cannot write '" + path + "': it is a link to nothing");
  if (fs::path(path).filename().empty()) throw FileError("cannot write '" + path + "': it names a folder");
  const fs::path given = fs::path(path).parent_path();
  const fs::path folder = given.empty() ? fs::path(".") : given;
  if (!fs::is_directory(folder, error)) {
    if (error && error != std::errc::no_such_file_or_directory) fail_to_write(path, error.value());
    throw FileError("cannot write '" + path + "': there is no folder '" + folder.string() + "'");
  }
  target.path = (fs::canonical(folder, error) / fs::path(path).filename()).string();
  if (error) fail_to_write(path, error.value());
  return target;
}

}  // namespace

void before_ending_by_signal(void (*f)()) {
  before_ending = f;
  catch_signals();
}

void Descriptor::reset(int descriptor) noexcept {
  if (descriptor_ >= 0) close(descriptor_);
  descriptor_ = descriptor;
}

void read_at(int file, const std::string& path, std::int64_t offset, void* data, std::size_t bytes) {
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t got = pread(file, static_cast<char*>(data) + done, bytes - done, offset + static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw FileError("cannot read '" + path + "': " + message(errno));
    if (got == 0)
      throw FileError("'" + path + "' ended while it was read: " + std::to_string(bytes) + " bytes were expected from byte " +
                      std::to_string(offset) + " on");
    done += static_cast<std::size_t>(got);
  }
}

void write_at(int file, const std::string& path, std::int64_t offset, const void* data, std::size_t bytes) {
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t put = pwrite(file, static_cast<const char*>(data) + done, bytes - done, offset + static_cast<off_t>(done));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail_to_write(path, errno);
    if (put == 0) fail_to_write(path, ENOSPC);
    done += static_cast<std::size_t>(put);
  }
}

void sync(int file, const std::string& path) {
  if (fdatasync(file) != 0) fail_to_write(path, errno);
}

InputFile::InputFile(const std::string& path) : path_(path) {
  // Looked at before it is opened: opening a pipe would wait for its other end.
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) throw FileError("cannot read '" + path + "': " + message(errno));
  if (S_ISDIR(status.st_mode)) throw FileError("cannot read '" + path + "': it is a folder");
  if (!S_ISREG(status.st_mode)) throw FileError("cannot read '" + path + "': it is not a regular file");
  file_.reset(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file_.get() < 0 || fstat(file_.get(), &status) != 0) throw FileError("cannot read '" + path + "': " + message(errno));
  size_ = status.st_size;
  modified_ns_ = modified(status);
}

InputFile::InputFile(std::string name, std::string contents)
    : path_(std::move(name)), size_(static_cast<std::int64_t>(contents.size())), contents_(std::move(contents)) {}

void InputFile::read(std::int64_t offset, void* data, std::size_t bytes) const {
  if (in_memory()) {
    if (bytes > 0) std::memcpy(data, contents_.data() + offset, bytes);
    return;
  }
  read_at(file_.get(), path_, offset, data, bytes);
}

void InputFile::require_unchanged() const {
  if (in_memory()) return;
  struct stat status {};
  if (fstat(file_.get(), &status) != 0) throw FileError("cannot read '" + path_ + "': " + message(errno));
  const std::string begin = "'" + path_ + "' was changed while it was read: ";
  if (status.st_size != size_)
    throw FileError(begin + "it had " + std::to_string(size_) + " bytes and has " + std::to_string(status.st_size));
  if (modified(status) != modified_ns_)
    throw FileError(begin + "its time of modification was " + std::to_string(modified_ns_) + " ns and is " +
                    std::to_string(modified(status)) + " ns");
}

std::string read_standard_input() {
  if (isatty(STDIN_FILENO) == 1)
    throw FileError("'-' is the standard input, which is a terminal: pipe a file into it, as in 'cat A.npy | glgemm ...'");
  std::string contents;
  std::array<char, 65536> part{};
  for (;;) {
    const ssize_t got = ::read(STDIN_FILENO, part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw FileError("cannot read the standard input: " + message(errno));
    if (got == 0) return contents;
    contents.append(part.data(), static_cast<std::size_t>(got));
  }
}

bool same_file(const std::string& path, const std::string& other) {
  const auto name = [](const std::string& x) { return x == "-" ? "/dev/stdout" : x.c_str(); };
  std::error_code missing;
  return fs::equivalent(name(path), name(other), missing) && !missing;
}

OutputFile::OutputFile(const std::string& path) : path_(path) {
  if (path == "-") {
    path_ = "standard output";
    target_ = path;
    const int descriptor = dup(STDOUT_FILENO);
    file_ = descriptor < 0 ? nullptr : fdopen(descriptor, "wb");
    if (!file_) fail(errno);
    return;
  }
  const Target target = target_of(path);
  target_ = target.path;
  if (!target.regular) {
    file_ = std::fopen(path.c_str(), "wb");
    if (!file_) fail(errno);
    return;
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
  std::error_code ignored;  // the contents matter more than a failure here
  if (target.exists) fs::permissions(temporary_, target.permissions, ignored);
}

OutputFile::~OutputFile() {
  if (file_) std::fclose(file_);
  if (!temporary_.empty()) {
    unlink(temporary_.c_str());
    forget(temporary_);
  }
}

void OutputFile::fail(int error) {
  fail_to_write(path_, error);
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

PartFile::PartFile(const std::string& path) : path_(path) {
  const Target target = target_of(path);
  if (!target.regular) throw FileError("cannot write '" + path + "' piece by piece: it is no regular file");
  target_ = target.path;
  temporary_ = target_ + ".glgemm-part";
  struct stat opened {
  }, named{};
  do {
    file_.reset(open(temporary_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (file_.get() < 0) fail_to_write(path_, errno);
    if (flock(file_.get(), LOCK_EX | LOCK_NB) != 0)
      throw FileError("cannot write '" + path_ + "': another program is writing it, in '" + temporary_ + "'");
    // Another program may have renamed or removed it before it was locked here.
  } while (fstat(file_.get(), &opened) == 0 && (stat(temporary_.c_str(), &named) != 0 || named.st_ino != opened.st_ino));
  if (!S_ISREG(opened.st_mode)) throw FileError("cannot write '" + temporary_ + "': it is no regular file");
  std::error_code ignored;  // the contents matter more than a failure here
  if (target.exists) fs::permissions(temporary_, target.permissions, ignored);
  size_ = opened.st_size;
  if (size_ == 0) remember(temporary_);
}

PartFile::~PartFile() {
  if (!temporary_.empty() && size_ == 0) remove();
}

void PartFile::allocate(std::int64_t bytes) {
  size_ = 0;
  if (ftruncate(file_.get(), 0) != 0) fail_to_write(path_, errno);
  int error = bytes > 0 ? posix_fallocate(file_.get(), 0, bytes) : 0;
  // Where the file system cannot set room aside, a full disk is told later.
  if (error == EOPNOTSUPP || error == EINVAL) error = ftruncate(file_.get(), bytes) == 0 ? 0 : errno;
  if (error != 0) fail_to_write(path_, error);
  size_ = bytes;
  forget(temporary_);
}

void PartFile::read(std::int64_t offset, void* data, std::size_t bytes) const {
  read_at(file_.get(), temporary_, offset, data, bytes);
}

void PartFile::write(std::int64_t offset, const void* data, std::size_t bytes) {
  write_at(file_.get(), path_, offset, data, bytes);
}

void PartFile::sync() {
  tools::sync(file_.get(), path_);
}

void PartFile::commit() {
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) fail_to_write(path_, errno);
  temporary_.clear();
}

void PartFile::remove() noexcept {
  unlink(temporary_.c_str());
  forget(temporary_);
  temporary_.clear();
}

RemovedBySignal::RemovedBySignal(std::string path) : path_(std::move(path)) {
  remember(path_);
}

RemovedBySignal::~RemovedBySignal() {
  forget(path_);
}

LastWords::LastWords(std::string text) : text_(std::move(text)) {
  last_words_bytes = text_.size();
  last_words = text_.data();
  catch_signals();
}

LastWords::~LastWords() {
  last_words = nullptr;
}

}  // namespace glgemm::tools
