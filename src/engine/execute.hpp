// From the steps of a plan to OpenGL.
#pragma once

#include "engine/prepare.hpp"

namespace glgemm {

/// Enqueues steps of a checked product. While it lives, nothing else may change bindings or the program.
class Enqueuer {
 public:
  Enqueuer(Engine::State& state, const Call& call);
  /// Releases the caller's buffers.
  ~Enqueuer();
  Enqueuer(const Enqueuer&) = delete;
  Enqueuer& operator=(const Enqueuer&) = delete;

  /// Called once, before the first step of a product.
  void upload_items();
  void run(const Step& step);
  /// What ran in place of a vendor's library that failed; null if nothing did.
  const std::shared_ptr<const Prepared>& instead() const { return instead_; }

  struct Timed {
    std::optional<Step> step;
    double seconds = 0;     ///< the expected time
    bool is_trial = false;  ///< small because too little is known of the program's speed
  };
  /// Enqueues the next step, measures and flushes it. By what is known of the programs, it takes `seconds` at most. None at the
  /// end.
  Timed run_timed(Cursor& cursor, double seconds);

 private:
  Engine::State& state_;
  const Call& call_;
  const Plan& plan_;
  std::optional<gl::DebugGroup> group_;
  gl::Program* used_ = nullptr;
  std::shared_ptr<const Prepared> instead_;
};

/// Dispatches a program on a C without elements, since some drivers compile at the first dispatch. Leaves bindings changed.
void run_on_nothing(Engine::State& state, const ProgramKey& key, gl::Program& program);

/// Enqueues a checked product, step after step. If the product may be long and the speed of its programs is not known, waits for
/// its first steps.
/// @throws DeviceLost  it waited, and the context was reset
void enqueue(Engine::State& state, const Call& call, Report* report);

}  // namespace glgemm
