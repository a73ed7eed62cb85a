// From a product to its plan, and from the plan's steps to OpenGL.
#pragma once

#include <memory>

#include "engine/state.hpp"

namespace glgemm {

/// What is worked out once for all products of a kind: the plan and the program of each of its stages.
struct Prepared {
  Problem problem;      ///< as the caller gave it
  PlanOptions options;  ///< likewise
  Plan plan;
  gl::Bindings bindings = 0;               ///< what a product of the plan may bind
  std::array<double, stage_count> work{};  ///< as in PlanSize
  std::array<gl::Program*, stage_count> programs{};
  std::array<Rate*, stage_count> rates{};
};

/// A part of an operand, brought along for one pack step in place of the operand itself.
struct Strip {
  unsigned buffer = 0;  ///< it begins with the buffer
  std::int64_t size_bytes = 0;
  std::int64_t first = 0;  ///< where element (0, 0) of the operand would be, in elements from the buffer's beginning
  std::int64_t row = 0;    ///< the distance in elements from one row (of B: column) to the next, and from one k to the next
  std::int64_t k = 0;
};

/// A product that has passed every check: what remains is to enqueue it.
struct Call {
  Gemm product;  ///< as it runs: the transposed one if the plan says so
  std::shared_ptr<const Prepared> prepared;
  WorkBuffers* work = nullptr;  ///< large enough
  /// What the next pack step packs, where the operands that are packed are not on the device.
  const Strip* strip = nullptr;
  /// B's panels begin behind so many bytes at least.
  std::int64_t min_panels_a_bytes = 0;
};

/// Whether the items of a batch have offsets or scalars of their own.
bool gives_items(const Batch& batch);

/// The problem that is planned for a product: with k = 0 where every alpha is 0, since A and B are then not read.
Problem problem_to_plan(const Gemm& product);

/// The options with what the engine knows: its tuning table, and the programs that failed their self-check.
PlanOptions with_own(const Engine::State& state, const PlanOptions& options);

/// The plan for a problem, from the engine's cache if its like was planned before.
std::shared_ptr<Prepared> prepared_for(Engine::State& state, const Problem& problem, const PlanOptions& options);

/// Compiles and checks the plan's programs where that was not done before. False if one failed its self-check: it is struck off,
/// and the product must be planned again. Leaves bindings changed.
/// @throws GlError  the driver refused a program
bool make_ready(Engine::State& state, Prepared& prepared);

/// Saves OpenGL's state unless a scope does, and gives the plan for a product, its programs ready.
/// @throws  as make_plan, Engine::State::enter and make_ready
std::shared_ptr<Prepared> enter(Engine::State& state, const char* what, const Gemm& product, const PlanOptions& options,
                                std::optional<gl::StateGuard>& guard);

/// A product that needs no check.
Call make_call(const Gemm& product, std::shared_ptr<const Prepared> prepared, WorkBuffers& work);

/// Everything that may fail, before anything is enqueued. Grows `work` as needed. Leaves bindings changed.
Call check(Engine::State& state, const Gemm& product, std::shared_ptr<Prepared> prepared, WorkBuffers& work);

/// Enqueues slices of a checked product. Between its making and its end nothing else changes bindings or the program.
class Enqueuer {
 public:
  Enqueuer(Engine::State& state, const Call& call);
  /// Lets go of the caller's buffers.
  ~Enqueuer();
  Enqueuer(const Enqueuer&) = delete;
  Enqueuer& operator=(const Enqueuer&) = delete;

  /// Before the first slice of a product.
  void upload_items();
  void run(const Slice& slice);

  struct Timed {
    Slice slice;
    double seconds = 0;     ///< that it is expected to take
    bool is_trial = false;  ///< small because too little is known of the program's speed
  };
  /// The next slice, of about `seconds` at most as far as is known, measured and flushed; an empty one at the end.
  Timed run_timed(Cursor& cursor, SliceClock& clock, double seconds);

 private:
  Engine::State& state_;
  const Call& call_;
  const Plan& plan_;
  std::optional<gl::DebugGroup> group_;
  gl::Program* used_ = nullptr;
};

/// Dispatches each of the plan's programs on a C without elements: some drivers compile at the first dispatch. Leaves bindings
/// changed.
void run_on_nothing(Engine::State& state, const Prepared& prepared);

/// Enqueues a checked product, slice after slice. Waits for the first slices of a product that may be long and whose programs'
/// speed is not known.
/// @throws DeviceLost  it waited, and the context was reset
void enqueue(Engine::State& state, const Call& call, Report* report);

}  // namespace glgemm
