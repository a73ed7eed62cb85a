// How long a kernel is expected to take.
#pragma once

#include "plan/choose.hpp"

namespace glgemm {

/// The seconds that the kernel is expected to take for the problem as it runs, with k in that many parts, its compilation spread
/// over `runs`. `precision` is what a plan has.
double expected_seconds(const Problem& problem, const Kernel& kernel, const Limits& limits, std::int64_t parts, double runs,
                        Precision precision = Precision::standard);

/// How many times as long a product takes with that precision. To add to a sum of two floats takes about 25 operations.
inline double slowdown(Precision precision, bool doubles) {
  return precision != Precision::extended ? 1 : doubles ? 2 : 8;
}

/// The seconds that a plan by these options is expected to take.
inline double expected_seconds(const Plan& plan, const PlanOptions& options, const Limits& device) {
  const double runs = options.experimental->runs < 1 ? 1 : options.experimental->runs;
  return slowdown(plan.precision, plan.doubles) *
         expected_seconds(plan.problem, plan.kernel, limits_for(options, device), plan.parts, runs, plan.precision);
}

/// The seconds that the steps of a convolution are expected to take that are no product's: its copies, or all of a depthwise one.
/// `work` is theirs, see work_of().
double expected_seconds(const ConvolutionPlan& plan, const Limits& limits, double work);

}  // namespace glgemm
