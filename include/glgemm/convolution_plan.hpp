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

/// How a convolution runs. It is cut into pieces of whole images, or of rows of one image. The steps of a piece are: the copy of
/// the part of the input that it reads, where a border is needed; then the product of each group of channels, or, transposed with
/// a stride, one product for each phase of each group. A phase is the outputs that share their filter's elements. A depthwise
/// convolution (as many groups as input channels) is no product: it is the steps of a program of its own, which needs no copy.
struct ConvolutionPlan {
  /// What pieces of one size have in common. The last pieces along the images and the rows may be smaller than the others.
  struct Shape {
    std::int64_t images = 0, rows = 0;
    BorderedCopy border;         ///< of the first such piece, if the piece has its first row at row 0
    std::vector<Plan> products;  ///< of a group
    friend bool operator==(const Shape&, const Shape&) = default;
  };

  ConvolutionProblem problem;
  bool depthwise = false;
  /// The images of a piece, and their output's rows: elements along `axis`, the first dimension along which the output is longer
  /// than 1. A depthwise convolution is cut into images alone.
  std::int64_t piece_images = 1, piece_rows = 1;
  std::size_t axis = 0;
  std::int64_t pieces = 0;    ///< none where the output has no elements, nor of a depthwise convolution
  std::vector<Shape> shapes;  ///< of the pieces, the largest first
  /// The program that copies, where something is copied, or that runs a depthwise convolution.
  std::optional<ProgramKey> program;
  /// Of that program: what a dispatch may have, and the most bytes of input that one may read.
  LargestDispatch largest_dispatch;
  std::int64_t window_bytes = 0;
  std::int64_t strip_rows = 1;  ///< of output, that an invocation of a depthwise convolution computes
  /// In the workspace come first what products need, then the copy.
  std::int64_t border_offset_bytes = 0;
  std::int64_t workspace_bytes = 0;

  /// The copy of the largest piece, and the products of a group of it. Empty where it has none.
  GLGEMM_EXPORT const BorderedCopy& border() const noexcept;
  GLGEMM_EXPORT const std::vector<Plan>& products() const noexcept;
  friend bool operator==(const ConvolutionPlan&, const ConvolutionPlan&) = default;
};

/// Where a step of a convolution belongs: the piece, by its first image and its first row of output, the group of channels, and
/// the product of the group.
struct ConvolutionPlace {
  std::int64_t image = 0, row = 0, group = 0;
  std::size_t shape = 0, product = 0;
  friend bool operator==(const ConvolutionPlace&, const ConvolutionPlace&) = default;
};

/// A step of the copy of a piece, of a product, or of the program of a depthwise convolution: Step::stage says which.
struct ConvolutionStep {
  ConvolutionPlace place;
  Step step;
};

/// Where an enumeration stands. A new one stands at the beginning.
struct ConvolutionCursor {
  ConvolutionPlace place;
  bool copied = false;  ///< the copy of this piece is done
  Cursor at;            ///< in the copy, the product or the depthwise program
};

/// The next step, as next_slice() of a product.
GLGEMM_EXPORT std::optional<ConvolutionStep> next_slice(const ConvolutionPlan& plan, ConvolutionCursor& cursor,
                                                        double work = std::numeric_limits<double>::infinity());

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
