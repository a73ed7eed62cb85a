// The reference of convolutions. No OpenGL.
#include "support/convolved.hpp"

#include <array>
#include <functional>
#include <numeric>

namespace glgemm::test {

std::int64_t elements(const TensorView& tensor) {
  return std::accumulate(tensor.size.begin(), tensor.size.end(), tensor.batch * tensor.channels, std::multiplies<>());
}
std::int64_t volume(const Extents& size) {
  return std::accumulate(size.begin(), size.end(), std::int64_t{1}, std::multiplies<>());
}

std::int64_t place(const TensorView& tensor, std::int64_t image, std::int64_t pixel, std::int64_t channel) {
  const std::int64_t pixels = volume(tensor.size);
  return tensor.layout == TensorLayout::nhwc ? (image * pixels + pixel) * tensor.channels + channel
                                             : (image * tensor.channels + channel) * pixels + pixel;
}

Convolution completed(Convolution conv) {
  conv.output.batch = conv.input.batch;
  conv.output.size = output_size(conv);
  return conv;
}

namespace {

/// Where a filter's element lies: `outer` is O and `inner` the number of I in the group, as convolution.hpp has them.
std::int64_t place(const Convolution& conv, std::int64_t outer, std::int64_t inner, std::int64_t tap) {
  const std::int64_t taps = volume(conv.filters.size), outers = conv.transposed ? conv.input.channels : conv.output.channels,
                     inners = (conv.transposed ? conv.output.channels : conv.input.channels) / conv.groups;
  switch (conv.filters.layout) {
    case FilterLayout::ohwi:
      return (outer * taps + tap) * inners + inner;
    case FilterLayout::oihw:
      return (outer * inners + inner) * taps + tap;
    default:
      return (tap * inners + inner) * outers + outer;
  }
}

/// The coordinates of number `index` of a grid.
std::array<std::int64_t, 3> coordinates(std::int64_t index, const Extents& size) {
  std::array<std::int64_t, 3> result{};
  for (std::size_t d = size.size(); d-- > 0; index /= size[d]) result[d] = index % size[d];
  return result;
}

/// The pixel of `fine` that a filter's element meets at a pixel of `coarse`; -1 outside.
std::int64_t met(const Convolution& conv, const Extents& coarse, std::int64_t pixel, const Extents& fine, std::int64_t tap) {
  const auto at = coordinates(pixel, coarse), of_tap = coordinates(tap, conv.filters.size);
  std::int64_t result = 0;
  for (std::size_t d = 0; d < coarse.size(); ++d) {
    const auto value = [&](const Extents& extents, std::int64_t without) { return extents.empty() ? without : extents[d]; };
    const std::int64_t x = at[d] * value(conv.stride, 1) + of_tap[d] * value(conv.dilation, 1) - value(conv.padding.before, 0);
    if (x < 0 || x >= fine[d]) return -1;
    result = result * fine[d] + x;
  }
  return result;
}

}  // namespace

std::vector<double> convolved(const Convolution& conv, const std::vector<double>& input, const std::vector<double>& filters) {
  std::vector<double> result(static_cast<std::size_t>(elements(conv.output)), 0.0);
  const TensorView &coarse = conv.transposed ? conv.input : conv.output, &fine = conv.transposed ? conv.output : conv.input;
  const std::int64_t outers = coarse.channels / conv.groups, inners = fine.channels / conv.groups;
  for (std::int64_t image = 0; image < conv.input.batch; ++image)
    for (std::int64_t pixel = 0; pixel < volume(coarse.size); ++pixel)
      for (std::int64_t tap = 0; tap < volume(conv.filters.size); ++tap) {
        const std::int64_t other = met(conv, coarse.size, pixel, fine.size, tap);
        if (other < 0) continue;
        for (std::int64_t outer = 0; outer < coarse.channels; ++outer)
          for (std::int64_t inner = 0; inner < inners; ++inner) {
            const std::int64_t of_coarse = place(coarse, image, pixel, outer),
                               of_fine = place(fine, image, other, outer / outers * inners + inner);
            const double weight = filters[static_cast<std::size_t>(place(conv, outer, inner, tap))];
            const std::int64_t to = conv.transposed ? of_fine : of_coarse, from = conv.transposed ? of_coarse : of_fine;
            result[static_cast<std::size_t>(to)] += conv.alpha.value.real() * weight * input[static_cast<std::size_t>(from)];
          }
      }
  return result;
}

}  // namespace glgemm::test
