// A convolution in which each output channel is made of one input channel: the program that runs it, and what one dispatch does.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "plan/convolution.hpp"

namespace glgemm {

/// Why depthwise.comp cannot run a convolution; empty if it can. Then the convolution runs as products.
std::string why_not_depthwise(const ConvolutionProblem& problem, const Limits& limits);

/// The program for a convolution that depthwise.comp can run.
ProgramKey depthwise_program(const ConvolutionProblem& problem, const Limits& limits);

/// How a program runs a convolution: what depthwise.comp has as uniforms. Steps of input and filters are in elements, or where
/// the program reads vectors in vectors; those of the output are in elements.
struct DepthwiseWork {
  ConvolutionProblem problem;  ///< as it runs: images of one dimension and channels innermost may stand upright
  TensorSteps input{}, filters{}, output{};
  std::int64_t vector = 1;    ///< the channels that an invocation takes
  std::int64_t rows = 1;      ///< of the output, for each invocation
  std::int64_t runs = 1;      ///< along a row
  std::int64_t channels = 0;  ///< vectors, or output channels
  std::int64_t images = 0;    ///< the most whose windows fit into bindings
  /// The grid for so many images, and the most of it that one dispatch may have.
  std::array<std::int64_t, 3> groups(std::int64_t count) const;
  std::array<std::int64_t, 3> max_groups{};
  int workgroup = 1;
};
DepthwiseWork depthwise_work(const ConvolutionProblem& problem, const Limits& limits, const ProgramKey& program);

}  // namespace glgemm
