// From how many floating-point operations on a product goes to OpenGL.
#pragma once

#include <array>
#include <atomic>
#include <string>

#include "blas/product.hpp"

namespace glgemm::blas {

/// Whether a product with so many operations goes to OpenGL. With GLGEMM_BLAS_MIN_FLOPS that says it; else what was measured for
/// this device and the BLAS below, in this process or in one before. It is measured when a program has spent more time in large
/// products than the measurement takes; until then they go to the BLAS below. Any thread.
bool goes_to_opengl(Type type, double flops);

/// Reads GLGEMM_BLAS_MIN_FLOPS and sets `slow_size`. Once; later calls do nothing.
void start_thresholds();

/// From now on every call takes the slow way, which counts it.
void watch_all_calls();

/// "2.7e+08 flops (measured)": for the log.
std::string threshold_text(Type type);

/// m n k from which on a call takes the slow way, by type; products below go to the next BLAS. One load and one comparison are
/// all that such a call costs.
inline constinit std::array<std::atomic<double>, blas_types.size()> slow_size{};

}  // namespace glgemm::blas
