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
/// Made, used and destroyed with the engine's context current.
class GLGEMM_EXPORT Stopwatch {
 public:
  explicit Stopwatch(Engine& engine);
  ~Stopwatch();
  Stopwatch(Stopwatch&& other) noexcept;
  Stopwatch& operator=(Stopwatch&& other) noexcept;
  /// Enqueue a query each; do not wait.
  void start();
  void stop();
  /// After stop(): the GPU's time between start() and it. Waits until it is known.
  std::chrono::nanoseconds elapsed() const;
  /// The same if it is known already; does not wait. Ask in the next frames, say.
  std::optional<std::chrono::nanoseconds> poll() const;

 private:
  std::optional<std::chrono::nanoseconds> time(bool wait) const;

  std::shared_ptr<Engine::State> state_;
  unsigned queries_[2] = {0, 0};
};

}  // namespace glgemm
