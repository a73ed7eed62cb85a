// The check of convolutions: right ones pass, and a wrong element is found where it is, for every parameter.
#include <doctest/doctest.h>

#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include <fmt/core.h>
#include <glgemm/inspect.hpp>
#include <glgemm/verify.hpp>

using namespace glgemm;

namespace {

using Three = ConvolutionProblem::Three;

/// Random elements, so that a permutation of them shows.
template <class T>
std::vector<T> drawn(std::int64_t count, std::uint64_t seed) {
  const Matrix<T> numbers = random_integer_matrix<T>(1, count, 3, seed);
  return {numbers.elements().begin(), numbers.elements().end()};
}

std::int64_t volume(const Three& size) {
  return size[0] * size[1] * size[2];
}

std::size_t place(TensorLayout layout, const Three& size, std::int64_t channels, std::int64_t image, const Three& at,
                  std::int64_t channel) {
  const std::int64_t pixel = (at[0] * size[1] + at[1]) * size[2] + at[2], pixels = volume(size);
  return static_cast<std::size_t>(layout == TensorLayout::nhwc ? (image * pixels + pixel) * channels + channel
                                                               : (image * channels + channel) * pixels + pixel);
}

std::size_t weight(const ConvolutionProblem& p, std::int64_t o, std::int64_t i, std::int64_t tap) {
  const std::int64_t taps = volume(p.filter), outers = p.transposed ? p.input_channels : p.output_channels,
                     inners = (p.transposed ? p.output_channels : p.input_channels) / p.groups;
  switch (p.filter_layout) {
    case FilterLayout::ohwi:
      return static_cast<std::size_t>((o * taps + tap) * inners + i);
    case FilterLayout::oihw:
      return static_cast<std::size_t>((o * inners + i) * taps + tap);
    default:
      return static_cast<std::size_t>((tap * inners + i) * outers + o);
  }
}

/// A convolution of a line of images by the definition's loop. A transposed one adds to where it writes.
template <class T, class C>
std::vector<C> convolved(const ConvolutionProblem& p, const std::vector<T>& input, const std::vector<T>& filters) {
  std::vector<C> output(static_cast<std::size_t>(p.batch * volume(p.output) * p.output_channels));
  const Three &coarse = p.transposed ? p.input : p.output, &fine = p.transposed ? p.output : p.input;
  const std::int64_t coarse_channels = p.transposed ? p.input_channels : p.output_channels,
                     fine_channels = p.transposed ? p.output_channels : p.input_channels;
  const auto each = [](const Three& size, const auto& work) {
    for (std::int64_t x = 0; x < size[0]; ++x)
      for (std::int64_t y = 0; y < size[1]; ++y)
        for (std::int64_t z = 0; z < size[2]; ++z) work(Three{x, y, z});
  };
  for (std::int64_t image = 0; image < p.batch; ++image)
    each(coarse, [&](const Three& at) {
      each(p.filter, [&](const Three& tap) {
        Three other{};
        for (std::size_t d = 0; d < 3; ++d) {
          other[d] = at[d] * p.stride[d] + tap[d] * p.dilation[d] - p.before[d];
          if (other[d] < 0 || other[d] >= fine[d]) return;
        }
        for (std::int64_t o = 0; o < coarse_channels; ++o)
          for (std::int64_t i = 0; i < fine_channels / p.groups; ++i) {
            const std::int64_t group = o / (coarse_channels / p.groups), channel = group * (fine_channels / p.groups) + i;
            const auto w = static_cast<C>(filters[weight(p, o, i, (tap[0] * p.filter[1] + tap[1]) * p.filter[2] + tap[2])]);
            if (p.transposed)
              output[place(p.output_layout, fine, fine_channels, image, other, channel)] +=
                  w * static_cast<C>(input[place(p.input_layout, coarse, coarse_channels, image, at, o)]);
            else
              output[place(p.output_layout, coarse, coarse_channels, image, at, o)] +=
                  w * static_cast<C>(input[place(p.input_layout, fine, fine_channels, image, other, channel)]);
          }
      });
    });
  return output;
}

template <class T, class C>
void check_all(const ConvolutionProblem& problem, std::uint64_t seed) {
  const std::int64_t pixels = problem.batch * volume(problem.output);
  const std::vector<T> input = drawn<T>(problem.batch * volume(problem.input) * problem.input_channels, seed),
                       filters = drawn<T>(
                           volume(problem.filter) * problem.input_channels * problem.output_channels / problem.groups, seed + 1);
  std::vector<C> output = convolved<T, C>(problem, input, filters);
  const auto check = [&](std::int64_t samples) {
    return check_convolution(problem, std::span<const T>(input), std::span<const T>(filters), std::span<const C>(output),
                             samples);
  };
  const Check right = check(-1);
  CHECK_MESSAGE(right.passed, right.summary);
  CHECK(right.compared == std::ssize(output));
  CHECK(check(3).passed);
  CHECK(check(3).compared < std::ssize(output));
  // Somewhere in the middle; only its own pixel is wrong then.
  const std::int64_t channel = problem.output_channels / 2, pixel = pixels / 2, of_image = volume(problem.output);
  const Three at{pixel % of_image / (problem.output[1] * problem.output[2]), pixel / problem.output[2] % problem.output[1],
                 pixel % problem.output[2]};
  C& element = output[place(problem.output_layout, problem.output, problem.output_channels, pixel / of_image, at, channel)];
  const C was = element;
  element += 1;
  const Check wrong = check(-1);
  CHECK(!wrong.passed);
  CHECK(wrong.row == pixel);
  CHECK(wrong.column == channel);
  CHECK(wrong.expected == doctest::Approx(static_cast<double>(was)));
  CHECK_MESSAGE(wrong.summary.find(fmt::format("channel {} of pixel {}x{}x{} of image {}", channel, at[0], at[1], at[2],
                                               pixel / of_image)) != std::string::npos,
                wrong.summary);
}

}  // namespace

TEST_CASE("convolutions are checked for every parameter") {
  std::uint64_t seed = 1;
  for (const bool transposed : {false, true})
    for (const TensorLayout input : {TensorLayout::nhwc, TensorLayout::nchw})
      for (const FilterLayout filters : {FilterLayout::ohwi, FilterLayout::oihw, FilterLayout::hwio}) {
        ConvolutionProblem problem{.batch = 2,
                                   .input_channels = 4,
                                   .output_channels = 6,
                                   .groups = 1 + static_cast<std::int64_t>(seed % 2),
                                   .input = {2, 7, 6},
                                   .filter = {1, 3, 2},
                                   .stride = {1, 2, 1},
                                   .dilation = {1, 1, 2},
                                   .before = {0, 1, 1},
                                   .input_layout = input,
                                   .output_layout = seed % 3 == 0 ? input : TensorLayout::nhwc,
                                   .filter_layout = filters,
                                   .transposed = transposed};
        problem.output = transposed ? Three{2, 13, 6} : Three{2, 4, 6};
        CAPTURE(fmt::format("number {}", seed));
        check_all<float, float>(problem, seed);
        check_all<std::int8_t, std::int32_t>(problem, seed);
        ++seed;
      }
}

TEST_CASE("a convolution is within the product's bound, and what is not asked for is refused") {
  const ConvolutionProblem problem{.input_channels = 8,
                                   .output_channels = 2,
                                   .input = {1, 1, 20},
                                   .output = {1, 1, 20},
                                   .filter = {1, 1, 3},
                                   .before = {0, 0, 1}};
  const Matrix<float> input = random_matrix<float>(20, 8, 1), filters = random_matrix<float>(2, 24, 2);
  std::vector<float> output = convolved<float, float>(problem, {input.elements().begin(), input.elements().end()},
                                                      {filters.elements().begin(), filters.elements().end()});
  const auto check = [&](const ConvolutionProblem& its) {
    return check_convolution(its, std::span<const float>(input.elements()), std::span<const float>(filters.elements()),
                             std::span<const float>(output));
  };
  const Check rounded = check(problem);
  CHECK(rounded.passed);
  CHECK(rounded.method == "bound");
  CHECK(rounded.worst_ratio > 0);
  output[5] += 1e-3F;
  CHECK(!check(problem).passed);
  CHECK(check(problem).row == 2);
  CHECK(check(problem).column == 1);
  ConvolutionProblem other = problem;
  other.bias = true;
  CHECK_THROWS_AS(check(other), std::invalid_argument);
  other = problem;
  other.batch = 2;
  CHECK_THROWS_WITH_AS(check(other), "check_convolution: 160 elements of the input instead of 320", std::invalid_argument);
}
