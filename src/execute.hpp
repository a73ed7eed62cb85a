// From a product to its plan, and from the plan's steps to OpenGL.
#pragma once

#include <memory>

#include "engine_state.hpp"

namespace glgemm {

/// What is worked out once for all products of a kind: the plan and the program of each of its stages.
struct Prepared {
  Problem problem;      ///< as the caller gave it
  PlanOptions options;  ///< likewise
  Plan plan;
  gl::Bindings bindings = 0;  ///< what a product of the plan may bind
  std::array<gl::Program*, stage_count> programs{};
  gl::Program* narrow = nullptr;  ///< of the multiply stage, where A does not begin at a multiple of 16 bytes after all
};

/// A product that has passed every check: what remains is to enqueue it.
struct Call {
  Gemm product;  ///< as it runs: the transposed one if the plan says so
  std::shared_ptr<const Prepared> prepared;
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

/// Everything that may fail, before anything is enqueued. Leaves bindings changed.
Call check(Engine::State& state, const Gemm& product, std::shared_ptr<Prepared> prepared);

/// Enqueues a checked product, slice after slice.
void enqueue(Engine::State& state, const Call& call, Report* report);

}  // namespace glgemm
