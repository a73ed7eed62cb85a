// What an engine, its device matrices, fences and scopes share.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <glgemm/engine.hpp>

#include "engine/pace.hpp"
#include "gl/gl.hpp"
#include "gl/program_cache.hpp"

// What is nested in an exported class is exported with it, unless it says otherwise.
#if defined(__GNUC__)
#define GLGEMM_HIDDEN __attribute__((visibility("hidden")))
#else
#define GLGEMM_HIDDEN
#endif

namespace glgemm {

struct Prepared;  // execute.hpp

/// Buffers of a product in flight, beside its operands.
struct WorkBuffers {
  unsigned workspace = 0;
  std::int64_t workspace_bytes = 0;
  unsigned items = 0;  ///< of a batch
  std::int64_t items_bytes = 0;
  gl::BufferImage panels;  ///< of the workspace, or of the caller's

  void destroy(const gl::Api& api) noexcept;
};

struct GLGEMM_HIDDEN Engine::State {
  struct Entry {
    gl::Program program;
    Rate rate{};
    bool ready = false;  ///< compiled and checked, or loaded
    /// Its results were checked on this driver, by this process or by an earlier one of which the program cache knows.
    bool self_checked = false;
    std::chrono::steady_clock::time_point begun{};  ///< when it was handed to the driver
    std::string cache_key{};  ///< under which the program cache has it; empty: it has it not, or nothing is left to add
  };

  gl::Context api;
  DeviceInfo device;
  Limits limits;
  EngineOptions options;
  std::vector<TunedChoice> tuning;  ///< what make_plan gets
  std::map<ProgramKey, Entry> programs;
  gl::StagingRing staging;
  gl::ContextMark mark;     ///< of the engine's context
  WorkBuffers work;         ///< of products that do not bring their own, grown as needed
  unsigned scratch = 0;     ///< bound where a program is run on nothing
  gl::BufferImage image_a;  ///< of an operand
  SliceClock clock;         ///< of long products
  bool scoped = false;
  /// The sizes of buffers that were asked for in this scope.
  std::vector<std::pair<unsigned, std::int64_t>> sizes;
  /// What was planned lately, the oldest first.
  std::vector<std::shared_ptr<Prepared>> prepared;
  static constexpr std::size_t max_prepared = 64;
  /// Programs that failed their self-check; they are not run again.
  std::vector<ProgramKey> struck_off;
  std::vector<std::string> why_struck_off;
  bool checking = false;  ///< a self-check is under way
  /// The engine's own objects may not be used any more; those of its device matrices may, unless `abandoned`.
  bool released = false;
  /// OpenGL must not be called any more.
  bool abandoned = false;

  /// @throws std::invalid_argument  the engine was released, or (if it checks) its context is not current
  void check_usable(const char* what) const;
  /// The same for what may outlive the engine's release.
  /// @throws std::invalid_argument  the engine was abandoned, or (if it checks, and was not released) its context is not current
  void check_context(const char* what) const;
  /// Saves OpenGL's state unless a scope does.  @throws Unsupported  transform feedback is active
  void enter(const char* what, std::optional<gl::StateGuard>& guard, gl::Bindings bindings = gl::all_bindings) const;
  void log(const std::string& message) const;
  /// The size of a buffer in bytes, -1 for a name that is none; asked of OpenGL once in a scope. Leaves the copy-read binding
  /// changed.
  std::int64_t buffer_bytes(unsigned buffer);
  /// The program, compiled now if need be.
  gl::Program& program(const ProgramKey& key);
  /// How fast a program is that program() gave.
  Rate& rate(const ProgramKey& key) { return programs.at(key).rate; }
  /// Has the driver begin to compile the program if it can do so in the background.
  void begin_program(const ProgramKey& key);
  bool is_ready(const ProgramKey& key);
  bool self_checked(const ProgramKey& key) const;
  /// Sets the program's `self_checked`, here and in the program cache.
  void remember_self_check(const ProgramKey& key);
  void forget() noexcept;

 private:
  /// The program, loaded or begun to be compiled now if need be.
  Entry& entry(const ProgramKey& key);
  /// Made when first needed.
  ProgramCache& cache();
  bool load(const ProgramKey& key, Entry& entry);

  std::optional<ProgramCache> cache_;
  std::vector<unsigned> binary_formats_;
};

struct GLGEMM_HIDDEN Fence::State {
  std::shared_ptr<Engine::State> engine;
  gl::Sync sync;
};

/// Of this machine; 0 where the system does not say.
std::int64_t main_memory_bytes();

}  // namespace glgemm
