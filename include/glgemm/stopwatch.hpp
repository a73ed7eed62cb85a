// A Stopwatch measures time on the device.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include <glgemm/engine.hpp>
#include <glgemm/export.hpp>

namespace glgemm {

/// Measures the time that commands take on the GPU, by a pair of GL_TIMESTAMP queries.
///
/// It measures one span at a time: another start() forgets the last one, read or not. Several stopwatches may run at the same
/// time, and in a Scope. Where DeviceInfo::device_clock is false, start() and stop() each wait for the device and take the
/// host's time. A time is 0 where OpenGL ES tells that the device's clock made a jump meanwhile.
///
/// Made, used and destroyed with the engine's context current; after Engine::abandon() only destroyed, on any thread. It may
/// outlive the Engine object, not its context.
class GLGEMM_EXPORT Stopwatch {
 public:
  /// @throws std::invalid_argument  the engine was released or abandoned, or its context is not current
  /// @throws Unsupported            a display list is being compiled
  /// @throws DeviceLost             the context was lost
  explicit Stopwatch(Engine& engine);
  ~Stopwatch();
  Stopwatch(Stopwatch&& other) noexcept;
  Stopwatch& operator=(Stopwatch&& other) noexcept;
  /// Each enqueues a query, and does not wait where DeviceInfo::device_clock is true.
  /// @throws std::invalid_argument  stop() without start(); the engine was abandoned, or its context is not current
  /// @throws Unsupported, DeviceLost  as the constructor
  void start();
  void stop();
  /// After stop(): the GPU's time between start() and it. Waits until it is known.
  /// @throws  as stop(), and std::invalid_argument before stop()
  std::chrono::nanoseconds elapsed() const;
  /// The same if it is known already, else none; does not wait. Ask in the next frames, say. It does not flush, but OpenGL
  /// promises that a time that is asked for again and again becomes known.  @throws  as elapsed()
  std::optional<std::chrono::nanoseconds> poll() const;

 private:
  std::optional<std::chrono::nanoseconds> time(bool wait) const;

  enum class Phase { made, started, stopped };

  std::shared_ptr<Engine::State> state_;
  Phase phase_ = Phase::made;
  unsigned queries_[2] = {0, 0};
};

}  // namespace glgemm
