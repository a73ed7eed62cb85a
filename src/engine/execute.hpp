// From a product to its plan, and from the plan's steps to OpenGL.
#pragma once

#include <memory>

#include "engine/state.hpp"

namespace glgemm {

/// What all products of a kind share: the plan and the program of each of its stages.
struct Prepared {
  Problem problem;      ///< as the caller gave it
  PlanOptions options;  ///< likewise
  Plan plan;
  gl::Bindings bindings = 0;               ///< the state that a product of the plan may change
  std::array<double, stage_count> work{};  ///< as in PlanSize
  std::array<gl::Program*, stage_count> programs{};
  std::array<Rate*, stage_count> rates{};
};

/// A part of an operand that one pack step reads instead of the operand.
struct Strip {
  unsigned buffer = 0;  ///< the part begins where the buffer begins
  std::int64_t size_bytes = 0;
  std::int64_t first = 0;  ///< where element (0, 0) of the operand would be, in elements; may be negative
  std::int64_t row = 0;    ///< the distance in elements from one row (of B: column) to the next, and from one k to the next
  std::int64_t k = 0;
};

/// A product that has passed every check and can be enqueued.
struct Call {
  Gemm product;  ///< as it runs: the transposed one if the plan says so
  std::shared_ptr<const Prepared> prepared;
  WorkBuffers* work = nullptr;  ///< large enough
  /// What the next pack step reads, if the operands that are packed are not on the device; else null.
  const Strip* strip = nullptr;
};

/// Whether the items of a batch have offsets or scalars of their own.
bool gives_items(const Batch& batch);

/// The problem that is planned for a product: with k = 0 where every alpha is 0, since A and B are then not read.
Problem problem_to_plan(const Gemm& product);

/// The options and what the engine adds to them: its tuning table, and the programs that failed their self-check.
PlanOptions with_own(const Engine::State& state, const PlanOptions& options);

/// The plan for a problem, from the engine's cache if the same problem was planned before.
std::shared_ptr<Prepared> prepared_for(Engine::State& state, const Problem& problem, const PlanOptions& options);

/// Compiles and checks the programs of the plan if that was not done before. Returns false if one failed its self-check: it is
/// struck off, and the caller must plan the product again. Leaves bindings changed.
/// @throws GlError  the driver refused a program
bool make_ready(Engine::State& state, Prepared& prepared);

/// Saves OpenGL's state unless a scope does, and returns the plan for a product. Its programs are ready.
/// @throws  as make_plan, Engine::State::enter and make_ready
std::shared_ptr<Prepared> enter(Engine::State& state, const char* what, const Gemm& product, const PlanOptions& options,
                                std::optional<gl::StateGuard>& guard);

/// A product that needs no check.
Call make_call(const Gemm& product, std::shared_ptr<const Prepared> prepared, WorkBuffers& work);

/// Does all that may fail before anything is enqueued. Grows `work` as needed. Leaves bindings changed.
Call check(Engine::State& state, const Gemm& product, std::shared_ptr<Prepared> prepared, WorkBuffers& work);

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

  struct Timed {
    std::optional<Step> step;
    double seconds = 0;     ///< the expected time
    bool is_trial = false;  ///< small because too little is known of the program's speed
  };
  /// Enqueues the next step, measures and flushes it. By what is known of the programs, it takes `seconds` at most. None at the
  /// end.
  Timed run_timed(Cursor& cursor, SliceClock& clock, double seconds);

 private:
  Engine::State& state_;
  const Call& call_;
  const Plan& plan_;
  std::optional<gl::DebugGroup> group_;
  gl::Program* used_ = nullptr;
};

/// Dispatches a program on a C without elements, since some drivers compile at the first dispatch. Leaves bindings changed.
void run_on_nothing(Engine::State& state, const ProgramKey& key, gl::Program& program);

/// Enqueues a checked product, step after step. If the product may be long and the speed of its programs is not known, waits for
/// its first steps.
/// @throws DeviceLost  it waited, and the context was reset
void enqueue(Engine::State& state, const Call& call, Report* report);

}  // namespace glgemm
