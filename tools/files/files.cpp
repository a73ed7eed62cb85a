// Files for the tools: see files.hpp.
#include "files/files.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>
#include <system_error>

#include "system/program.hpp"

namespace glgemm::tools {
namespace {

namespace fs = std::filesystem;

/// The temporary files that exist, for the program's end from outside: then nothing but lock-free atomics may be touched.
std::array<std::atomic<const char*>, 16> temporaries{};
static_assert(std::atomic<const char*>::is_always_lock_free);

/// What is said then, and how many bytes it has.
std::atomic<const char*> last_words{};
std::atomic<std::size_t> last_words_bytes{};

std::atomic<void (*)()> before_ending{};

void clean_up() {
  if (void (*const f)() = before_ending.exchange(nullptr)) f();
  if (const char* text = last_words.exchange(nullptr)) write_at_end(text, last_words_bytes);
  for (auto& temporary : temporaries)
    if (const char* path = temporary.exchange(nullptr)) remove_file_at_end(path);
}

void remember(const std::string& path) {
  before_end(clean_up);
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
  throw FileError("cannot write '" + path + "': " + system_message(error));
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
  const fs::file_status status = fs::status(to_path(path), error);
  target.exists = fs::exists(status);
  if (target.exists) {
    if (fs::is_directory(status)) throw FileError("cannot write '" + path + "': it is a folder");
    if (const int reason = check_writable(path)) fail_to_write(path, reason);
    target.path = to_text(fs::canonical(to_path(path), error));
    if (error) fail_to_write(path, error.value());
    target.regular = fs::is_regular_file(status);
    target.permissions = status.permissions();
    return target;
  }
  if (error && status.type() != fs::file_type::not_found) fail_to_write(path, error.value());
  if (fs::is_symlink(fs::symlink_status(to_path(path), error))) throw FileError("cannot write '" + path + "': it is a link to nothing");
  if (to_path(path).filename().empty()) throw FileError("cannot write '" + path + "': it names a folder");
  const fs::path given = to_path(path).parent_path();
  const fs::path folder = given.empty() ? fs::path(".") : given;
  if (!fs::is_directory(folder, error)) {
    if (error && error != std::errc::no_such_file_or_directory) fail_to_write(path, error.value());
    throw FileError("cannot write '" + path + "': there is no folder '" + to_text(folder) + "'");
  }
  target.path = to_text(fs::canonical(folder, error) / to_path(path).filename());
  if (error) fail_to_write(path, error.value());
  return target;
}

}  // namespace

void before_ending_by_signal(void (*f)()) {
  before_ending = f;
  before_end(clean_up);
}

void read_at(int file, const std::string& path, std::int64_t offset, void* data, std::size_t bytes) {
  std::size_t done = 0;
  if (const int error = read_at(file, offset, data, bytes, done))
    throw FileError("cannot read '" + path + "': " + system_message(error));
  if (done < bytes)
    throw FileError("'" + path + "' ended while it was read: " + std::to_string(bytes) + " bytes were expected from byte " +
                    std::to_string(offset) + " on");
}

void write_at(int file, const std::string& path, std::int64_t offset, const void* data, std::size_t bytes) {
  std::size_t done = 0;
  if (const int error = write_at(file, offset, data, bytes, done)) fail_to_write(path, error);
  if (done < bytes) throw FileError("cannot write '" + path + "': the disk is full");
}

void sync(int file, const std::string& path) {
  if (const int error = sync_file(file)) fail_to_write(path, error);
}

InputFile::InputFile(const std::string& path) : path_(path) {
  const auto fail = [&path](const std::string& why) -> void { throw FileError("cannot read '" + path + "': " + why); };
  // Looked at before it is opened: opening a pipe would wait for its other end.
  FileStatus status;
  if (const int error = find_status(path, status)) fail(system_message(error));
  if (status.folder) fail("it is a folder");
  if (!status.regular) fail("it is not a regular file");
  if (const int error = open_file(path, Opening::read, file_)) fail(system_message(error));
  if (const int error = find_status(file_.get(), status)) fail(system_message(error));
  size_ = status.size;
  modified_ns_ = status.modified_ns;
}

std::string contents_of(const std::string& path) {
  const InputFile file(path);
  std::string contents(static_cast<std::size_t>(file.size()), '\0');
  file.read(0, contents.data(), contents.size());
  return contents;
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
  FileStatus status;
  if (const int error = find_status(file_.get(), status))
    throw FileError("cannot read '" + path_ + "': " + system_message(error));
  const std::string begin = "'" + path_ + "' was changed while it was read: ";
  if (status.size != size_)
    throw FileError(begin + "it had " + std::to_string(size_) + " bytes and has " + std::to_string(status.size));
  if (status.modified_ns != modified_ns_)
    throw FileError(begin + "its time of modification was " + std::to_string(modified_ns_) + " ns and is " +
                    std::to_string(status.modified_ns) + " ns");
}

std::string read_standard_input() {
  if (is_terminal(Stream::in))
    throw FileError("'-' is the standard input, which is a terminal: pipe a file into it, as in 'cat A.npy | glgemm ...'");
  std::string contents;
  std::array<char, 65536> part{};
  for (std::size_t done = 0;;) {
    if (const int error = read_standard_input(part.data(), part.size(), done))
      throw FileError("cannot read the standard input: " + system_message(error));
    if (done == 0) return contents;
    contents.append(part.data(), done);
  }
}

OutputFile::OutputFile(const std::string& path) : path_(path) {
  if (path == "-") {
    path_ = "standard output";
    target_ = path;
    if (const int error = open_standard_output(file_)) fail_to_write(path_, error);
    return;
  }
  const Target target = target_of(path);
  target_ = target.path;
  if (!target.regular) {
    if (const int error = open_stream(path, file_)) fail_to_write(path_, error);
    return;
  }
  // Short, and no longer than any name that the folder can hold in practice.
  int error = 0;
  for (bool exists = true; exists;) {
    temporary_ = to_text(to_path(target_).parent_path() / random_name());
    error = create_file(temporary_, file_, exists);
  }
  if (error != 0) {
    temporary_.clear();
    fail_to_write(path_, error);
  }
  remember(temporary_);
  std::error_code ignored;  // the contents matter more than a failure here
  if (target.exists) fs::permissions(to_path(temporary_), target.permissions, ignored);
}

OutputFile::~OutputFile() {
  if (file_) std::fclose(file_);
  if (!temporary_.empty()) {
    remove_file(temporary_);
    forget(temporary_);
  }
}

void OutputFile::fail_as_stream(int error) {
  throw FileError("cannot write '" + path_ +
                  "': " + (error == ENOSPC ? "the disk is full" : std::generic_category().message(error)));
}

void OutputFile::write(const void* data, std::size_t bytes) {
  if (bytes > 0 && std::fwrite(data, 1, bytes, file_) != bytes) fail_as_stream(errno);
}

void OutputFile::finish() {
  if (!file_) return;
  const int flushed = std::fflush(file_);
  const int reason = errno;
  const int closed = std::fclose(file_);
  file_ = nullptr;
  if (flushed != 0) fail_as_stream(reason);
  if (closed != 0) fail_as_stream(errno);
}

void OutputFile::commit() {
  finish();
  if (temporary_.empty()) return;
  if (const int error = replace_file(temporary_, target_)) fail_to_write(path_, error);
  forget(temporary_);
  temporary_.clear();
}

PartFile::PartFile(const std::string& path) : path_(path) {
  const Target target = target_of(path);
  if (!target.regular) throw FileError("cannot write '" + path + "' piece by piece: it is no regular file");
  target_ = target.path;
  temporary_ = target_ + ".glgemm-part";
  bool held = false;
  const int error = open_file(temporary_, Opening::alone, file_, &held);
  if (held) throw FileError("cannot write '" + path_ + "': another program is writing it, in '" + temporary_ + "'");
  if (error != 0) fail_to_write(path_, error);
  FileStatus opened;
  if (const int reason = find_status(file_.get(), opened)) fail_to_write(path_, reason);
  if (!opened.regular) throw FileError("cannot write '" + temporary_ + "': it is no regular file");
  std::error_code ignored;  // the contents matter more than a failure here
  if (target.exists) fs::permissions(to_path(temporary_), target.permissions, ignored);
  size_ = opened.size;
  if (size_ == 0) remember(temporary_);
}

PartFile::~PartFile() {
  if (!temporary_.empty() && size_ == 0) remove();
}

void PartFile::allocate(std::int64_t bytes) {
  size_ = 0;
  if (const int error = allocate_file(file_.get(), bytes)) fail_to_write(path_, error);
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
  if (const int error = replace_file(temporary_, target_)) fail_to_write(path_, error);
  temporary_.clear();
}

void PartFile::remove() noexcept {
  remove_file(temporary_);
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
  before_end(clean_up);
}

LastWords::~LastWords() {
  last_words = nullptr;
}

}  // namespace glgemm::tools
