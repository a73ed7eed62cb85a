// What an engine, its device matrices, fences and scopes share.
#pragma once

#include <chrono>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <glgemm/device_matrix.hpp>
#include <glgemm/engine.hpp>
#include <glgemm/fence.hpp>
#include <glgemm/plan.hpp>

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

/// A persistently mapped buffer through which uploads go, so that they wait neither for the GPU nor for a copy by the driver. A
/// part of it is used again when the fence behind its last use says so.
class StagingRing {
 public:
  static constexpr std::int64_t size_bytes = std::int64_t{8} << 20;

  /// Copies `bytes` of `data` into the ring and enqueues the copy of them to `offset` of `target`. At most a quarter of the ring
  /// at once.
  void upload(const gl::Api& api, const void* data, std::int64_t bytes, GLuint target, std::int64_t offset);
  void destroy(const gl::Api& api) noexcept;

 private:
  struct Used {
    std::int64_t begin, end;
    GLsync fence;
  };
  GLuint buffer_ = 0;
  std::byte* memory_ = nullptr;
  std::int64_t head_ = 0;
  std::list<Used> used_;
};

/// Buffers of a product in flight, beside its operands.
struct WorkBuffers {
  GLuint workspace = 0;
  std::int64_t workspace_bytes = 0;
  GLuint items = 0;  ///< of a batch
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

  gl::Api api{};
  DeviceInfo device;
  Limits limits;
  EngineOptions options;
  std::vector<TunedChoice> tuning;  ///< what make_plan gets
  std::map<ProgramKey, Entry> programs;
  StagingRing staging;
  GLuint marker = 0;  ///< a query object, which only this context has and by which it is known
  std::string marker_label;
  WorkBuffers work;         ///< of products that do not bring their own, grown as needed
  GLuint scratch = 0;       ///< bound where a program is run on nothing
  gl::BufferImage image_a;  ///< of an operand
  SliceClock clock;         ///< of long products
  GLint max_debug_groups = 0;
  bool scoped = false;
  /// The sizes of buffers that were asked for in this scope.
  std::vector<std::pair<GLuint, std::int64_t>> sizes;
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

  /// Puts the mark into the context by which check_usable() knows it.
  void mark_context();
  /// Whether the engine's context is current, by the mark; not for a released or abandoned engine.
  bool is_current() const;
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
  std::int64_t buffer_bytes(GLuint buffer);
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
  std::vector<GLenum> binary_formats_;
};

struct GLGEMM_HIDDEN Fence::State {
  std::shared_ptr<Engine::State> engine;
  GLsync sync;
};

/// Of this machine; 0 where the system does not say.
std::int64_t main_memory_bytes();

}  // namespace glgemm
