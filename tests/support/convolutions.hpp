// Convolutions of integers, and what they must give by the definition.
#pragma once

#include <glgemm/convolution.hpp>
#include <glgemm/engine.hpp>
#include <glgemm/limits.hpp>
#include <string>

#include "support/convolved.hpp"
#include "support/random.hpp"

namespace glgemm::test {

/// Runs a convolution without buffers on integers that are drawn, and compares every byte of the output's buffer. Empty if all
/// are right, or the device computes nothing.
std::string fault_of_convolution(Engine& engine, Convolution convolution, std::uint64_t seed, bool by_job = false,
                                 const PlanOptions& options = {});

/// Any convolution of a few thousand multiply-adds, without buffers.
Convolution draw_convolution(Random& random, const Limits& limits);
/// All that it is, for messages.
std::string text_of(const Convolution& convolution);

}  // namespace glgemm::test
