// From how many floating-point operations on a product goes to OpenGL.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
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

/// For the measurement: the seconds that an n x n x n product takes by OpenGL (negative: it can't) and by the next BLAS.
struct Timings {
  std::function<double(std::int64_t n)> opengl;
  std::function<double(std::int64_t n)> next;
};
/// n from which on OpenGL wins; 0: it never does. Sizes are 256, 512 and so on. OpenGL moves n^2 elements and computes n^3 terms:
/// it may lose at small sizes alone. It is given up where it takes four times as long at 1024 or more, or where the next size
/// would take seconds.
std::int64_t winning_size(const Timings& timings);

}  // namespace glgemm::blas
