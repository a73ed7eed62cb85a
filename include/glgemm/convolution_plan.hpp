// How a convolution runs, as values: a ConvolutionProblem and Limits in, a ConvolutionPlan out. Pure, as plan.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <glgemm/convolution.hpp>
#include <glgemm/plan.hpp>

namespace glgemm {

/// A part of the input's images in the workspace, with zeros around it where it reaches beyond them. Lengths are in elements.
struct BorderedCopy {
  using Three = ConvolutionProblem::Three;
  Three first{};  ///< the image's element that lies first; negative in the border
  Three size{};   ///< 0 where nothing is copied
  /// From an element to the next one along each dimension, from channel to channel, and from image to image.
  Three step{};
  std::int64_t channel = 0, image = 0;
  std::int64_t size_bytes = 0;
  friend bool operator==(const BorderedCopy&, const BorderedCopy&) = default;
};

/// How a convolution runs: cut into pieces of whole images, or of rows of one image. For each piece, the part of the input that
/// it reads is copied where a border is needed, and then each group of channels is a product, or transposed with a stride
/// several: one for each phase, that is for the outputs that share their filter's elements. A depthwise one (as many groups as
/// input channels) is no product, and runs by a kernel of its own that needs no copy.
struct ConvolutionPlan {
  ConvolutionProblem problem;
  bool depthwise = false;  ///< it then has neither pieces nor products
  /// The images of a piece, and their output's rows: elements along `axis`, the first dimension along which the output is longer
  /// than 1.
  std::int64_t piece_images = 1, piece_rows = 1;
  std::size_t axis = 0;
  std::int64_t pieces = 0;  ///< none where the output has no elements
  /// Of the first piece, which is the largest.
  BorderedCopy border;
  /// The program that copies, where something is copied, or that runs a depthwise convolution.
  std::optional<ProgramKey> program;
  /// The products of its first group.
  std::vector<Plan> products;
  /// In the workspace come first what products need, then the copy.
  std::int64_t border_offset_bytes = 0;
  std::int64_t workspace_bytes = 0;
  friend bool operator==(const ConvolutionPlan&, const ConvolutionPlan&) = default;
};

/// Throws what is wrong with a convolution's sizes and types, or returns. Any thread.
/// @throws std::invalid_argument  with the numbers
/// @throws Unsupported            an activation of integers or complex numbers
GLGEMM_EXPORT void validate(const ConvolutionProblem& problem);

/// Decides how a convolution runs. The copy and the products share `options.workspace_bytes`.
/// @throws std::invalid_argument  as validate() and make_plan() of a product
/// @throws Unsupported            the workspace has no room for the copy of a row, a binding none for the tables' reach, a
///                                transposed one has more than 4096 phases; or as make_plan() of a product
GLGEMM_EXPORT ConvolutionPlan make_plan(const ConvolutionProblem& problem, const Limits& limits, const PlanOptions& options = {});

}  // namespace glgemm
