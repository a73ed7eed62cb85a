// The steps of a convolution that are no product's.
#pragma once

#include "engine/call.hpp"

namespace glgemm {

/// What such a step reads as images.
Images images_of(Engine::State& state, const ConvolutionCall& call, const Step& step);

/// Enqueues a step of a copy or of a depthwise convolution by its program, which is the current one.
void run_step(Engine::State& state, const ConvolutionCall& call, const ConvolutionStep& step, gl::Program& program);

}  // namespace glgemm
