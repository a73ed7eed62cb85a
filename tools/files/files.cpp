// Files for the tools: see files.hpp.
#include "files/files.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>
#include <system_error>

#include <fmt/core.h>

#include "system/program.hpp"
#include "terminal/texts.hpp"

namespace glgemm::tools {
namespace {

/// What is to be removed at the program's end from outside: then nothing but lock-free atomics may be touched.
using Paths = std::array<std::atomic<const char*>, 16>;
Paths files_at_end{}, folders_at_end{};
static_assert(std::atomic<const char*>::is_always_lock_free);

/// What is said then.
std::atomic<const std::string*> last_words{};

std::atomic<void (*)()> before_ending{};

void clean_up() {
  if (void (*const f)() = before_ending.exchange(nullptr)) f();
  if (const std::string* text = last_words.exchange(nullptr)) write_at_end(text->data(), text->size());
  for (auto& file : files_at_end)
    if (const char* path = file.exchange(nullptr)) remove_file_at_end(path);
  for (auto& folder : folders_at_end)
    if (const char* path = folder.exchange(nullptr)) remove_folder_at_end(path);
}

void remember(const std::string& path, Paths& paths = files_at_end) {
  before_end(clean_up);
  for (auto& place : paths) {
    const char* none = nullptr;
    if (place.compare_exchange_strong(none, path.c_str())) return;
  }
}

void forget(const std::string& path) {
  for (Paths* paths : {&files_at_end, &folders_at_end})
    for (auto& place : *paths) {
      const char* expected = path.c_str();
      if (place.compare_exchange_strong(expected, nullptr)) return;
    }
}

std::string random_name() {
  constexpr std::string_view digits = "0123456789abcdefghijklmnopqrstuv";
  std::random_device random;
  std::string name = ".glgemm-";
  for (int i = 0; i < 10; ++i) name += digits[random() % digits.size()];
  return name + ".tmp";
}

/// Errors of the C library's streams are errno's on every system.
FileError stream_error(const std::string& path, int error) {
  return cannot_write(path, error == ENOSPC ? "the disk is full" : std::generic_category().message(error));
}

FileError ended_early(const std::string& path, std::int64_t offset, std::size_t bytes) {
  return FileError(fmt::format("{} ended while it was read: {} bytes were expected from byte {} on", quote(path), bytes, offset));
}

/// What an output's path leads to.
struct Target {
  std::string path;  ///< with links resolved
  bool exists = false;
  bool regular = true;  ///< or does not exist
};

/// @throws FileError  as OutputFile
Target target_of(const std::string& path) {
  if (path.empty()) throw FileError("cannot write a file without a name");
  Target target{path};
  FileStatus status;
  const int error = find_status(path, status);
  if (error != 0 && !is_missing(error)) throw cannot_write(path, error);
  target.exists = error == 0;
  if (target.exists) {
    if (status.folder) throw cannot_write(path, "it is a folder");
    if (const int reason = check_writable(path)) throw cannot_write(path, reason);
    target.regular = status.regular;
    if (!target.regular) return target;  // a pipe that is open has no name that links could lead to
    if (const int reason = find_real_path(path, target.path)) throw cannot_write(path, reason);
    return target;
  }
  if (is_link(path)) throw cannot_write(path, "it is a link to nothing");
  const std::string whole = whole_path(path), name = to_text(to_path(whole).filename());
  if (name.empty()) throw cannot_write(path, "it names a folder");
  std::string folder;
  if (const int reason = find_real_path(whole.substr(0, whole.size() - name.size()), folder); reason != 0 && !is_missing(reason))
    throw cannot_write(path, reason);
  if (!is_folder(folder)) throw cannot_write(path, "there is no folder " + quote(to_text(to_path(path).parent_path())));
  target.path = to_text(to_path(folder) / to_path(name));
  return target;
}

}  // namespace

void before_ending_by_signal(void (*f)()) {
  before_ending = f;
  before_end(clean_up);
}

FileError cannot_read(std::string_view path, std::string_view why) {
  return FileError(fmt::format("cannot read {}: {}", quote(path), why));
}
FileError cannot_read(std::string_view path, int error) {
  return cannot_read(path, system_message(error));
}
FileError cannot_write(std::string_view path, std::string_view why) {
  return FileError(fmt::format("cannot write {}: {}", quote(path), why));
}
FileError cannot_write(std::string_view path, int error) {
  return cannot_write(path, system_message(error));
}

void read_at(int file, const std::string& path, std::int64_t offset, void* data, std::size_t bytes) {
  std::size_t done = 0;
  if (const int error = read_at(file, offset, data, bytes, done)) throw cannot_read(path, error);
  if (done < bytes) throw ended_early(path, offset, bytes);
}

void write_at(int file, const std::string& path, std::int64_t offset, const void* data, std::size_t bytes) {
  std::size_t done = 0;
  if (const int error = write_at(file, offset, data, bytes, done)) throw cannot_write(path, error);
  if (done < bytes) throw cannot_write(path, "the disk is full");
}

void sync(int file, const std::string& path) {
  if (const int error = sync_file(file)) throw cannot_write(path, error);
}

InputFile::InputFile(const std::string& path) : path_(path) {
  // Looked at before it is opened: opening a pipe would wait for its other end.
  if (const int error = find_status(path, status_)) throw cannot_read(path, error);
  if (status_.folder) throw cannot_read(path, "it is a folder");
  if (!status_.regular) throw cannot_read(path, "it is not a regular file");
  if (const int error = open_file(path, Opening::read, file_)) throw cannot_read(path, error);
  if (const int error = find_status(file_.get(), status_)) throw cannot_read(path, error);
}

InputFile::InputFile(std::string name, std::string contents) : path_(std::move(name)), contents_(std::move(contents)) {
  status_.size = static_cast<std::int64_t>(contents_.size());
}

InputFile::InputFile(std::string name, std::string beginning, std::int64_t size)
    : path_(std::move(name)), contents_(std::move(beginning)) {
  status_.size = size;
}

void InputFile::read(std::int64_t offset, void* data, std::size_t bytes) const {
  if (!in_memory()) return read_at(file_.get(), path_, offset, data, bytes);
  const auto begin = static_cast<std::size_t>(offset);
  if (begin > contents_.size() || bytes > contents_.size() - begin) throw ended_early(path_, offset, bytes);
  if (bytes > 0) std::memcpy(data, contents_.data() + begin, bytes);
}

void InputFile::require_unchanged() const {
  if (in_memory()) return;
  FileStatus now;
  if (const int error = find_status(file_.get(), now)) throw cannot_read(path_, error);
  const auto changed = [&](const std::string& how) {
    return FileChanged(fmt::format("{} was changed while it was read: {}", quote(path_), how));
  };
  if (now.size != status_.size) throw changed(fmt::format("it had {} bytes and has {}", status_.size, now.size));
  if (now.modified_ns != status_.modified_ns)
    throw changed(fmt::format("its time of modification was {} ns and is {} ns", status_.modified_ns, now.modified_ns));
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blank = " \t\r";
  const std::size_t first = text.find_first_not_of(blank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

std::string_view without_mark(std::string_view text) {
  constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
  return text.starts_with(byte_order_mark) ? text.substr(byte_order_mark.size()) : text;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(trimmed(text.substr(0, end)));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string why_not_in_memory(double bytes) {
  const double available = available_memory();
  if (bytes <= available) return {};
  return fmt::format("needs {} to read, and {} of main memory are to be had", bytes_text(bytes), bytes_text(available));
}

std::string contents_of(const std::string& path) {
  const InputFile file(path);
  std::string contents(static_cast<std::size_t>(file.size()), '\0');
  file.read(0, contents.data(), contents.size());
  file.require_unchanged();
  return contents;
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
    if (const int error = open_standard_output(file_)) throw cannot_write(path_, error);
    return;
  }
  const Target target = target_of(path);
  target_ = target.path;
  if (!target.regular) {
    if (const int error = open_stream(path, file_)) throw cannot_write(path_, error);
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
    throw cannot_write(path_, error);
  }
  remember(temporary_);
  if (target.exists) copy_permissions(target_, temporary_);
}

OutputFile::~OutputFile() {
  if (file_) std::fclose(file_);
  if (!temporary_.empty()) {
    remove_file(temporary_);
    forget(temporary_);
  }
}

void OutputFile::write(const void* data, std::size_t bytes) {
  if (bytes > 0 && std::fwrite(data, 1, bytes, file_) != bytes) throw stream_error(path_, errno);
}

void OutputFile::finish() {
  if (!file_) return;
  const int flushed = std::fflush(file_);
  const int reason = errno;
  const int closed = std::fclose(file_);
  file_ = nullptr;
  if (flushed != 0) throw stream_error(path_, reason);
  if (closed != 0) throw stream_error(path_, errno);
}

void OutputFile::commit() {
  finish();
  if (temporary_.empty()) return;
  if (const int error = replace_file(temporary_, target_)) throw cannot_write(path_, error);
  forget(temporary_);
  temporary_.clear();
}

void write_file(const std::string& path, std::string_view text) {
  OutputFile file(path);
  file.write(text);
  file.commit();
}

PartFile::PartFile(const std::string& path) : path_(path) {
  const Target target = target_of(path);
  if (!target.regular) throw FileError("cannot write " + quote(path) + " piece by piece: it is no regular file");
  target_ = target.path;
  temporary_ = target_ + ".glgemm-part";
  bool held = false;
  const int error = open_file(temporary_, Opening::alone, file_, &held);
  if (held) throw cannot_write(path_, "another program is writing it, in " + quote(temporary_));
  if (error != 0 && is_link(temporary_))
    throw cannot_write(path_, quote(temporary_) + ", which it is written to first, is a symbolic link");
  if (error != 0) throw cannot_write(path_, error);
  FileStatus opened;
  if (const int reason = find_status(file_.get(), opened)) throw cannot_write(path_, reason);
  if (!opened.regular) throw cannot_write(temporary_, "it is no regular file");
  if (target.exists) copy_permissions(target_, temporary_);
  size_ = opened.size;
  if (size_ == 0) remember(temporary_);
}

PartFile::~PartFile() {
  if (!temporary_.empty() && size_ == 0) remove();
}

void PartFile::allocate(std::int64_t bytes) {
  size_ = 0;
  if (const int error = allocate_file(file_.get(), bytes)) throw cannot_write(path_, error);
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
  if (const int error = replace_file(temporary_, target_)) throw cannot_write(path_, error);
  temporary_.clear();
}

void PartFile::remove() noexcept {
  remove_file(temporary_);
  forget(temporary_);
  temporary_.clear();
}

RemovedBySignal::RemovedBySignal(std::string path, What what) : path_(std::move(path)) {
  remember(path_, what == What::folder ? folders_at_end : files_at_end);
}

RemovedBySignal::~RemovedBySignal() {
  forget(path_);
}

LastWords::LastWords(std::string_view verb, std::string_view kept)
    : text_(fmt::format("{}glgemm {}: interrupted{}{}\n", is_terminal(Stream::error) ? "\n" : "", verb, kept.empty() ? "" : "; ",
                        kept)),
      before_(last_words.exchange(&text_)) {
  before_end(clean_up);
}

LastWords::~LastWords() {
  last_words = before_;
}

void LastWords::end() noexcept {
  last_words = nullptr;
}

}  // namespace glgemm::tools
