// The sizes of a convolution: what its output has, and what a Convolution means for planning.
#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "base/rounding.hpp"
#include "plan/convolution.hpp"

namespace glgemm {
namespace {

std::string text_of(const Extents& extents) {
  std::string text;
  for (const std::int64_t each : extents) text += fmt::format("{}{}", text.empty() ? "" : "x", each);
  return text.empty() ? "nothing" : text;
}

std::string text_of(const Three& size) {
  return fmt::format("{}x{}x{}", size[0], size[1], size[2]);
}

/// Along one dimension.
struct Dimension {
  std::int64_t input, filter, stride, dilation, before = 0, after = 0;
  bool transposed;

  std::int64_t reach() const { return (filter - 1) * dilation + 1; }
  /// How many elements more than output() a transposed one's output may have: as PyTorch and ONNX let it be padded.
  std::int64_t most_more() const { return transposed ? std::max(stride, dilation) - 1 : 0; }
  /// The output's size; negative where the filter leaves the image.
  std::int64_t output() const {
    if (transposed) return (input - 1) * stride + reach() - before - after;
    const std::int64_t room = input + before + after - reach();
    return room < 0 ? -1 : room / stride + 1;
  }
};

/// All the dimensions of a convolution, the padding chosen.
std::array<Dimension, Extents::max_dimensions> dimensions_of(const Convolution& convolution) {
  const Extents &input = convolution.input.size, &filter = convolution.filters.size;
  const std::size_t count = input.size();
  const Padding& padding = convolution.padding;
  const auto check = [&](const Extents& extents, const char* what, std::int64_t least) {
    if (extents.size() != count && !(extents.empty() && least >= 0))
      refuse_convolution("images of {} have {} dimensions, and {} of {} {}", text_of(input), count, what, text_of(extents),
                         extents.size());
    for (const std::int64_t each : extents)
      if (each < std::max<std::int64_t>(least, 0) || each > std::numeric_limits<std::int32_t>::max())
        refuse_convolution("{} of {}", what, text_of(extents));
  };
  if (count == 0) refuse_convolution("the input's images have no dimensions");
  check(filter, "filters", 1);
  if (filter.empty()) refuse_convolution("the filters have no dimensions");
  check(convolution.stride, "strides", 1);
  check(convolution.dilation, "dilations", 1);
  check(padding.before, "padding", 0);
  check(padding.after, "padding", 0);
  std::array<Dimension, Extents::max_dimensions> result{};
  for (std::size_t d = 0; d < count; ++d) {
    const auto value = [&](const Extents& extents, std::int64_t without) { return extents.empty() ? without : extents[d]; };
    if (input[d] < 0 || input[d] > std::numeric_limits<std::int32_t>::max()) refuse_convolution("images of {}", text_of(input));
    Dimension& dimension = result[d];
    dimension = {input[d], filter[d], value(convolution.stride, 1), value(convolution.dilation, 1), 0, 0, convolution.transposed};
    if (padding.kind == Padding::Kind::given) {
      dimension.before = value(padding.before, 0);
      dimension.after = value(padding.after, 0);
    } else if (padding.kind != Padding::Kind::valid) {
      // Transposed, each output of which a convolution makes the input belongs to it: the largest, or the one that is given.
      const Extents& given = convolution.output.size;
      const bool is_given =
          given.size() == count && given[d] > (input[d] - 1) * dimension.stride && given[d] <= input[d] * dimension.stride;
      const std::int64_t wanted = !convolution.transposed ? ceil_div(input[d], dimension.stride)
                                  : is_given              ? given[d]
                                                          : input[d] * dimension.stride;
      const std::int64_t all =
          convolution.transposed ? dimension.output() - wanted : (wanted - 1) * dimension.stride + dimension.reach() - input[d];
      const std::int64_t less = std::max<std::int64_t>(all, 0) / 2, more = std::max<std::int64_t>(all, 0) - less;
      dimension.before = padding.kind == Padding::Kind::same_upper ? less : more;
      dimension.after = padding.kind == Padding::Kind::same_upper ? more : less;
      if (convolution.transposed) dimension.after = all - dimension.before;  // an output may be larger than what filters reach
    }
    if (input[d] > 0 && dimension.output() + dimension.most_more() < 0)
      refuse_convolution(
          "filters of {}{} leave images of {}", text_of(filter),
          std::all_of(convolution.dilation.begin(), convolution.dilation.end(), [](std::int64_t each) { return each == 1; })
              ? ""
              : fmt::format(" with dilations of {}", text_of(convolution.dilation)),
          text_of(input));
  }
  return result;
}

}  // namespace

std::int64_t volume(const Three& size) {
  return saturating_product({size[0], size[1], size[2]});
}

void validate(const ConvolutionProblem& problem) {
  if (problem.batch < 0 || problem.input_channels < 0 || problem.output_channels < 0)
    refuse_convolution("{} images of {} channels, and {} channels of output; none is negative", problem.batch,
                       problem.input_channels, problem.output_channels);
  if (problem.groups < 1 || problem.input_channels % problem.groups != 0 || problem.output_channels % problem.groups != 0)
    refuse_convolution("{} channels of input and {} of output cannot be cut into {} groups", problem.input_channels,
                       problem.output_channels, problem.groups);
  for (std::size_t d = 0; d < 3; ++d)
    if (problem.input[d] < 0 || problem.output[d] < 0 || problem.filter[d] < 1 || problem.stride[d] < 1 ||
        problem.dilation[d] < 1)
      refuse_convolution(
          "images of {}, filters of {}, strides of {}, dilations of {}: a size is negative, or another number less than 1",
          text_of(problem.input), text_of(problem.filter), text_of(problem.stride), text_of(problem.dilation));
  const auto count = [](std::int64_t batch, const Three& size, std::int64_t channels) {
    return saturating_product({batch, size[0], size[1], size[2], channels, 16});
  };
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  for (std::size_t d = 0; d < 3; ++d)
    if (std::max({problem.stride[d], problem.dilation[d], problem.filter[d], std::abs(problem.before[d])}) >
        std::numeric_limits<std::int32_t>::max())
      refuse_convolution("strides of {}, dilations of {} or filters of {} are too large", text_of(problem.stride),
                         text_of(problem.dilation), text_of(problem.filter));
  if (count(problem.batch, problem.input, problem.input_channels) == most ||
      count(problem.batch, problem.output, problem.output_channels) == most ||
      saturating_product({volume(problem.filter), problem.input_channels, problem.output_channels, 16}) == most)
    refuse_convolution("{} images of {} with {} and {} channels have more bytes than 64 bits count", problem.batch,
                       text_of(problem.input), problem.input_channels, problem.output_channels);
  if (!can_multiply(problem.input_type, problem.filters.type))
    refuse_convolution("the input is {} and the filters are {}: their products have no common type of sums",
                       to_string(problem.input_type), to_string(problem.filters.type));
  if (!is_type_of_c(problem.input_type, problem.filters.type, problem.output_type))
    refuse_convolution("the input is {}, the filters are {}, and the output cannot be {}", to_string(problem.input_type),
                       to_string(problem.filters), to_string(problem.output_type));
  if (problem.filters.quantization && (problem.transposed || problem.filter_layout == FilterLayout::hwio))
    refuse_convolution(
        "{} filters are for layouts whose rows belong to output channels, ohwi and oihw, and not for transposed ones",
        to_string(problem.filters));
}

Extents output_size(const Convolution& convolution) {
  Extents result;
  const auto dimensions = dimensions_of(convolution);
  for (std::size_t d = 0; d < convolution.input.size.size(); ++d)
    result.push_back(std::max<std::int64_t>(0, dimensions[d].output()));
  return result;
}

ConvolutionProblem problem_of(const Convolution& convolution) {
  const auto dimensions = dimensions_of(convolution);
  const TensorView &input = convolution.input, &output = convolution.output;
  const FilterView& filters = convolution.filters;
  const Extents expected = output_size(convolution);
  bool is_right = output.size.size() == expected.size() && output.batch == input.batch;
  for (std::size_t d = 0; d < expected.size() && is_right; ++d) {
    const std::int64_t more = output.size[d] - (convolution.transposed ? dimensions[d].output() : expected[d]);
    is_right = more == 0 || (more > 0 && more <= dimensions[d].most_more());
  }
  if (!is_right) {
    Extents most = expected;
    for (std::size_t d = 0; d < most.size(); ++d)
      most[d] = std::max<std::int64_t>(0, dimensions[d].output() + dimensions[d].most_more());
    refuse_convolution("{} images of {} make as many of {}{}, and the output is {} of {}", input.batch, text_of(input.size),
                       text_of(expected), most == expected ? "" : " to " + text_of(most), output.batch, text_of(output.size));
  }
  ConvolutionProblem problem{.batch = input.batch,
                             .input_channels = input.channels,
                             .output_channels = output.channels,
                             .groups = convolution.groups,
                             .input_layout = input.layout,
                             .output_layout = output.layout,
                             .filter_layout = filters.layout,
                             .input_type = input.type,
                             .output_type = output.type,
                             .filters = {filters.type, filters.quantization},
                             .transposed = convolution.transposed};
  const std::size_t lacks = Extents::max_dimensions - expected.size();
  for (std::size_t d = 0; d < expected.size(); ++d) {
    const Dimension& dimension = dimensions[d];
    problem.input[lacks + d] = dimension.input;
    problem.output[lacks + d] = output.size[d];
    problem.filter[lacks + d] = dimension.filter;
    problem.stride[lacks + d] = dimension.stride;
    problem.dilation[lacks + d] = dimension.dilation;
    problem.before[lacks + d] = dimension.before;
  }
  problem.input_aligned = input.offset_bytes % 16 == 0;
  problem.filters_aligned = filters.offset_bytes % 16 == 0;
  problem.output_aligned = output.offset_bytes % 16 == 0;
  problem.bias = static_cast<bool>(convolution.bias);
  if (problem.bias && convolution.bias.kind() != Bias::for_each_output)
    refuse_convolution("a bias for each row or column is a product's; BiasView::for_each_output() is one for each channel");
  if (problem.bias && convolution.bias.type() != output.type)
    refuse_convolution("the bias is {}, and what it is added to is {}", to_string(convolution.bias.type()),
                       to_string(output.type));
  problem.residual = convolution.residual.has_value();
  problem.activation = convolution.activation.kind();
  problem.multiplies = convolution.alpha.value != 0.0;
  if (const auto& residual = convolution.residual)
    if (residual->batch != output.batch || residual->size != output.size || residual->channels != output.channels ||
        residual->layout != output.layout || residual->type != output.type)
      refuse_convolution(
          "the residual is {} images of {} with {} channels of {}, and the output {} of {} with {} of {}; their layout must be "
          "the same too",
          residual->batch, text_of(residual->size), residual->channels, to_string(residual->type), output.batch,
          text_of(output.size), output.channels, to_string(output.type));
  validate(problem);
  return problem;
}

}  // namespace glgemm
