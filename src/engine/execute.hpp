// From the steps of a plan to OpenGL.
#pragma once

#include "engine/call.hpp"
#include "engine/library.hpp"

namespace glgemm {

/// Enqueues the steps of a checked call, a product or a convolution. While it lives, nothing else may change bindings or the
/// program.
class Enqueuer {
 public:
  Enqueuer(Engine::State& state, Steps& steps);
  /// Releases the caller's buffers.
  ~Enqueuer();
  Enqueuer(const Enqueuer&) = delete;
  Enqueuer& operator=(const Enqueuer&) = delete;

  /// Called once, before the first step of a product.
  void upload_items();
  void run(const ConvolutionStep& step);
  /// What a vendor's library left undone; the steps that follow do nothing then.
  const std::optional<LeftByLibrary>& left() const { return left_; }

  struct Timed {
    std::optional<ConvolutionStep> step;
    double seconds = 0;     ///< the expected time
    bool is_trial = false;  ///< small because too little is known of the program's speed
  };
  /// Enqueues the next step, measures and flushes it. By what is known of the programs, it takes `seconds` at most. None at the
  /// end.
  Timed run_timed(double seconds);

 private:
  Engine::State& state_;
  Steps& steps_;
  std::optional<gl::DebugGroup> group_;
  gl::Program* used_ = nullptr;
  std::optional<LeftByLibrary> left_;
};

}  // namespace glgemm
