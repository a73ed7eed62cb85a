// Files as the system knows them. Paths are UTF-8. Errors are the system's numbers, 0 being none: errno's, GetLastError's on
// Windows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

namespace glgemm::tools {

/// The C++ library's paths and back: on Windows it takes plain texts for something else than UTF-8.
std::filesystem::path to_path(std::string_view text);
std::string to_text(const std::filesystem::path& path);

/// What an error's number means, as a part of a sentence.
std::string system_message(int error);

/// An open file of the system, closed in the end; or none.
class Descriptor {
 public:
  explicit Descriptor(int descriptor = -1) noexcept : descriptor_(descriptor) {}
  ~Descriptor() { reset(); }
  Descriptor(Descriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    reset(std::exchange(other.descriptor_, -1));
    return *this;
  }
  int get() const noexcept { return descriptor_; }
  void reset(int descriptor = -1) noexcept;

 private:
  int descriptor_;
};

struct FileStatus {
  bool folder = false;
  bool regular = false;
  std::int64_t size = 0;
  std::int64_t modified_ns = 0;  ///< since 1970
  std::int64_t changed_ns = 0;   ///< since 1970, when the contents or the file's properties (its name, times, owner) last changed
  std::uint64_t number = 0;      ///< the file's own on its disk: the inode
};
int find_status(const std::string& path, FileStatus& status);
int find_status(int file, FileStatus& status);
/// Whether such an error says that there is no such file.
bool is_missing(int error);
/// Whether a path leads to something; to a file; to a folder. One that the system refuses, as one that is too long, leads to
/// nothing.
inline bool exists(const std::string& path) {
  FileStatus status;
  return find_status(path, status) == 0;
}
inline bool is_file(const std::string& path) {
  FileStatus status;
  return find_status(path, status) == 0 && status.regular;
}
inline bool is_folder(const std::string& path) {
  FileStatus status;
  return find_status(path, status) == 0 && status.folder;
}

/// The path from the file system's root on, as the system takes it: on Windows "Z:x" and "NUL" are not what they look like.
std::string whole_path(const std::string& path);
/// Without what the system takes off a name's end: blanks and points on Windows.
std::string without_ignored_end(const std::string& path);
/// The path of what exists, with links resolved.
int find_real_path(const std::string& path, std::string& real);
/// The bytes that a file in this folder can still take; very many if the system does not say.
std::uint64_t free_bytes(const std::string& folder);

/// Whether the path itself is a symbolic link, wherever that leads.
bool is_link(const std::string& path);
/// Whether both paths lead to one existing file, by way of links too; "-" is what the standard output leads to.
bool same_file(const std::string& path, const std::string& other);
/// Whether a file that exists may be replaced: its permissions, and on Windows whether a program has it open that keeps others
/// out.
int check_writable(const std::string& path);

/// What a file is opened for. A missing file is made, except for `read`.
enum class Opening {
  read,
  write,  ///< reading and writing, at any position; a symbolic link is not followed, which is an error
  alone,  ///< as `write`; until it is closed, no other program can open it as `alone`
};
/// `held`: another program has it open alone, which is an error too.
int open_file(const std::string& path, Opening opening, Descriptor& file, bool* held = nullptr);
/// A stream for a file that is new; it exists else, which `exists` says.
int create_file(const std::string& path, std::FILE*& stream, bool& exists);
/// Streams for what exists already, for example a device or a pipe, and for the standard output.
int open_stream(const std::string& path, std::FILE*& stream);
int open_standard_output(std::FILE*& stream);

/// Read and write at a position, any number of threads at once. `done`: how many bytes, fewer at the file's end or after an
/// error.
int read_at(int file, std::int64_t offset, void* data, std::size_t bytes, std::size_t& done);
int write_at(int file, std::int64_t offset, const void* data, std::size_t bytes, std::size_t& done);
/// Some bytes of the standard input; `done` is 0 at its end.
int read_standard_input(void* data, std::size_t bytes, std::size_t& done);

int resize_file(int file, std::int64_t bytes);
/// Empties the file, and sets room for so many bytes aside where the file system can do that.
int allocate_file(int file, std::int64_t bytes);
/// Waits until the file's contents are on the disk.
int sync_file(int file);
/// Gives a file another name in its folder, in the place of what has that name.
int replace_file(const std::string& from, const std::string& to);
void remove_file(const std::string& path) noexcept;
/// Gives a file the permissions of another, as far as the system has them and lets that be done.
void copy_permissions(const std::string& from, const std::string& to) noexcept;

/// Makes a folder, and those that it lies in. It may be there already.
int make_folders(const std::string& path);
/// Removes a folder with all that is in it.
void remove_folder(const std::string& path) noexcept;
/// Makes a new folder for temporary files, which no other user may enter.
int make_temporary_folder(std::string& path);

}  // namespace glgemm::tools
