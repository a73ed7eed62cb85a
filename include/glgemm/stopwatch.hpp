// A Stopwatch measures time on the device.
#pragma once

#include <chrono>
#include <memory>

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
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  /// Enqueue a query each; do not wait.
  void start();
  void stop();
  /// The GPU's time between start() and stop(); waits until it is known.
  std::chrono::nanoseconds elapsed() const;

 private:
  std::shared_ptr<Engine::State> state_;
  unsigned queries_[2] = {0, 0};
};

}  // namespace glgemm
