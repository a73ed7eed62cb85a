// From a product to a call whose programs are ready.
#pragma once

#include <fmt/core.h>

#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/state.hpp"

namespace glgemm {

/// What all products of a kind share: the plan and the program of each of its stages.
struct Prepared {
  Problem problem;      ///< as the caller gave it
  PlanOptions options;  ///< as the caller gave them
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
  /// The tables of indexed operands; null where there are none.
  std::shared_ptr<const Offsets> offsets{};
  /// What the next pack step reads, if the operands that are packed are not on the device; else null.
  const Strip* strip = nullptr;
};

/// All that comes before a product runs, and all of it that may fail. Plans the product, saves OpenGL's state in `guard` unless a
/// scope does, compiles and checks the programs, sees that the product is legal, and grows `work` as needed. Leaves bindings
/// changed.
/// @throws  as make_plan, Engine::State::save_bindings, make_ready and legal_call
Call prepare(Engine::State& state, const char* what, const Gemm& product, const PlanOptions& options, WorkBuffers& work,
             std::optional<gl::StateGuard>& guard);
/// Prepares several products. An error says which of them is meant.
std::vector<Call> prepare(Engine::State& state, const char* what, std::span<const Gemm> products, const PlanOptions& options,
                          WorkBuffers& work, std::optional<gl::StateGuard>& guard);

// The steps of prepare(), which others take by themselves, in their order.

/// Whether the items of a batch have offsets or scalars of their own.
bool gives_items(const Batch& batch);

/// The problem that is planned for a product: with k = 0 where every alpha is 0, since A and B are then not read.
Problem problem_to_plan(const Gemm& product);

/// The options and what the engine adds to them: its tuning table, and the programs that it has struck off.
PlanOptions with_own(const Engine::State& state, const PlanOptions& options);

/// The plan for a problem, from the engine's cache if the same problem was planned before.
std::shared_ptr<Prepared> prepared_for(Engine::State& state, const Problem& problem, const PlanOptions& options);

/// Compiles and checks the programs of the plan if that was not done before. Returns false if one failed its self-check, or if the
/// driver refused it and no other kernel is wanted than the planner's choice: it is struck off, and the caller must plan the
/// product again. Leaves bindings changed.
/// @throws RefusedProgram  the driver refused a program, and `is_forced`: the caller of the engine names the kernel
bool make_ready(Engine::State& state, Prepared& prepared, bool is_forced);

/// A product that needs no check.
Call make_call(const Gemm& product, std::shared_ptr<const Prepared> prepared, WorkBuffers& work);

/// A product whose programs are ready, once all else that may fail is done. Grows `work` as needed. Leaves bindings changed.
/// @throws  as validate_product, and OutOfMemory
Call legal_call(Engine::State& state, const Gemm& product, std::shared_ptr<const Prepared> prepared, WorkBuffers& work);

/// Sees that the engine's own workspace has so many bytes.
void grow_workspace(Engine::State& state, WorkBuffers& work, std::int64_t needed);

/// A stage whose program is wrong, and what is wrong, as a sentence.
struct Fault {
  Stage stage;
  std::string why;
};
/// Runs the plan's programs on a small product, and compares what each stage writes: the panels, the sums of the parts of k, and
/// every byte of C. Waits for the GPU. Leaves bindings changed. See self_check.cpp.
/// @returns  the first stage that is wrong; none if all are right
std::optional<Fault> self_check(Engine::State& state, const Plan& plan);

/// work(products[i]). Its std::invalid_argument says which of the products is meant.
template <class Work>
auto work_on(std::span<const Gemm> products, std::size_t i, const Work& work) {
  try {
    return work(products[i]);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(fmt::format("product {} of {}: {}", i, products.size(), error.what()));
  }
}

/// Bytes of gemm.glsl's `struct Item` in std430: four ints, alpha and beta in the accumulator's type; aligned for each type.
constexpr std::int64_t item_bytes(Type acc) {
  return 16 + 2 * element_bytes(acc);
}

}  // namespace glgemm
