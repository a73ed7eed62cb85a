// The steps of a convolution that are no product's.
#pragma once

#include "engine/call.hpp"

namespace glgemm {

/// Enqueues a step of a copy or of a depthwise convolution by its program, which is the current one.
void run_step(Engine::State& state, const ConvolutionCall& call, const ConvolutionStep& step, gl::Program& program);

}  // namespace glgemm
