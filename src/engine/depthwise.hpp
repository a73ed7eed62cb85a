// A convolution in which each output channel is made of one input channel, as it runs. plan/depthwise.hpp chooses its program.
#pragma once

#include <glgemm/convolution.hpp>

#include "engine/state.hpp"
#include "plan/depthwise.hpp"

namespace glgemm {

/// What the program may change of the state.
gl::Bindings depthwise_bindings(const ProgramKey& program);

/// Compiles the program and checks it on small convolutions, if that was not done before. Returns false if it gave a wrong
/// result: it is struck off, and the convolution must run as products. Leaves bindings changed.
/// @throws GlError  the driver refused the program
bool make_depthwise_ready(Engine::State& state, const ProgramKey& program);

/// Enqueues a checked convolution. `work` is depthwise_work() of what it was planned for; the program is ready.
void enqueue_depthwise(Engine::State& state, const Convolution& convolution, const DepthwiseWork& work,
                       const ProgramKey& program);

}  // namespace glgemm
