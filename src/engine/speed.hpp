// How long a call is expected to take.
#pragma once

#include "engine/call.hpp"

namespace glgemm {

/// The work that the program of a step does in a second, guessed: even a slow driver does so much.
double guessed_rate(const Engine::State& state, const Steps& steps, const ConvolutionStep& step);

/// Whether a call may take longer than a dispatch should.
bool may_be_long(const Engine::State& state, const Steps& steps);

}  // namespace glgemm
