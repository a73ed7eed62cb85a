// The check of convolutions: right ones pass, and a wrong element is found where it is, for every parameter.
#include <doctest/doctest.h>

#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include <fmt/core.h>
#include <glgemm/engine.hpp>
#include <glgemm/inspect.hpp>
#include <glgemm/verify.hpp>

#include "support/convolved.hpp"

using namespace glgemm;

namespace {

/// Random elements, so that a permutation of them shows.
template <class T>
std::vector<T> drawn(std::int64_t count, std::uint64_t seed) {
  const Matrix<T> numbers = random_integer_matrix<T>(1, count, 3, seed);
  return {numbers.elements().begin(), numbers.elements().end()};
}

template <class T, class C>
void check_all(const Convolution& conv, std::uint64_t seed) {
  const std::int64_t of_image = test::volume(conv.output.size), pixels = conv.output.batch * of_image;
  const std::vector<T> input = drawn<T>(test::elements(conv.input), seed),
                       filters = drawn<T>(
                           test::volume(conv.filters.size) * conv.input.channels * conv.output.channels / conv.groups, seed + 1);
  const std::vector<double> exact = test::convolved(conv, {input.begin(), input.end()}, {filters.begin(), filters.end()});
  std::vector<C> output(exact.begin(), exact.end());
  const auto check = [&](std::int64_t samples) {
    return check_convolution(conv, std::span<const T>(input), std::span<const T>(filters), std::span<const C>(output), samples);
  };
  const Check right = check(-1);
  CHECK_MESSAGE(right.passed, right.summary);
  CHECK(right.compared == std::ssize(output));
  CHECK(check(3).passed);
  CHECK(check(3).compared < std::ssize(output));
  // Somewhere in the middle; only its own pixel is wrong then.
  const std::int64_t channel = conv.output.channels / 2, pixel = pixels / 2, within = pixel % of_image;
  C& element = output[static_cast<std::size_t>(test::place(conv.output, pixel / of_image, within, channel))];
  const C was = element;
  element += 1;
  const Check wrong = check(-1);
  CHECK(!wrong.passed);
  CHECK(wrong.row == pixel);
  CHECK(wrong.column == channel);
  CHECK(wrong.expected == doctest::Approx(static_cast<double>(was)));
  CHECK_MESSAGE(wrong.summary.find(fmt::format(
                    "channel {} of pixel {}x{}x{} of image {}", channel, within / (conv.output.size[1] * conv.output.size[2]),
                    within / conv.output.size[2] % conv.output.size[1], within % conv.output.size[2], pixel / of_image)) !=
                    std::string::npos,
                wrong.summary);
}

}  // namespace

TEST_CASE("convolutions are checked for every parameter") {
  std::uint64_t seed = 1;
  for (const bool transposed : {false, true})
    for (const TensorLayout input : {TensorLayout::nhwc, TensorLayout::nchw})
      for (const FilterLayout filters : {FilterLayout::ohwi, FilterLayout::oihw, FilterLayout::hwio}) {
        const Convolution conv = test::completed({.input = {.batch = 2, .size = {2, 7, 6}, .channels = 4, .layout = input},
                                                  .filters = {.size = {1, 3, 2}, .layout = filters},
                                                  .output = {.channels = 6, .layout = seed % 3 == 0 ? input : TensorLayout::nhwc},
                                                  .stride = {1, 2, 1},
                                                  .dilation = {1, 1, 2},
                                                  .padding = Padding::both({0, 1, 1}),
                                                  .groups = 1 + static_cast<std::int64_t>(seed % 2),
                                                  .transposed = transposed});
        CAPTURE(fmt::format("number {}", seed));
        check_all<float, float>(conv, seed);
        Convolution bytes = conv;
        bytes.input.type = bytes.filters.type = Type::i8, bytes.output.type = Type::i32;
        check_all<std::int8_t, std::int32_t>(bytes, seed);
        ++seed;
      }
}

TEST_CASE("a convolution is within the product's bound, and what is not asked for is refused") {
  const Convolution conv = test::completed({.input = {.size = {20}, .channels = 8},
                                            .filters = {.size = {3}},
                                            .output = {.channels = 2},
                                            .padding = Padding::both({1})});
  const Matrix<float> input = random_matrix<float>(20, 8, 1), filters = random_matrix<float>(2, 24, 2);
  const std::vector<double> exact = test::convolved(conv, {input.elements().begin(), input.elements().end()},
                                                    {filters.elements().begin(), filters.elements().end()});
  std::vector<float> output(exact.begin(), exact.end());
  const auto check = [&](const Convolution& checked) {
    return check_convolution(checked, std::span<const float>(input.elements()), std::span<const float>(filters.elements()),
                             std::span<const float>(output));
  };
  const Check rounded = check(conv);
  CHECK(rounded.passed);
  CHECK(rounded.method == "bound");
  CHECK(rounded.worst_ratio > 0);
  output[5] += 1e-3F;
  CHECK(!check(conv).passed);
  CHECK(check(conv).row == 2);
  CHECK(check(conv).column == 1);
  Convolution other = conv;
  other.bias = BiasView::for_each_output(0);
  CHECK_THROWS_AS(check(other), std::invalid_argument);
  other = conv;
  other.input.batch = other.output.batch = 2;
  CHECK_THROWS_WITH_AS(check(other), "check_convolution: 160 elements of the input instead of 320", std::invalid_argument);
}
