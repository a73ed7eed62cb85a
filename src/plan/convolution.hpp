// A convolution as products: which parts of the input, the filters and the output are their matrices.
#pragma once

#include <fmt/core.h>

#include <stdexcept>
#include <utility>

#include <glgemm/inspect.hpp>

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

/// The copy of the input's elements from `first` to `last`, of so many images.
BorderedCopy copy_of(const ConvolutionProblem& problem, const Three& first, const Three& last, std::int64_t images);

/// Where the elements of a matrix lie: (i, j) is element first + rows[i] + columns[j], or where the lines lie in equal steps,
/// first + (i row_step) + (j column_step).
struct Placement {
  std::int64_t first = 0;
  std::int64_t row_count = 0, column_count = 0;
  std::int64_t row_step = -1, column_step = -1;  ///< -1: not equal
  std::vector<std::int32_t> rows, columns;       ///< empty where all steps are equal
};

/// A product that one piece and group of a convolution needs: the output's pixels are its rows, the output's channels of the
/// group its columns, and the filter's elements and the input's channels of the group lie along k.
struct ConvolutionProduct {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t images = 1;  ///< a batch, if more than one
  std::int64_t input_stride = 0, output_stride = 0;
  /// Of the input, counted from the piece's first image (in the copy from its first element); of the output likewise. Those of a
  /// transposed convolution's filters.
  Placement input, filters, output;
};

/// The first `rows` rows of output of `images` images, as a copy and products. Others lie at constant distances from these: what
/// a piece of the same size needs is the same, from other places on.
struct ConvolutionPiece {
  std::int64_t images = 0, rows = 0;
  BorderedCopy border;
  std::vector<ConvolutionProduct> products;
};
ConvolutionPiece piece_of(const ConvolutionPlan& plan, std::int64_t images, std::int64_t rows);

/// One piece of each size: all images of a piece and those that are left, all rows and those that are left. The first is the
/// largest.
std::vector<ConvolutionPiece> pieces_of(const ConvolutionPlan& plan);

/// With what the copy leaves of the workspace.
PlanOptions options_of_products(const ConvolutionPlan& plan, PlanOptions options);
/// The plan's workspace, of which products need so many bytes.
void set_workspace(ConvolutionPlan& plan, std::int64_t of_products);

/// How many rows of input, along the plan's axis, row `row` of output lies behind its first one; a piece begins there.
std::int64_t input_row(const ConvolutionPlan& plan, std::int64_t row);

/// The problem of a piece's product.
Problem problem_of(const ConvolutionPlan& plan, const ConvolutionPiece& piece, const ConvolutionProduct& product);

/// How a matrix lies, as an Operand and a BufferView say it.
struct Lying {
  Addressing addressing = Addressing::lines;
  Layout layout = Layout::row_major;
  std::int64_t ld = 0, row_step = 0, column_step = 0, largest_offset = 0;
};
Lying lying_of(const Placement& placement);

/// How the filters of a convolution that is not transposed lie, as they are stored: op(B) is `op` of that.
struct FilterMatrix {
  Op op = Op::none;
  std::int64_t rows = 0, columns = 0, ld = 0;
  std::int64_t group = 0;  ///< elements from a group's to the next one's
};
FilterMatrix filter_matrix(const ConvolutionProblem& problem);

/// What the application's convolution is for planning.  @throws std::invalid_argument  sizes do not go together
ConvolutionProblem problem_of(const Convolution& convolution);

/// Elements from a group's filters to the next one's.
std::int64_t filters_of_group(const ConvolutionProblem& problem);

}  // namespace glgemm
