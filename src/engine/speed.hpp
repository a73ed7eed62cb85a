// How long a call is expected to take.
#pragma once

#include "engine/steps.hpp"

namespace glgemm {

/// The seconds of a product, or of a convolution, at most; by the rates of its programs if they are known.
double longest(const Engine::State& state, const Prepared& prepared);
double longest(const Engine::State& state, const PreparedConvolution& prepared);
double longest(const Engine::State& state, const PreparedMlp& prepared);

/// The work that the program of a convolution's own does in a second, guessed.
double guessed_rate(const Engine::State& state, const PreparedConvolution& prepared);
/// The same for the program of a network's group.
double guessed_rate(const PreparedMlp& prepared, std::size_t group);

}  // namespace glgemm
