// What an engine, its device matrices, fences and scopes share.
#pragma once

#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <glgemm/engine.hpp>

#include "gl.hpp"

// What is nested in an exported class is exported with it, unless it says otherwise.
#if defined(__GNUC__)
#define GLGEMM_HIDDEN __attribute__((visibility("hidden")))
#else
#define GLGEMM_HIDDEN
#endif

namespace glgemm {

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

struct GLGEMM_HIDDEN Engine::State {
  struct Entry {
    gl::Program program;
    bool ready = false;  ///< compiled and checked
  };

  gl::Api api{};
  DeviceInfo device;
  Limits limits;
  EngineOptions options;
  std::map<ProgramKey, Entry> programs;
  StagingRing staging;
  GLuint marker = 0;  ///< a query object, which only this context has and by which it is known
  std::string marker_label;
  GLuint items = 0;  ///< the buffer with the items of a batch, grown as needed
  std::int64_t items_bytes = 0;
  GLuint workspace = 0;  ///< the engine's own workspace, grown as needed
  std::int64_t workspace_bytes = 0;
  GLuint scratch = 0;  ///< bound where a program is run on nothing
  GLint most_debug_groups = 0;
  bool scoped = false;
  /// The engine's own objects may not be used any more; those of its device matrices may, unless `abandoned`.
  bool released = false;
  /// OpenGL must not be called any more.
  bool abandoned = false;

  /// Puts the mark into the context by which check_usable() knows it.
  void mark_context();
  /// @throws std::invalid_argument  the engine was released, or (if it checks) its context is not current
  void check_usable(const char* what) const;
  /// The same for what may outlive the engine's release.
  /// @throws std::invalid_argument  the engine was abandoned, or (if it checks, and was not released) its context is not current
  void check_context(const char* what) const;
  /// Saves OpenGL's state unless a scope does.  @throws Unsupported  transform feedback is active
  void enter(const char* what, std::optional<gl::StateGuard>& guard, gl::Bindings bindings = gl::all_bindings) const;
  void log(const std::string& message) const;
  /// The program, compiled now if need be.
  gl::Program& program(const ProgramKey& key);
  /// Has the driver begin to compile the program if it can do so in the background.
  void begin_program(const ProgramKey& key);
  bool is_ready(const ProgramKey& key);
  void forget() noexcept;

 private:
  Entry& entry(const ProgramKey& key);
};

/// "3x4", for messages.
inline std::string size_text(std::int64_t rows, std::int64_t columns) {
  return std::to_string(rows) + "x" + std::to_string(columns);
}

}  // namespace glgemm
