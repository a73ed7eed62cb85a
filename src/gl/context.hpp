// A context: its functions, its limits, and how it is recognised.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <glgemm/engine.hpp>
#include <glgemm/inspect.hpp>

namespace glgemm::gl {

/// The functions of one context. The type is complete in this room alone (gl/api.hpp), so that no other room can call one.
struct Api;

/// Owns an Api.
class Context {
 public:
  Context() = default;
  explicit Context(std::shared_ptr<const Api> api) : api_(std::move(api)) {}
  operator const Api&() const noexcept { return *api_; }

 private:
  std::shared_ptr<const Api> api_;
};

/// Loads the current context's functions.  @throws Unsupported  no context, or one older than OpenGL 4.3 and OpenGL ES 3.1
Context load(GetProcAddress get_proc_address);
DeviceInfo device_info(const Api& api);
Limits query_limits(const Api& api, const DeviceInfo& device);
bool has_extension(const Api& api, std::string_view name);

/// Whether any context is current. May be asked at any time, also when the engine's context was destroyed: every other function
/// may be called only while one is current.
bool has_current(const Api& api);
/// GL_CONTEXT_FLAGS, such as whether the context is robust or for debugging.
int context_flags(const Api& api);
/// Whether the driver compiles a program while the host goes on.
bool compiles_in_background(const Api& api);
/// Whether transform feedback is active and not paused. OpenGL then lets no program be bound.
bool captures_vertices(const Api& api);
/// Whether the context has display lists, and glBegin: those of the compatibility profile do.
bool has_lists(const Api& api);
/// Why OpenGL would not execute a call: a display list is being compiled, which takes it instead; or between glBegin and glEnd it
/// executes none. Empty if it would, and in contexts that have neither, which costs nothing there.  @throws DeviceLost
std::string why_not_executed(const Api& api);
/// Bytes of memory that the device has for all buffers; 0 if the driver does not say, or computes on a CPU.
std::int64_t memory_bytes(const Api& api);
/// Bytes of device memory that the driver reports as free; 0 if it does not say.
std::int64_t free_memory_bytes(const Api& api);

/// Has the uses to come see what shaders have written.
void barrier_before(const Api& api, Use next);
/// Has the device begin what was enqueued.
void flush(const Api& api);
/// @throws DeviceLost  the context was reset
void check_reset(const Api& api);

/// A mark by which a context is recognised: a program pipeline, which contexts do not share, with a label of its own.
class ContextMark {
 public:
  void place(const Api& api);
  /// Whether the current context is the one in which the mark was placed.
  bool is_here(const Api& api) const;
  void destroy(const Api& api) noexcept;

 private:
  unsigned pipeline_ = 0;
  std::string label_;
};

/// A group of commands in a debugger's list; none if the application has filled the context's stack of groups.
class DebugGroup {
 public:
  DebugGroup(const Api& api, std::string_view text);
  ~DebugGroup();
  DebugGroup(const DebugGroup&) = delete;
  DebugGroup& operator=(const DebugGroup&) = delete;
  static bool has_room(const Api& api);

 private:
  const Api& api_;
  const bool pushed_;
};

}  // namespace glgemm::gl
