// A convolution as a value: images, filters, how the filters move over the images, and the epilogue.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include <glgemm/export.hpp>
#include <glgemm/gemm.hpp>
#include <glgemm/reserved.hpp>
#include <glgemm/tensor.hpp>

namespace glgemm {

/// The order of the filters' elements in memory, outermost first: O output channels, I input channels (of a group), H rows and W
/// columns. With one dimension: OWI, OIW or WIO; with three: ODHWI, OIDHW or DHWIO.
enum class FilterLayout { ohwi, oihw, hwio };

/// Filters in a buffer object of the application, without gaps. Their numbers of channels follow from the images.
struct FilterView {
  unsigned buffer = 0;
  std::int64_t offset_bytes = 0;  ///< of the first element, a multiple of the element's size
  Extents size{};                 ///< of a filter: {height, width}, say
  FilterLayout layout = FilterLayout::ohwi;
  Type type = Type::f32;
  /// Where this is not `none`, the filters are quantised, as a matrix with a row of codes for each output channel: see
  /// BufferView. Their layout is ohwi or oihw.
  Quantization quantization{};
  BufferPlace scales{}, zeros{};  ///< as BufferView's
};

/// How much is added around an image, along each of its dimensions. What is added is zero.
struct Padding {
  /// Chosen by the sizes: `valid` adds nothing; `same_upper` and `same_lower` add so much that the output has ceil(size / stride)
  /// elements, and of an odd number put the one more at the end, or at the beginning. ONNX's auto_pad has these names;
  /// TensorFlow's SAME is `same_upper`.
  enum class Kind { given, valid, same_upper, same_lower };

  Kind kind = Kind::given;
  /// With `given`: how much is added before the first and behind the last element; nothing if they are empty.
  Extents before{}, after{};

  static constexpr Padding valid() noexcept { return {Kind::valid, {}, {}}; }
  static constexpr Padding same_upper() noexcept { return {Kind::same_upper, {}, {}}; }
  static constexpr Padding same_lower() noexcept { return {Kind::same_lower, {}, {}}; }
  /// As much on both sides.
  static constexpr Padding both(const Extents& each) noexcept { return {Kind::given, each, each}; }
  friend bool operator==(const Padding&, const Padding&) = default;
};

/// One convolution
///
///     output[n, o, y, x] = act(alpha sum over i, h, w of
///         input[n, i, y stride + h dilation - before, x stride + w dilation - before] filters[o, i, h, w]
///         + residual[n, o, y, x] + bias[o])
///
/// on buffers of the engine's context; input is 0 outside the image, and `i` runs over the channels of o's group. (What networks
/// call a convolution: mathematicians turn the filters around.) It is the product of a matrix whose rows are the input's elements
/// under a filter, and of the filters. Types, and the bound of the error, are as for a product, see Gemm, with
/// k = (input channels / groups) x (filter's elements).
///
/// Transposed, it is the gradient of such a convolution: input and output have changed places, input[n, o, y, x] filters[o, i, h,
/// w] is added to output[n, i, y stride + h dilation - before, ...]. O then counts the input's channels, I the output's of a
/// group.
///
/// What is outside the image is a zero like any other, and is multiplied: an infinite or NaN element of a filter makes NaN of it,
/// as in a product of the image with its border. So it is in a transposed one, too: an output gets
/// input[n, o, (y + before - h dilation) / stride, ...] filters[o, i, h, w] for each h for which the division leaves nothing, and
/// the input is 0 outside. (PyTorch and ONNX skip those zeros in transposed convolutions alone; of finite filters all is the
/// same.)
struct Convolution {
  TensorView input{};
  FilterView filters{};
  /// Its size must be output_size()'s; its layout is free.
  TensorView output{};
  Extents stride{};  ///< where it is empty, 1
  /// The distance of a filter's neighbours in the image; 1 is a dense filter. Where it is empty, 1.
  Extents dilation{};
  Padding padding{};
  /// The channels are cut into so many groups, and each is convolved apart: both numbers of channels are multiples of it.
  std::int64_t groups = 1;
  bool transposed = false;
  Scalar alpha = 1;
  /// BiasView::for_each_output() of the output's type: an element for each of its channels.
  BiasView bias{};
  /// Added to the output; it has the output's sizes, layout and type. It is the output itself or has no byte in common with it.
  std::optional<TensorView> residual{};
  Activation activation{};
  /// Used instead of the engine's own workspace.
  std::optional<Workspace> workspace{};
  Reserved reserved{};
};

/// The size of the output's images: along each dimension floor((size + padding - (filter - 1) dilation - 1) / stride) + 1, or
/// transposed (size - 1) stride + (filter - 1) dilation + 1 - padding. Transposed, several sizes of output belong to one of
/// input: an output may have up to max(stride, dilation) - 1 elements more than this. With same_upper or same_lower the output
/// may be any from (size - 1) stride + 1 to size stride; where `output` has such a size, that is the result, else the largest.
/// @throws std::invalid_argument  numbers of dimensions differ, a size is negative, or the filter leaves the image; with the
///                                numbers
GLGEMM_EXPORT Extents output_size(const Convolution& convolution);

}  // namespace glgemm
