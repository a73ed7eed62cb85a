// A convolution in which each output channel is made of one input channel: the program that runs it, and what one dispatch does.
#pragma once

#include <cstdint>
#include <string>

#include "plan/convolution.hpp"

namespace glgemm {

/// Why depthwise.comp cannot run a convolution; empty if it can. Then the convolution runs as products.
std::string why_not_depthwise(const ConvolutionProblem& problem, const Limits& limits);

/// The program for a convolution that depthwise.comp can run.
ProgramKey depthwise_program(const ConvolutionProblem& problem, const Limits& limits);

/// The most bytes that a binding can show from any element on; shaders count elements with an int.
std::int64_t window_bytes(const Limits& limits);

/// Fills in the plan of a depthwise convolution.
void plan_depthwise(ConvolutionPlan& plan, const Limits& limits, const ProgramKey& program);

/// How a program runs a convolution: what depthwise.comp has as uniforms. Steps of input and filters are in elements, or where
/// the program reads vectors in vectors. Steps of the output are in elements.
struct DepthwiseWork {
  ConvolutionProblem problem;  ///< as it runs: images of one dimension and channels innermost may stand upright
  TensorSteps input{}, filters{}, output{};
  std::int64_t vector = 1;    ///< the channels that an invocation takes
  std::int64_t runs = 1;      ///< along a row
  std::int64_t channels = 0;  ///< vectors, or output channels
};
DepthwiseWork depthwise_work(const ConvolutionProblem& problem, const ProgramKey& program);

}  // namespace glgemm
