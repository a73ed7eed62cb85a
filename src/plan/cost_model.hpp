// How long a kernel is expected to take.
#pragma once

#include <glgemm/plan.hpp>

namespace glgemm {

/// The seconds that the kernel is expected to take for the problem as it runs, with k in that many parts, its compilation spread
/// over `runs`.
double expected_seconds(const Problem& problem, const Kernel& kernel, const Limits& limits, std::int64_t parts, double runs);

/// The same of a plan. A product that is added to two floats is some 25 operations in place of one.
inline double expected_seconds(const Plan& plan, const Limits& limits, double runs) {
  const double operations = plan.precision != Precision::extended ? 1 : plan.doubles ? 2 : 8;
  return operations * expected_seconds(plan.problem, plan.kernel, limits, plan.parts, runs < 1 ? 1 : runs);
}

}  // namespace glgemm
