// How long a call is expected to take.
#pragma once

#include "engine/steps.hpp"

namespace glgemm {

/// The seconds of a product, or of a convolution, at most; by the rates of its programs if they are known.
double longest(const Engine::State& state, const Prepared& prepared);
double longest(const Engine::State& state, const PreparedConvolution& prepared);

/// The work that the program of a convolution's own does in a second, guessed.
double guessed_rate(const Engine::State& state, const PreparedConvolution& prepared);

}  // namespace glgemm
