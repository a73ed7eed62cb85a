// Files for the tools: input read at any position, output that appears under its name only when it is complete, output that is
// written at any position and can be gone on with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "system/files.hpp"

namespace glgemm::tools {

/// A file that cannot be read or written, or does not hold what it should; the message is a sentence that names the file.
class FileError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
/// An input that is not what it was when it was opened: nothing that was computed of it can be relied on.
class FileChanged : public FileError {
 public:
  using FileError::FileError;
};
/// "cannot read 'A.npy': " or "cannot write 'A.npy': " and the reason: a part of a sentence, or an error of the system.
FileError cannot_read(std::string_view path, std::string_view why);
FileError cannot_read(std::string_view path, int error);
FileError cannot_write(std::string_view path, std::string_view why);
FileError cannot_write(std::string_view path, int error);

/// Has a signal that ends this program call `f` first, once. `f` may do only what a signal handler may.
void before_ending_by_signal(void (*f)());

/// A regular file, open for reading, or contents in memory that are read like one. Reading is for any number of threads at once.
class InputFile {
 public:
  /// @throws FileError  it is missing, a folder, a pipe or a device, or may not be read
  explicit InputFile(const std::string& path);
  /// Contents that came from elsewhere, for example a pipe. Errors call them `name`.
  InputFile(std::string name, std::string contents);
  /// The beginning of such contents, which have `size` bytes in all.
  InputFile(std::string name, std::string beginning, std::int64_t size);

  const std::string& path() const noexcept { return path_; }
  /// What errors call it from here on.
  void rename(std::string name) { path_ = std::move(name); }
  /// Whether the contents are in memory, so that no file can be read again or change.
  bool in_memory() const noexcept { return file_.get() < 0; }
  /// Its length in bytes when it was opened.
  std::int64_t size() const noexcept { return status_.size; }
  /// What the system said of it when it was opened.
  const FileStatus& status() const noexcept { return status_; }
  /// Reads `bytes` bytes from `offset` on.  @throws FileError  the file ends before, or the system reports an error
  void read(std::int64_t offset, void* data, std::size_t bytes) const;
  /// @throws FileChanged  its length or its time is not what it was when it was opened; the message has both
  /// @throws FileError    it cannot be asked
  void require_unchanged() const;

 private:
  std::string path_;
  FileStatus status_;
  std::string contents_;  ///< where there is no file
  Descriptor file_;
};

/// Without spaces, tabs and carriage returns at either end.
std::string_view trimmed(std::string_view text);
/// Without the mark by which some programs, Excel for one, say that a text is UTF-8.
std::string_view without_mark(std::string_view text);
/// The parts of a line between separators, each trimmed; one more than there are separators.
std::vector<std::string_view> split(std::string_view text, char separator);

/// Why a matrix of so many bytes cannot be had in main memory: a part of a sentence with the numbers. Empty if it can.
std::string why_not_in_memory(double bytes);
/// All of a file.  @throws FileError  as InputFile, or it was changed meanwhile
std::string contents_of(const std::string& path);
/// All that comes from the standard input.
/// @throws FileError  it is a terminal, or the system reports an error
std::string read_standard_input();

/// A file being written under a temporary name in its folder, which commit() renames; until then nothing is seen under its own
/// name.
///
/// It fails at once if the file cannot be written, so make it before long work. Destroyed without commit(), or when a signal ends
/// the program (see before_end()), the temporary file is removed. A file that exists is replaced and gives its permissions to the
/// new one; a link is followed. A device or a pipe (/dev/null, say) is written directly; so is the standard output, by the name
/// "-".
class OutputFile {
 public:
  /// @throws FileError  its folder is missing, it is a folder, or may not be written
  explicit OutputFile(const std::string& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  const std::string& path() const noexcept { return path_; }
  /// The file that is replaced in the end, with links resolved: equal for two spellings of one file.
  const std::string& target() const noexcept { return target_; }
  bool is_standard_output() const noexcept { return target_ == "-"; }
  /// Where it lies until commit(); empty where it is written directly.
  const std::string& temporary() const noexcept { return temporary_; }
  /// Appends.  @throws FileError  the disk is full, or the system reports another error
  void write(const void* data, std::size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  /// Writes out what is buffered, so that renaming is all that is left to do; write() must not follow.  @throws FileError  as
  /// write()
  void finish();
  /// Gives the file its name, after finish() if that was not called.  @throws FileError  as write(), or it cannot be renamed
  void commit();

 private:
  std::string path_;
  std::string target_;
  std::string temporary_;  ///< empty when writing directly, and after commit()
  std::FILE* file_ = nullptr;
};
/// All of an OutputFile.
void write_file(const std::string& path, std::string_view text);

/// A file that is written at any position, under a name of its own beside the one that commit() gives it. Once it has room it
/// stays when the program ends, however it ends, so that a later one can go on with it.
///
/// Its name is the output's name and ".glgemm-part". While one program has it open, no other one can make a PartFile of it.
class PartFile {
 public:
  /// Opens the one that is there as it is, or makes an empty one, which goes away again unless allocate() is called.
  /// @throws FileError  as OutputFile; or the output is no regular file; or a link has the name; or another program has it open
  explicit PartFile(const std::string& path);
  ~PartFile();
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  const std::string& path() const noexcept { return path_; }
  /// As OutputFile::target.
  const std::string& target() const noexcept { return target_; }
  /// Where it lies until commit().
  const std::string& temporary() const noexcept { return temporary_; }
  /// Its length in bytes.
  std::int64_t size() const noexcept { return size_; }

  /// Empties it, and has the disk set aside room for `bytes`.  @throws FileError  the disk has not as much
  void allocate(std::int64_t bytes);
  /// Any number of threads at once.  @throws FileError  as InputFile::read
  void read(std::int64_t offset, void* data, std::size_t bytes) const;
  /// Likewise.  @throws FileError  the disk is full, or the system reports another error
  void write(std::int64_t offset, const void* data, std::size_t bytes);
  /// Waits until what was written is on the disk.  @throws FileError  as write()
  void sync();
  /// Gives it the output's name. Nothing else may follow.  @throws FileError  it cannot be renamed
  void commit();
  /// Removes it. Nothing else may follow.
  void remove() noexcept;

 private:
  std::string path_;
  std::string target_;
  std::string temporary_;  ///< empty after commit() and remove()
  std::int64_t size_ = 0;
  Descriptor file_;
};

/// Reads and writes at positions of an open file, whole or not at all; `path` is what an error names.  @throws FileError
void read_at(int file, const std::string& path, std::int64_t offset, void* data, std::size_t bytes);
void write_at(int file, const std::string& path, std::int64_t offset, const void* data, std::size_t bytes);
/// Waits until the file's contents are on the disk.  @throws FileError
void sync(int file, const std::string& path);

/// While it lives, a signal that ends the program removes this file, or folder with all that is in it, before.
class RemovedBySignal {
 public:
  enum class What { file, folder };
  explicit RemovedBySignal(std::string path, What what = What::file);
  ~RemovedBySignal();
  RemovedBySignal(const RemovedBySignal&) = delete;
  RemovedBySignal& operator=(const RemovedBySignal&) = delete;

 private:
  std::string path_;
};

/// While it lives, a signal that ends the program writes "glgemm VERB: interrupted; KEPT" to stderr before, `kept` being what
/// the run leaves behind, if it is worth a word. The one that was made last speaks.
class LastWords {
 public:
  explicit LastWords(std::string_view verb, std::string_view kept = {});
  ~LastWords();
  LastWords(const LastWords&) = delete;
  LastWords& operator=(const LastWords&) = delete;

  /// From now on nothing is said.
  static void end() noexcept;

 private:
  std::string text_;
  const std::string* before_;
};

}  // namespace glgemm::tools
