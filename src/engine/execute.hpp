// From the steps of a call to OpenGL.
#pragma once

#include <functional>
#include <memory>

#include "engine/steps.hpp"

namespace glgemm {

/// Calls `each` with the program of each step, and with what it reads as images there. Of buffers that do not exist it takes the
/// sizes that the steps need. In the end the steps are at their beginning.
void for_each_program(Engine::State& state, Steps& steps,
                      const std::function<void(const ProgramKey& key, const Images& images)>& each);

/// Runs on nothing what the steps will run, if it did not run so before: no step then waits for the driver's compiler. A program
/// from the program cache has no machine code on some drivers until it runs. Leaves bindings changed.
void run_on_nothing(Engine::State& state, Steps& steps);

/// Enqueues the steps of a checked call. While it lives, nothing else may change bindings or the
/// program.
class Enqueuer {
 public:
  Enqueuer(Engine::State& state, Steps& steps);
  /// Releases the caller's buffers.
  ~Enqueuer();
  Enqueuer(const Enqueuer&) = delete;
  Enqueuer& operator=(const Enqueuer&) = delete;

  /// `at` is the current step.
  void run(const Runnable& at);
  /// What a vendor's library left undone; the steps that follow do nothing then.
  const std::optional<LeftByLibrary>& left() const { return left_; }

  struct Timed {
    std::optional<Step> step;
    double seconds = 0;     ///< the expected time
    bool is_trial = false;  ///< small because too little is known of the program's speed
  };
  /// Enqueues the next step, measures and flushes it. By what is known of the programs, it takes `seconds` at most. None at the
  /// end.
  /// What it takes is added to `*total`, where there is one, once it is known.
  Timed run_timed(double seconds, const std::shared_ptr<double>& total = {});

 private:
  Engine::State& state_;
  Steps& steps_;
  std::optional<gl::DebugGroup> group_;
  gl::Program* used_ = nullptr;
  std::optional<LeftByLibrary> left_;
};

}  // namespace glgemm
