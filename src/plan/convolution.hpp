// A convolution as products: which parts of the input, the filters and the output are their matrices; and its other steps.
#pragma once

#include <fmt/core.h>

#include <stdexcept>
#include <utility>

#include <glgemm/inspect.hpp>

#include "plan/choose.hpp"

namespace glgemm {

using Three = ConvolutionProblem::Three;

/// @throws std::invalid_argument  always: "convolve: " and the text
template <class... Args>
[[noreturn]] void refuse_convolution(fmt::format_string<Args...> text, Args&&... args) {
  throw std::invalid_argument("convolve: " + fmt::format(text, std::forward<Args>(args)...));
}

std::int64_t volume(const Three& size);

/// From an element of a tensor to the next one along each dimension, from channel to channel and from image to image, in
/// elements.
struct TensorSteps {
  Three step{};
  std::int64_t channel = 0, image = 0;
};
TensorSteps steps_of(TensorLayout layout, const Three& size, std::int64_t channels);

/// The input's elements that some tap meets, from the first to the last, along each dimension.
struct Reach {
  Three first{}, last{-1, -1, -1};
};
/// The copy of these elements, of so many images.
BorderedCopy copy_of(const ConvolutionProblem& problem, const Reach& reach, std::int64_t images);

/// A matrix of a product, as it is stored in a tensor.
struct PlacedMatrix {
  std::int64_t first = 0;  ///< the tensor's element that is (0, 0), or with tables the one with the least offset
  std::int64_t row_count = 0, column_count = 0;
  Operand operand{};                            ///< how it lies; for a product on all images of a piece
  std::vector<std::int32_t> rows{}, columns{};  ///< the tables of an indexed one

  /// From `first` to element (i, j).
  std::int64_t offset(std::int64_t i, std::int64_t j) const;
};

/// A product that one piece and group of a convolution needs: the output's pixels are its rows, the output's channels of the
/// group its columns, and the filter's elements and the input's channels of the group lie along k.
struct ConvolutionProduct {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t images = 1;  ///< a batch, if more than one
  /// The input's and the output's elements count from the piece's first image, or in a copy from its first element.
  PlacedMatrix input{}, filters{}, output{};
};

/// The first `rows` rows of output of `images` images, as a copy and products. Others lie at constant distances from these: what
/// a piece of the same size needs is the same, from other places on.
struct ConvolutionPiece {
  BorderedCopy border;
  std::vector<ConvolutionProduct> products;
};
ConvolutionPiece piece_of(const ConvolutionPlan& plan, std::int64_t images, std::int64_t rows);

/// How many pieces have a shape.
std::int64_t pieces_of(const ConvolutionPlan& plan, const ConvolutionPlan::Shape& shape);

/// make_plan() by what an engine gives: see choose.hpp.
ConvolutionPlan make_plan(const ConvolutionProblem& problem, const PlannerInputs& inputs, const PlanOptions& options);

/// With what the copy leaves of the workspace.
PlanOptions options_of_products(const ConvolutionPlan& plan, PlanOptions options);

/// How many rows of input, along the plan's axis, row `row` of output lies behind its first one; a piece begins there.
std::int64_t input_row(const ConvolutionPlan& plan, std::int64_t row);

/// The problem of a product of a piece.
Problem problem_of(const ConvolutionPlan& plan, const ConvolutionPiece& piece, const ConvolutionProduct& product);

/// The copy of a piece as border.comp counts it. Lines make planes, planes make volumes: an image, or of channels-first images
/// one channel of one. Distances and lengths in the images are in units of `unit_bytes`, in the copy in vectors of 16 bytes.
struct CopyWork {
  std::int64_t unit_bytes = 1;
  std::int64_t line = 0, plane = 0, volume = 0;                              ///< distances in the images
  std::int64_t length = 0, lines = 0, planes = 0;                            ///< what an image has
  std::int64_t first_unit = 0, first_line = 0, first_plane = 0;              ///< where the copy begins; negative in the border
  std::int64_t to_lines = 0, to_planes = 0, to_volumes = 0;                  ///< what the copy has
  std::int64_t to_line = 0, to_plane = 0, to_volume = 0;                     ///< distances in the copy, whose lines have no gaps
};
CopyWork copy_work(const ConvolutionPlan& plan, const ConvolutionPlace& place);

/// The images of the piece at a place.
std::int64_t images_at(const ConvolutionPlan& plan, const ConvolutionPlace& place);

/// The work of all steps of each stage, as in PlanSize.
std::array<double, stage_count> work_of(const ConvolutionPlan& plan);

/// Elements from a group's filters to the next one's.
std::int64_t filters_of_group(const ConvolutionProblem& problem);

}  // namespace glgemm
