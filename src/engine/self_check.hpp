// Whether a program computes on this driver what it says.
#pragma once

#include <string>

#include "engine/state.hpp"

namespace glgemm {

/// Runs the plan's programs on a small product of integers, which any order of summation gives exactly, that reaches beyond the
/// edges of their tiles, with the plan's types and what it has of items, an epilogue and parts of k; compares every byte of C.
/// Waits for the GPU. Leaves bindings changed.
/// @returns  what is wrong, as a sentence; empty if nothing is
std::string self_check(Engine::State& state, const Plan& plan);

}  // namespace glgemm
