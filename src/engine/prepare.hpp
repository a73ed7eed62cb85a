// From a product or a convolution to a call whose programs are ready.
#pragma once

#include <fmt/core.h>

#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <vector>

#include "engine/call.hpp"

namespace glgemm {

/// All that comes before a product runs, and all of it that may fail. Plans the product, saves OpenGL's state in `guard` unless a
/// scope does, compiles and checks the programs, sees that the product is legal, and grows `work` as needed. Leaves bindings
/// changed.
/// @throws  as make_plan, Engine::State::save_bindings, make_ready and legal_call
Call prepare(Engine::State& state, const char* what, const Gemm& product, const PlanOptions& options,
             const PlanConstraints& constraints, WorkBuffers& work, std::optional<gl::StateGuard>& guard);
/// Prepares several products. An error says which of them is meant.
std::vector<Call> prepare(Engine::State& state, const char* what, std::span<const Gemm> products, const PlanOptions& options,
                          WorkBuffers& work, std::optional<gl::StateGuard>& guard);
/// Whether a call's buffers are looked at.
enum class CallBuffers { checked, unchecked };

/// The same for a convolution, and for a network.
MlpCall prepare(Engine::State& state, const char* what, const Mlp& mlp, const PlanOptions& options, WorkBuffers& work,
                std::optional<gl::StateGuard>& guard, CallBuffers buffers = CallBuffers::checked);
ConvolutionCall prepare(Engine::State& state, const char* what, const Convolution& convolution, const PlanOptions& options,
                        WorkBuffers& work, std::optional<gl::StateGuard>& guard, CallBuffers buffers = CallBuffers::checked);

/// Has the programs of the problems run. `products` are what the problems are of, if somebody gave them.
void prepare_products(Engine::State& state, std::span<const Problem> problems, std::span<const Gemm> products,
                      const PlanOptions& options);

// The steps of prepare(), which others take by themselves, in their order.

/// What the engine has the planner go by: its limits, its tuning table, and the programs that it has struck off.
PlannerInputs inputs_of(const Engine::State& state, const PlanOptions& options, const PlanConstraints& constraints = {});

/// The plan for a problem, from the engine's cache if the same problem was planned before. Convolutions and networks are planned
/// by_shaders().
std::shared_ptr<Prepared> prepared_for(Engine::State& state, const Problem& problem, const PlanOptions& options,
                                       const PlanConstraints& constraints = {});
std::shared_ptr<PreparedConvolution> prepared_for(Engine::State& state, const ConvolutionProblem& problem,
                                                  const PlanOptions& options);
std::shared_ptr<PreparedMlp> prepared_for(Engine::State& state, const MlpProblem& problem, const PlanOptions& options);

/// Compiles and checks the programs of the plan if that was not done before. Returns false if one failed its self-check, or if
/// the driver refused it and no other kernel is wanted than the planner's choice: it is struck off, and the caller must plan the
/// product again. Leaves bindings changed.
/// @throws RefusedProgram  the driver refused a program, and `is_forced`: the caller of the engine names the kernel
bool make_ready(Engine::State& state, Prepared& prepared, bool is_forced);
/// The same for a convolution.  @throws GlError  besides: the program that copies is wrong
bool make_ready(Engine::State& state, PreparedConvolution& prepared);
bool make_ready(Engine::State& state, PreparedMlp& prepared);

/// work(products[i]). Adds the product's index to the message of its std::invalid_argument.
template <class Work>
auto work_on(std::span<const Gemm> products, std::size_t i, const Work& work) {
  try {
    return work(products[i]);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(fmt::format("product {} of {}: {}", i, products.size(), error.what()));
  }
}

}  // namespace glgemm
