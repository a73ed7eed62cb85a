// glgemm inspect --convolution: what would run for a convolution.
#pragma once

#include <string>
#include <vector>

#include <glgemm/inspect.hpp>

#include "inspect/inspect.hpp"

namespace glgemm::tools {

/// A convolution's plan, and what its cost model expects.
struct PlannedConvolution {
  std::string text;  ///< as parse_convolution() reads it
  Convolution convolution;
  ConvolutionPlan plan;
  std::vector<double> expected_seconds;  ///< of each of the plan's products; 0 where that is not known
};

/// @throws as make_plan
PlannedConvolution plan_of(const Convolution& convolution, const Device& device, const PlanOptions& options);

/// The plan for people, on the standard output.
void print(const PlannedConvolution& planned, const Device& device);
/// One JSON object with a line feed at its end.
std::string json_of(const PlannedConvolution& planned, const Device& device);

}  // namespace glgemm::tools
