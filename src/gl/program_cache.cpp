// Linked programs as files: naming, checking, writing, and the bound on them.
#include "gl/program_cache.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "base/hash.hpp"
#include "base/system.hpp"

namespace glgemm {
namespace {

namespace fs = std::filesystem;

/// A file holds this header, the binary, the hash of both, and the key. The key is compared as a whole and needs no hash. Numbers
/// have the host's byte order; on a host of the other order `version` differs.
struct Header {
  std::array<char, 8> magic{'g', 'l', 'g', 'e', 'm', 'm', 'P', 'C'};
  std::uint32_t version = 1;
  std::uint32_t format = 0;
  std::uint64_t flags = 0;
  std::uint64_t binary_bytes = 0;
};
static_assert(sizeof(Header) == 32 && sizeof(Hash128) == 16);
constexpr std::uint64_t self_checked_flag = 1;

std::uint64_t file_bytes(std::string_view key, const StoredProgram& program) {
  return sizeof(Header) + key.size() + program.binary.size() + sizeof(Hash128);
}

// Names: glgemm-<32 digits>.program; while replace_file() writes one, .<16 digits>.tmp follows.
constexpr std::string_view name_begin = "glgemm-", name_end = ".program", temporary_end = ".tmp";
constexpr std::size_t name_size = name_begin.size() + 32 + name_end.size();

bool is_hex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}
bool is_program(std::string_view name) {
  return name.size() == name_size && name.starts_with(name_begin) && name.ends_with(name_end) &&
         is_hex(name.substr(name_begin.size(), 32));
}
bool is_temporary(std::string_view name) {
  return name.size() == name_size + 17 + temporary_end.size() && is_program(name.substr(0, name_size)) &&
         name[name_size] == '.' && is_hex(name.substr(name_size + 1, 16)) && name.ends_with(temporary_end);
}

}  // namespace

ProgramCache::ProgramCache(const fs::path& folder, Log log, std::uint64_t max_bytes) noexcept
    : log_(std::move(log)), max_bytes_(max_bytes) {
  if (folder.empty()) return;
  try {
    folder_ = whole_path(folder);
    make_folder();
    if (const std::string why = distrust(folder_); !why.empty()) turn_off(why);
  } catch (const std::exception& error) {
    turn_off(error.what());
  }
}

fs::path ProgramCache::folder(const std::optional<std::string>& asked, const Log& log) {
  if (asked) return to_path(*asked);
  if (const auto given = variable("GLGEMM_PROGRAM_CACHE")) return to_path(*given);
  fs::path place = user_cache("glgemm/programs");
  if (place.empty() && log) log("program cache: off: " + std::string(no_user_cache));
  return place;
}

fs::path ProgramCache::file(std::string_view key) const {
  const Hash128 hash = fnv1a_128(key);
  return folder_ / fmt::format("{}{:016x}{:016x}{}", name_begin, hash.high, hash.low, name_end);
}

std::optional<StoredProgram> ProgramCache::load(std::string_view key) noexcept {
  if (!on()) return std::nullopt;
  try {
    const fs::path path = file(key);
    std::error_code error;
    if (!fs::is_regular_file(path, error)) return std::nullopt;
    std::ifstream stream(path, std::ios::binary | std::ios::ate);
    if (!stream.is_open()) return std::nullopt;
    const auto size = static_cast<std::uint64_t>(
        std::max<std::streamoff>(stream.tellg(), 0));  // of the file that is open: another process may have replaced it
    const auto ignore = [&](const char* why) {
      log("ignores " + to_text(path) + ": " + why);
      return std::nullopt;
    };
    if (size < sizeof(Header) + sizeof(Hash128) || size > max_bytes_) return ignore("it is not of a program's size");
    std::string bytes(size, '\0');
    stream.seekg(0);
    if (!stream.read(bytes.data(), static_cast<std::streamsize>(size))) return ignore("it can't be read");
    stream.close();

    Header header;
    Hash128 hash;
    std::memcpy(&header, bytes.data(), sizeof header);
    if (header.magic != Header().magic || header.version != Header().version || header.flags > self_checked_flag)
      return ignore("it is of another format");
    if (header.binary_bytes == 0 || header.binary_bytes > size - sizeof header - sizeof hash) return ignore("it is damaged");
    const std::string_view hashed(bytes.data(), sizeof header + header.binary_bytes);
    std::memcpy(&hash, bytes.data() + hashed.size(), sizeof hash);
    if (fnv1a_128(hashed) != hash) return ignore("it is damaged");
    if (std::string_view(bytes).substr(hashed.size() + sizeof hash) != key) return ignore("it is another program's, or damaged");
    StoredProgram program{header.format, (header.flags & self_checked_flag) != 0, std::vector<std::byte>(header.binary_bytes)};
    std::memcpy(program.binary.data(), bytes.data() + sizeof header, program.binary.size());
    fs::last_write_time(path, fs::file_time_type::clock::now(), error);  // it does not matter if the file is gone
    return program;
  } catch (const std::exception& error) {
    turn_off(error.what());
    return std::nullopt;
  }
}

void ProgramCache::store(std::string_view key, const StoredProgram& program) noexcept {
  if (!on() || program.binary.empty() || file_bytes(key, program) > max_bytes_) return;
  try {
    make_folder();  // somebody may have deleted it
    const fs::path path = file(key);
    const std::error_code error = replace_file(path, file_of(key, program));
    // It is no failure if the folder was deleted, or if the program that is there is as good and in use.
    if (error && error != std::errc::no_such_file_or_directory && !is_open_elsewhere(error))
      throw std::runtime_error(fmt::format("{} can't be written: {}", to_text(path), error.message()));
    remove_oldest();
  } catch (const std::exception& error) {
    turn_off(error.what());
  }
}

void ProgramCache::make_folder() {
  // The XDG Base Directory Specification wants the folder closed to others. Some file systems have no such permissions.
  std::error_code ignored;
  if (fs::create_directories(folder_)) fs::permissions(folder_, fs::perms::owner_all, ignored);
}

std::string ProgramCache::file_of(std::string_view key, const StoredProgram& program) {
  Header header;
  header.format = program.format;
  header.flags = program.self_checked ? self_checked_flag : 0;
  header.binary_bytes = program.binary.size();
  std::string bytes(file_bytes(key, program), '\0');
  char* at = bytes.data();
  const auto put = [&](const void* from, std::size_t count) {
    std::memcpy(at, from, count);
    at += count;
  };
  put(&header, sizeof header);
  put(program.binary.data(), program.binary.size());
  const Hash128 hash = fnv1a_128(std::string_view(bytes).substr(0, sizeof header + program.binary.size()));
  put(&hash, sizeof hash);
  put(key.data(), key.size());
  return bytes;  // if the machine crashes while it is written, the hash shows that the file is damaged
}

void ProgramCache::remove_oldest() const {
  struct File {
    fs::file_time_type used;
    std::uint64_t bytes;
    fs::path path;
  };
  std::vector<File> files;
  std::uint64_t all_bytes = 0;
  // Other processes add and remove files at the same time: files that can't be looked at are left out.
  std::error_code error;
  const auto now = fs::file_time_type::clock::now();
  for (fs::directory_iterator entry(folder_, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const bool temporary = is_temporary(name);
    std::error_code gone;
    if ((!temporary && !is_program(name)) || !fs::is_regular_file(entry->symlink_status(gone))) continue;
    const File file{entry->last_write_time(gone), gone ? 0 : entry->file_size(gone), entry->path()};
    if (gone) continue;
    if (!temporary) {
      all_bytes += file.bytes;
      files.push_back(file);
    } else if (now - file.used > std::chrono::hours(1)) {
      fs::remove(file.path, gone);  // its writer has died
    }
  }
  if (all_bytes <= max_bytes_) return;
  std::sort(files.begin(), files.end(), [](const File& x, const File& y) { return x.used < y.used; });
  for (const File& file : files) {
    if (all_bytes <= max_bytes_) return;
    fs::remove(file.path, error);
    all_bytes -= file.bytes;
  }
}

void ProgramCache::turn_off(const std::string& why) noexcept {
  const fs::path folder = std::exchange(folder_, {});
  try {
    log("off: " + to_text(folder) + ": " + why);
  } catch (...) {  // there was no memory for the message
  }
}

}  // namespace glgemm
