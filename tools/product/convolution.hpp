// Convolutions as the command line and CSV files name them, and their check.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <glgemm/convolution.hpp>
#include <glgemm/inspect.hpp>

#include "product/shapes.hpp"

namespace glgemm::tools {

/// Reads "INPUT,FILTERS[,PARAMETER...]", as in "1x56x56x64,64x3x3,padding=1". INPUT is images x size x channels, and FILTERS
/// output channels x size, both with one to three sizes and in this order, however the elements lie. PARAMETER is as
/// parse_convolution_parameters() reads it. The output has the size that follows.
/// @throws std::invalid_argument  as parse_convolution_parameters, or no such convolution can be
Convolution parse_convolution(std::string_view text, std::string_view what);

/// Reads parameters between commas, or an empty text: stride=, dilation= (one number, or one for each dimension as in 2x1),
/// padding= (likewise, on both sides; or before and behind, as in 1x1:0x0; or valid, same_upper or same_lower), groups=,
/// layout=nhwc|nchw of input and output, filter_layout=ohwi|oihw|hwio, and transposed.
/// @throws std::invalid_argument  in one sentence that `what` opens
Convolution parse_convolution_parameters(std::string_view text, std::size_t dimensions, std::string_view what);

/// What parse_convolution() reads, without what is there by default.
std::string to_string(const Convolution& convolution);

/// Makes the output have the size, the number of images and, transposed with the output's channels of a group at hand, the type
/// that follow.  @throws std::invalid_argument  `what` and why no such convolution can be
void complete(Convolution& convolution, std::string_view what);

/// The input has A's format, the filters B's, and the output the type of their sums.
/// @throws std::invalid_argument  the input would be quantised
void set_formats(Convolution& convolution, const Formats& formats);

/// Of input and filters, as set_formats() takes them.
Formats formats_of(const Convolution& convolution);

/// The product with as many multiply-adds: of a batch of `groups`.
Shape product_of(const Convolution& convolution);
/// 2 m n k of all groups, or 8 for complex numbers.
double flops_of(const Convolution& convolution);

std::int64_t input_elements(const Convolution& convolution);
std::int64_t filter_elements(const Convolution& convolution);
std::int64_t output_elements(const Convolution& convolution);

/// A convolution of a file, and its name there.
struct NamedConvolution {
  std::string name;  ///< empty where the file has none
  Convolution convolution;
  std::string why_not{};  ///< why it cannot be said: the file's output is smaller than the output of the other sizes
};
/// Reads a CSV file with a header that has at least the columns mb, groups, ic, ih, iw, oc, oh, ow, kh, kw, sh, sw, dilation_h,
/// dilation_w, ph and pw: the padding before the first element; that behind the last one follows from oh and ow. A column `name`
/// is the name.
/// @throws FileError              it cannot be read
/// @throws std::invalid_argument  a column is missing, or a line is malformed; the message has the file and the line's number
std::vector<NamedConvolution> read_convolutions(const std::string& path);

}  // namespace glgemm::tools
