// Convolutions of integers, and what they must give by the definition.
#pragma once

#include <glgemm/convolution.hpp>
#include <glgemm/engine.hpp>

namespace glgemm::test {

/// Runs a convolution without buffers on integers that are drawn, and compares every byte of the output's buffer.
void check_convolution(Engine& engine, Convolution convolution, unsigned seed, bool by_job = false,
                       const PlanOptions& options = {});

/// A convolution whose output has the size that follows.
Convolution completed(Convolution convolution);

}  // namespace glgemm::test
