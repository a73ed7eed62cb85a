// Linked programs as files, so that the next process need not compile them; no OpenGL in here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace glgemm {

/// A program as its driver gave it.
struct StoredProgram {
  std::uint32_t format = 0;         ///< of `binary`, a number of the driver's
  bool self_checked = false;        ///< its results were checked on this driver and are right
  std::vector<std::byte> binary{};  ///< not empty
  friend bool operator==(const StoredProgram&, const StoredProgram&) = default;
};

/// A folder of programs, each under all that it was made from: the driver's names and the source.
///
/// What cannot be had is absent and what cannot be written is not kept: nothing is thrown, and where the folder fails the cache
/// is off, with a line for the log. Any number of caches, threads and processes may use one folder; one object is for one thread.
///
/// A file holds its key, the program and a checksum of both, is written under another name and renamed; one that is damaged, cut
/// short or another's is absent. The least recently used files are removed where all together would pass the bound. No file but
/// those of the cache's own naming is ever touched.
class ProgramCache {
 public:
  using Log = std::function<void(const std::string& message)>;
  static constexpr std::uint64_t usual_most_bytes = std::uint64_t{64} << 20;

  /// Makes the folder if need be. Empty: off. One that belongs to another user, or into which others may write, is not used: what
  /// is loaded from there runs in this process's driver.
  explicit ProgramCache(const std::filesystem::path& folder = {}, Log log = {},
                        std::uint64_t max_bytes = usual_most_bytes) noexcept;

  /// `asked` if given; else the variable GLGEMM_PROGRAM_CACHE if set; else $XDG_CACHE_HOME/glgemm/programs; else
  /// $HOME/.cache/glgemm/programs; else none, with a line for the log. Empty: no cache is wanted.
  static std::filesystem::path folder(const std::optional<std::string>& asked, const Log& log);

  bool on() const noexcept { return !folder_.empty(); }
  /// The program stored under the key; its file then counts as just used.
  std::optional<StoredProgram> load(std::string_view key) noexcept;
  /// Keeps the program, in place of what was under the key. One that alone passes the bound is not kept.
  void store(std::string_view key, const StoredProgram& program) noexcept;
  /// Where a program is, or would be.
  std::filesystem::path file(std::string_view key) const;

 private:
  void make_folder();
  void write(const std::filesystem::path& path, std::string_view key, const StoredProgram& program);
  void remove_oldest() const;
  void turn_off(const std::string& why) noexcept;
  void log(const std::string& message) const {
    if (log_) log_("program cache: " + message);
  }

  std::filesystem::path folder_;
  Log log_;
  std::uint64_t max_bytes_ = 0;
};

/// The FNV-1a hash of 128 bits by Fowler, Noll and Vo (http://www.isthe.com/chongo/tech/comp/fnv/), high half first.
struct Hash128 {
  std::uint64_t high = 0, low = 0;
  friend bool operator==(const Hash128&, const Hash128&) = default;
};
Hash128 fnv1a_128(std::string_view bytes) noexcept;

}  // namespace glgemm
