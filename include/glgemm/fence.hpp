// A Fence tells when the device is done.
#pragma once

#include <chrono>
#include <memory>

#include <glgemm/export.hpp>
#include <glgemm/language.hpp>

namespace glgemm {

class Engine;
class Job;

/// Tells when the commands that were enqueued before it are done.
///
/// Made by Engine::fence() and Job::fence(). Used and destroyed with the engine's context, or one that shares with it, current;
/// after Engine::abandon() only destroyed, on any thread. It may outlive the Engine object and the job, not their context.
class GLGEMM_EXPORT Fence {
 public:
  ~Fence();
  Fence(Fence&&) noexcept;
  Fence& operator=(Fence&&) noexcept;
  /// Whether the commands are done; does not wait. Flushes, so that they will be.
  /// @throws DeviceLost             the context was reset
  /// @throws std::invalid_argument  the engine was abandoned
  /// @throws GlError                no such context is current, or this process is a fork
  bool poll() const;
  /// Waits until they are done, at most for `timeout`; whether they are.  @throws  as poll()
  bool wait(std::chrono::nanoseconds timeout = (std::chrono::nanoseconds::max)()) const;

 private:
  friend class Engine;
  friend class Job;
  struct State;
  explicit Fence(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace glgemm
