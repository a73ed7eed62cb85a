// Files for the tools: input read at any position, output that appears under its name only when it is complete.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace glgemm::tools {

/// A file that cannot be read or written, or does not hold what it should; the message is a sentence that names the file.
class FileError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A regular file, open for reading.
class InputFile {
 public:
  /// @throws FileError  it is missing, a folder, a pipe or a device, or may not be read
  explicit InputFile(const std::string& path);

  const std::string& path() const noexcept { return path_; }
  /// Its length in bytes when it was opened.
  std::int64_t size() const noexcept { return size_; }
  /// Reads `bytes` bytes from `offset` on.  @throws FileError  the file ends before, or the system reports an error
  void read(std::int64_t offset, void* data, std::size_t bytes);

 private:
  struct Close {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };
  std::string path_;
  std::int64_t size_ = 0;
  std::unique_ptr<std::FILE, Close> file_;
};

/// A file being written under a temporary name in its folder, which commit() renames; until then nothing is seen under its own
/// name.
///
/// Making it proves that it can be written, so make it before long work. Destroyed without commit(), or when the program ends by
/// SIGINT, SIGTERM or SIGHUP, the temporary file is removed. A file that exists is replaced and gives its permissions to the new
/// one; a link is followed. A device or a pipe (/dev/null, say) is written directly.
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
  /// Appends.  @throws FileError  the disk is full, or the system reports another error
  void write(const void* data, std::size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  /// Writes out what is buffered, so that renaming is all that is left to do; write() must not follow.  @throws FileError  as
  /// write()
  void finish();
  /// Gives the file its name, after finish() if that was not called.  @throws FileError  as write(), or it cannot be renamed
  void commit();

 private:
  [[noreturn]] void fail(int error);

  std::string path_;
  std::string target_;
  std::string temporary_;  ///< empty when writing directly, and after commit()
  std::FILE* file_ = nullptr;
};

}  // namespace glgemm::tools
