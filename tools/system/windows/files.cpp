// Files on Windows: see files.hpp. A descriptor is the C library's, which has a handle below it.
#include "system/files.hpp"

#include "system/program.hpp"
#include "system/windows/windows.hpp"

#include <fcntl.h>
#include <io.h>

#include <algorithm>
#include <random>

namespace glgemm::tools {
namespace {

constexpr DWORD share_all = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;

constexpr std::size_t longest_path = 32768;

/// The path from its root on, by the system's rules: "Z:x" is in the current folder of that drive, blanks and points at a name's
/// end do not count, "NUL" is a device.
std::wstring full_path(const std::wstring& path) {
  std::wstring whole(longest_path, L'\0');
  const DWORD size = GetFullPathNameW(path.c_str(), static_cast<DWORD>(whole.size()), whole.data(), nullptr);
  if (size == 0 || size >= whole.size()) return path;
  whole.resize(size);
  return whole;
}

/// The path without what lets it be of any length: \\?\C:\x, \\?\UNC\server\share\x.
std::wstring plain_path(const std::wstring& path) {
  if (path.starts_with(L"\\\\?\\UNC\\")) return L"\\\\" + path.substr(8);
  return path.starts_with(L"\\\\?\\") && path.size() > 6 && path[5] == L':' ? path.substr(4) : path;
}

HANDLE handle_of(int file) {
  return reinterpret_cast<HANDLE>(_get_osfhandle(file));
}

/// Makes a descriptor of a handle, which is that descriptor's from then on.
int adopt(HANDLE handle, int flags, Descriptor& file) {
  if (handle == INVALID_HANDLE_VALUE) return last_error();
  file.reset(_open_osfhandle(reinterpret_cast<std::intptr_t>(handle), flags | _O_BINARY));
  if (file.get() >= 0) return 0;
  CloseHandle(handle);
  return ERROR_TOO_MANY_OPEN_FILES;
}

int adopt(HANDLE handle, std::FILE*& stream) {
  if (handle == INVALID_HANDLE_VALUE) return last_error();
  const int file = _open_osfhandle(reinterpret_cast<std::intptr_t>(handle), _O_BINARY);
  stream = file < 0 ? nullptr : _fdopen(file, "wb");
  if (stream) return 0;
  if (file >= 0)
    _close(file);
  else
    CloseHandle(handle);
  return ERROR_TOO_MANY_OPEN_FILES;
}

std::int64_t number(DWORD high, DWORD low) {
  return static_cast<std::int64_t>(std::uint64_t{high} << 32 | low);
}

int status_of(HANDLE handle, FileStatus& status) {
  BY_HANDLE_FILE_INFORMATION found{};
  status = {};
  if (GetFileType(handle) != FILE_TYPE_DISK) return 0;  // a device
  if (!GetFileInformationByHandle(handle, &found)) return last_error();
  constexpr std::int64_t ticks_to_1970 = 116'444'736'000'000'000;  // of 100 ns, since 1601
  status.folder = (found.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0;
  status.regular = !status.folder;
  status.size = number(found.nFileSizeHigh, found.nFileSizeLow);
  status.modified_ns = (number(found.ftLastWriteTime.dwHighDateTime, found.ftLastWriteTime.dwLowDateTime) - ticks_to_1970) * 100;
  status.number = std::uint64_t{found.nFileIndexHigh} << 32 | found.nFileIndexLow;
  FILE_BASIC_INFO times{};  // without the time of change where the file system has none
  if (GetFileInformationByHandleEx(handle, FileBasicInfo, &times, sizeof times))
    status.changed_ns = (times.ChangeTime.QuadPart - ticks_to_1970) * 100;
  return 0;
}

/// A handle that only looks.
Handle open_to_look(const std::string& path) {
  return Handle(CreateFileW(native_path(path).c_str(), FILE_READ_ATTRIBUTES, share_all, nullptr, OPEN_EXISTING,
                            FILE_FLAG_BACKUP_SEMANTICS, nullptr));
}

template <class Call, class Data>
int transfer(Call call, int file, std::int64_t offset, Data data, std::size_t bytes, std::size_t& done) {
  for (done = 0; done < bytes;) {
    const auto at = static_cast<std::uint64_t>(offset) + done;
    OVERLAPPED place{};
    place.Offset = static_cast<DWORD>(at & 0xffffffffu);
    place.OffsetHigh = static_cast<DWORD>(at >> 32);
    DWORD got = 0;
    const auto part = static_cast<DWORD>(std::min<std::size_t>(bytes - done, std::size_t{1} << 30));
    if (!call(handle_of(file), data + done, part, &got, &place)) {
      const int error = last_error();
      return error == ERROR_HANDLE_EOF ? 0 : error;
    }
    if (got == 0) return 0;
    done += got;
  }
  return 0;
}

/// Calls `f`, which returns an error, again for two seconds while others have the file open: virus scanners do, for a moment.
template <class F>
int patiently(const F& f) {
  int error = f();
  for (int i = 0; i < 40 && (error == ERROR_SHARING_VIOLATION || error == ERROR_ACCESS_DENIED || error == ERROR_LOCK_VIOLATION);
       ++i) {
    Sleep(50);
    error = f();
  }
  return error;
}

}  // namespace

std::wstring wide(std::string_view text) {
  const int size = static_cast<int>(text.size());
  std::wstring result(static_cast<std::size_t>(MultiByteToWideChar(CP_UTF8, 0, text.data(), size, nullptr, 0)), L'\0');
  MultiByteToWideChar(CP_UTF8, 0, text.data(), size, result.data(), static_cast<int>(result.size()));
  return result;
}

std::string utf8(std::wstring_view text) {
  const int size = static_cast<int>(text.size());
  std::string result(static_cast<std::size_t>(WideCharToMultiByte(CP_UTF8, 0, text.data(), size, nullptr, 0, nullptr, nullptr)),
                     '\0');
  WideCharToMultiByte(CP_UTF8, 0, text.data(), size, result.data(), static_cast<int>(result.size()), nullptr, nullptr);
  return result;
}

std::wstring native_path(const std::string& path) {
  const std::wstring text = wide(path);
  if (text.empty() || text.starts_with(L"\\\\?\\") || text.starts_with(L"\\\\.\\")) return text;
  const std::wstring whole = full_path(text);
  constexpr std::size_t longest = 240;  // of a folder's, some less than a file's 260
  if (whole.size() < longest) return text;
  return whole.starts_with(L"\\\\") ? L"\\\\?\\UNC" + whole.substr(1) : L"\\\\?\\" + whole;
}

std::filesystem::path to_path(std::string_view text) {
  return wide(text);
}

std::string to_text(const std::filesystem::path& path) {
  return utf8(path.wstring());
}

std::string system_message(int error) {
  switch (error) {
    case ERROR_DISK_FULL:
    case ERROR_HANDLE_DISK_FULL:
      return "the disk is full";
    case ERROR_SHARING_VIOLATION:
    case ERROR_LOCK_VIOLATION:
    case ERROR_USER_MAPPED_FILE:
      return "another program has it open";
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND:
      return "No such file or directory";
    case ERROR_ACCESS_DENIED:
      return "Permission denied";
    default:
      break;
  }
  wchar_t* text = nullptr;
  const DWORD size = FormatMessageW(FORMAT_MESSAGE_ALLOCATE_BUFFER | FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS,
                                    nullptr, static_cast<DWORD>(error), 0, reinterpret_cast<wchar_t*>(&text), 0, nullptr);
  std::string result = size > 0 ? utf8({text, size}) : "";
  if (text) LocalFree(text);
  while (!result.empty() && (result.back() == '\n' || result.back() == '\r' || result.back() == '.')) result.pop_back();
  return result.empty() ? "error " + std::to_string(error) : result;
}

void Descriptor::reset(int descriptor) noexcept {
  if (descriptor_ >= 0) _close(descriptor_);
  descriptor_ = descriptor;
}

int find_status(const std::string& path, FileStatus& status) {
  const Handle handle = open_to_look(path);
  return handle ? status_of(handle.get(), status) : last_error();
}

int find_status(int file, FileStatus& status) {
  return status_of(handle_of(file), status);
}

bool is_missing(int error) {
  return error == ERROR_FILE_NOT_FOUND || error == ERROR_PATH_NOT_FOUND;
}

std::string whole_path(const std::string& path) {
  return utf8(full_path(wide(path)));
}

std::string without_ignored_end(const std::string& path) {
  const std::string rest = path.substr(0, path.find_last_not_of(" .") + 1);
  const bool is_folder = rest.empty() || rest.find_last_of("\\/:") == rest.size() - 1;  // "." or ".."
  return is_folder || path.starts_with(R"(\\?\)") ? path : rest;
}

int find_real_path(const std::string& path, std::string& real) {
  const Handle handle = open_to_look(path);
  if (!handle) return last_error();
  std::wstring found(longest_path, L'\0');
  const DWORD size =
      GetFinalPathNameByHandleW(handle.get(), found.data(), static_cast<DWORD>(found.size()), FILE_NAME_NORMALIZED);
  real =
      size > 0 && size < found.size() ? utf8(plain_path({found.data(), size})) : whole_path(path);  // not every file system tells
  return 0;
}

std::uint64_t free_bytes(const std::string& folder) {
  ULARGE_INTEGER bytes{};
  return GetDiskFreeSpaceExW((native_path(folder) + L'\\').c_str(), &bytes, nullptr, nullptr) ? bytes.QuadPart
                                                                                              : std::uint64_t{1} << 62;
}

bool is_link(const std::string& path) {
  WIN32_FIND_DATAW found{};
  const HANDLE search = FindFirstFileW(native_path(path).c_str(), &found);
  if (search == INVALID_HANDLE_VALUE) return false;
  FindClose(search);
  return (found.dwFileAttributes & FILE_ATTRIBUTE_REPARSE_POINT) != 0 && found.dwReserved0 == IO_REPARSE_TAG_SYMLINK;
}

bool same_file(const std::string& path, const std::string& other) {
  const auto identity = [](const std::string& name, BY_HANDLE_FILE_INFORMATION& found) {
    if (name == "-") {
      const HANDLE out = GetStdHandle(STD_OUTPUT_HANDLE);
      return GetFileType(out) == FILE_TYPE_DISK && GetFileInformationByHandle(out, &found) != 0;
    }
    const Handle handle = open_to_look(name);
    return handle && GetFileType(handle.get()) == FILE_TYPE_DISK && GetFileInformationByHandle(handle.get(), &found) != 0;
  };
  BY_HANDLE_FILE_INFORMATION a{}, b{};
  return identity(path, a) && identity(other, b) && a.dwVolumeSerialNumber == b.dwVolumeSerialNumber &&
         a.nFileIndexHigh == b.nFileIndexHigh && a.nFileIndexLow == b.nFileIndexLow;
}

int check_writable(const std::string& path) {
  return patiently([&] {
    const DWORD access = GENERIC_WRITE | (is_file(path) ? DELETE : 0);
    const Handle handle(CreateFileW(native_path(path).c_str(), access, share_all, nullptr, OPEN_EXISTING, 0, nullptr));
    return handle ? 0 : last_error();
  });
}

int open_file(const std::string& path, Opening opening, Descriptor& file, bool* held) {
  if (opening != Opening::read && is_link(path)) return ERROR_CANT_ACCESS_FILE;
  const DWORD access = opening == Opening::read ? GENERIC_READ : GENERIC_READ | GENERIC_WRITE | DELETE;
  const DWORD share = opening == Opening::alone ? FILE_SHARE_READ | FILE_SHARE_DELETE : share_all;
  const HANDLE handle = CreateFileW(native_path(path).c_str(), access, share, nullptr,
                                    opening == Opening::read ? OPEN_EXISTING : OPEN_ALWAYS, FILE_ATTRIBUTE_NORMAL, nullptr);
  const int error = adopt(handle, opening == Opening::read ? _O_RDONLY : 0, file);
  if (held) *held = error == ERROR_SHARING_VIOLATION;
  return error;
}

int create_file(const std::string& path, std::FILE*& stream, bool& exists) {
  const HANDLE handle = CreateFileW(native_path(path).c_str(), GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_DELETE, nullptr,
                                    CREATE_NEW, FILE_ATTRIBUTE_NORMAL, nullptr);
  const int error = adopt(handle, stream);
  exists = error == ERROR_FILE_EXISTS;
  return error;
}

int open_stream(const std::string& path, std::FILE*& stream) {
  return adopt(
      CreateFileW(native_path(path).c_str(), GENERIC_WRITE, share_all, nullptr, OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, nullptr),
      stream);
}

int open_standard_output(std::FILE*& stream) {
  const int copy = _dup(_fileno(stdout));
  stream = copy < 0 ? nullptr : _fdopen(copy, "wb");
  return stream ? 0 : ERROR_INVALID_HANDLE;
}

int read_at(int file, std::int64_t offset, void* data, std::size_t bytes, std::size_t& done) {
  return transfer(ReadFile, file, offset, static_cast<char*>(data), bytes, done);
}

int write_at(int file, std::int64_t offset, const void* data, std::size_t bytes, std::size_t& done) {
  return transfer(WriteFile, file, offset, static_cast<const char*>(data), bytes, done);
}

int read_standard_input(void* data, std::size_t bytes, std::size_t& done) {
  DWORD got = 0;
  const bool good = ReadFile(GetStdHandle(STD_INPUT_HANDLE), data, static_cast<DWORD>(bytes), &got, nullptr) != 0;
  done = good ? got : 0;
  return good || GetLastError() == ERROR_BROKEN_PIPE ? 0 : last_error();
}

int resize_file(int file, std::int64_t bytes) {
  FILE_END_OF_FILE_INFO end{};
  end.EndOfFile.QuadPart = bytes;
  return SetFileInformationByHandle(handle_of(file), FileEndOfFileInfo, &end, sizeof end) ? 0 : last_error();
}

int allocate_file(int file, std::int64_t bytes) {
  if (const int error = resize_file(file, 0)) return error;
  FILE_ALLOCATION_INFO room{};
  room.AllocationSize.QuadPart = bytes;
  // Where the file system cannot set room aside, a full disk is told later.
  if (!SetFileInformationByHandle(handle_of(file), FileAllocationInfo, &room, sizeof room) && last_error() == ERROR_DISK_FULL)
    return ERROR_DISK_FULL;
  return resize_file(file, bytes);
}

int sync_file(int file) {
  return FlushFileBuffers(handle_of(file)) ? 0 : last_error();
}

int replace_file(const std::string& from, const std::string& to) {
  return patiently([&] {
    return MoveFileExW(native_path(from).c_str(), native_path(to).c_str(), MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH)
               ? 0
               : last_error();
  });
}

void remove_file(const std::string& path) noexcept {
  DeleteFileW(native_path(path).c_str());
}

void copy_permissions(const std::string&, const std::string&) noexcept {}

int make_folders(const std::string& path) {
  if (is_folder(path)) return 0;
  const std::string whole = whole_path(path), above = to_text(to_path(whole).parent_path());
  if (above != whole)
    if (const int error = make_folders(above)) return error;
  return CreateDirectoryW(native_path(whole).c_str(), nullptr) ? 0 : last_error();
}

void remove_folder(const std::string& path) noexcept {
  remove_folder_at_end(path.c_str());
}

int make_temporary_folder(std::string& path) {
  std::wstring folder(32768, L'\0');
  folder.resize(GetTempPathW(static_cast<DWORD>(folder.size()), folder.data()));
  if (folder.empty()) return last_error();
  constexpr std::string_view digits = "0123456789abcdefghijklmnopqrstuv";
  std::random_device random;
  int error = ERROR_ALREADY_EXISTS;
  while (error == ERROR_ALREADY_EXISTS) {
    std::string name = "glgemm-";
    for (int i = 0; i < 10; ++i) name += digits[random() % digits.size()];
    path = utf8(folder) + name;  // which nobody else may enter, as the user's folder of temporary files
    error = CreateDirectoryW(native_path(path).c_str(), nullptr) ? 0 : last_error();
  }
  return error;
}

}  // namespace glgemm::tools
