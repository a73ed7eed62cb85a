// What a product needs, besides a plan, before it can be enqueued: compiled programs, legal operands, room in the workspace.
#pragma once

#include <vector>

#include "engine/call.hpp"

namespace glgemm {

/// Whether the items of a batch have offsets or scalars of their own.
bool gives_items(const Batch& batch);

/// The programs of a plan, each once.
std::vector<ProgramKey> programs_of(const Plan& plan);
std::vector<ProgramKey> programs_of(const ConvolutionPlan& plan);
std::vector<ProgramKey> programs_of(const MlpPlan& plan);

/// What a call of the plan may change of OpenGL's state.
gl::Bindings bindings_of(const Plan& plan);
gl::Bindings bindings_of(const ConvolutionPlan& plan);
gl::Bindings bindings_of(const MlpPlan& plan);

/// Compiles the programs of the plan if that was not done before.  @throws RefusedProgram
void compile_programs(Engine::State& state, Prepared& prepared);

/// Sees that the engine's own workspace has so many bytes.
void grow_workspace(Engine::State& state, WorkBuffers& work, std::int64_t needed);

/// A product whose programs are ready, once all else that may fail is done. Grows `work` as needed. Leaves bindings changed.
/// @throws  as validate_product, and OutOfMemory
Call legal_call(Engine::State& state, const Gemm& product, std::shared_ptr<const Prepared> prepared, WorkBuffers& work);

/// Bytes of gemm.glsl's `struct Item` in std430: four ints, alpha and beta in the accumulator's type; aligned for each type.
constexpr std::int64_t item_bytes(Type acc) {
  return 16 + 2 * element_bytes(acc);
}

}  // namespace glgemm
