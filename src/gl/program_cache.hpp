// Linked programs as files, so that the next process need not compile them. This file does not call OpenGL.
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
  bool self_checked = false;        ///< its results have passed the self-check on this driver
  std::vector<std::byte> binary{};  ///< not empty
  friend bool operator==(const StoredProgram&, const StoredProgram&) = default;
};

/// A folder of programs. The key of a program is all that it was made from: the driver's names and the source.
///
/// Nothing is thrown. A program that cannot be read counts as absent; one that cannot be written is not kept. If the folder
/// fails, the cache turns itself off and logs a line. Any number of caches, threads and processes may use one folder; one object
/// is for one thread.
///
/// A file holds its key, the program and a checksum of both. It is written under another name and then renamed. A file that is
/// damaged, cut short or of another key counts as absent. When all files together exceed the bound, the least recently used ones
/// are removed. The cache touches only files that have names of its own form.
class ProgramCache {
 public:
  using Log = std::function<void(const std::string& message)>;
  static constexpr std::uint64_t usual_most_bytes = std::uint64_t{64} << 20;

  /// Makes the folder if it does not exist. Empty: off. A folder that belongs to another user, or into which others may write, is
  /// not used, since what is loaded from it runs in this process's driver.
  explicit ProgramCache(const std::filesystem::path& folder = {}, Log log = {},
                        std::uint64_t max_bytes = usual_most_bytes) noexcept;

  /// `asked` if given; else the variable GLGEMM_PROGRAM_CACHE if set; else glgemm/programs in the user's folder; else none, and
  /// logs a line. Empty: the caller wants no cache.
  static std::filesystem::path folder(const std::optional<std::string>& asked, const Log& log);

  bool on() const noexcept { return !folder_.empty(); }
  /// The program that is stored under the key. Its file counts as just used.
  std::optional<StoredProgram> load(std::string_view key) noexcept;
  /// Stores the program in place of the one under the key. A program that exceeds the bound alone is not kept.
  void store(std::string_view key, const StoredProgram& program) noexcept;
  /// The file of a program, whether it exists or not.
  std::filesystem::path file(std::string_view key) const;

 private:
  void make_folder();
  static std::string file_of(std::string_view key, const StoredProgram& program);
  void remove_oldest() const;
  void turn_off(const std::string& why) noexcept;
  void log(const std::string& message) const {
    if (log_) log_("program cache: " + message);
  }

  std::filesystem::path folder_;
  Log log_;
  std::uint64_t max_bytes_ = 0;
};

}  // namespace glgemm
