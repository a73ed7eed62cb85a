// Checks that a program computes the right results on this driver.
#pragma once

#include <string>

#include "engine/state.hpp"

namespace glgemm {

/// Runs the plan's programs on a small product and compares every byte of C. Waits for the GPU. Leaves bindings changed.
///
/// The product is one of integers, so that any order of summation gives the same bits, and is a little larger than the programs'
/// tiles. It has the plan's types, and items, an epilogue and parts of k if the plan has them.
/// @returns  what is wrong, as a sentence; empty if all is right
std::string self_check(Engine::State& state, const Plan& plan);

}  // namespace glgemm
