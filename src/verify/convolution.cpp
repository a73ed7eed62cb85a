// Compares a convolution with its definition: pixel by pixel, as rows of products.
#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include <glgemm/inspect.hpp>
#include <glgemm/verify.hpp>

#include "verify/lowered.hpp"
#include "verify/random.hpp"

namespace glgemm {

using namespace verify;

namespace {

using Three = ConvolutionProblem::Three;

std::int64_t pixels_of(const Three& size) {
  return size[0] * size[1] * size[2];
}

/// The place of element number `number` of a grid.
Three place_in(const Three& size, std::int64_t number) {
  return {number / (size[1] * size[2]), number / size[2] % size[1], number % size[2]};
}

/// Where channel `channel` of a pixel lies among the elements of images of so many pixels and channels.
std::int64_t element_of(TensorLayout layout, std::int64_t image, std::int64_t pixels, std::int64_t pixel, std::int64_t channels,
                        std::int64_t channel) {
  return layout == TensorLayout::nhwc ? (image * pixels + pixel) * channels + channel
                                      : (image * channels + channel) * pixels + pixel;
}

/// How far behind the input's first element lies what a tap meets at an output's element, times the stride of a transposed
/// convolution, which skips what is no multiple of that.
std::int64_t distance(const ConvolutionProblem& problem, std::size_t d, std::int64_t output, std::int64_t tap) {
  const std::int64_t reach = tap * problem.dilation[d];
  return problem.transposed ? output + problem.before[d] - reach : output * problem.stride[d] + reach - problem.before[d];
}

/// The input's pixel that a tap meets at a pixel of the output; -1 outside the image.
std::int64_t met(const ConvolutionProblem& problem, const Three& output, const Three& tap) {
  std::int64_t pixel = 0;
  for (std::size_t d = 0; d < 3; ++d) {
    const std::int64_t steps = problem.transposed ? problem.stride[d] : 1, at = distance(problem, d, output[d], tap[d]);
    if (at < 0 || at % steps != 0 || at / steps >= problem.input[d]) return -1;
    pixel = pixel * problem.input[d] + at / steps;
  }
  return pixel;
}

/// A filter's elements that pixels like this one share. Only a transposed convolution with strides skips some.
std::vector<std::int64_t> taps_of(const ConvolutionProblem& problem, const Three& output) {
  std::vector<std::int64_t> taps;
  for (std::int64_t number = 0; number < pixels_of(problem.filter); ++number) {
    const Three tap = place_in(problem.filter, number);
    bool meets = true;
    for (std::size_t d = 0; d < 3; ++d)
      meets = meets && (!problem.transposed || distance(problem, d, output[d], tap[d]) % problem.stride[d] == 0);
    if (meets) taps.push_back(number);
  }
  return taps;
}

/// The filter's element between a channel of the input, counted in its group, and one of the output, counted in all.
std::int64_t weight_of(const ConvolutionProblem& problem, std::int64_t group, std::int64_t input, std::int64_t output,
                       std::int64_t tap) {
  const std::int64_t taps = pixels_of(problem.filter), inputs = problem.input_channels / problem.groups,
                     outputs = problem.output_channels / problem.groups;
  const std::int64_t outer = problem.transposed ? group * inputs + input : output,
                     inner = problem.transposed ? output - group * outputs : input,
                     outers = problem.transposed ? problem.input_channels : problem.output_channels,
                     inners = problem.transposed ? outputs : inputs;
  if (problem.filter_layout == FilterLayout::ohwi) return (outer * taps + tap) * inners + inner;
  if (problem.filter_layout == FilterLayout::oihw) return (outer * inners + inner) * taps + tap;
  return (tap * inners + inner) * outers + outer;
}

/// The pixels that are compared, counted over all images: all, or the corners and random ones; those that share their taps
/// together.
std::map<Three, std::vector<std::int64_t>> compared_pixels(const ConvolutionProblem& problem, std::int64_t samples,
                                                           std::uint64_t seed) {
  const std::int64_t pixels = pixels_of(problem.output), all = problem.batch * pixels;
  std::vector<std::int64_t> list;
  if (samples < 0 || samples >= all) {
    for (std::int64_t pixel = 0; pixel < all; ++pixel) list.push_back(pixel);
  } else {
    for (const std::int64_t image : {std::int64_t{0}, problem.batch - 1})
      for (int corner = 0; corner < 8; ++corner) {
        Three at{};
        for (std::size_t d = 0; d < 3; ++d) at[d] = (corner >> d & 1) * (problem.output[d] - 1);
        list.push_back(image * pixels + (at[0] * problem.output[1] + at[1]) * problem.output[2] + at[2]);
      }
    Random random(seed);
    while (std::ssize(list) < samples) list.push_back(random.below(all));
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  std::map<Three, std::vector<std::int64_t>> phases;
  for (const std::int64_t pixel : list) {
    Three phase = place_in(problem.output, pixel % pixels);
    for (std::size_t d = 0; d < 3; ++d) phase[d] = problem.transposed ? phase[d] % problem.stride[d] : 0;
    phases[phase].push_back(pixel);
  }
  return phases;
}

void require_elements(const char* what, std::size_t is, std::int64_t should_be) {
  if (is != static_cast<std::size_t>(should_be))
    throw std::invalid_argument(fmt::format("check_convolution: {} elements of the {} instead of {}", is, what, should_be));
}

/// Adds what was found of some pixels and a group's channels.
void add(Check& all, Check part, std::span<const std::int64_t> pixels, std::int64_t first_channel) {
  const auto badness = [](const Check& x) { return std::tuple(!x.passed, x.method == "bound", x.worst_ratio); };
  if (part.row >= 0) part.row = pixels[index(part.row)], part.column += first_channel;
  if (all.row < 0 || badness(part) > badness(all)) std::swap(all, part);
  all.compared += part.compared;
  all.passed &= part.passed;
  all.median_ratio = std::max(all.median_ratio, part.median_ratio);
  all.greatest_bound = std::max(all.greatest_bound, part.greatest_bound);
  all.worst_ratio_sqrt = std::max(all.worst_ratio_sqrt, part.worst_ratio_sqrt);
}

std::string summary_of(const Check& check, const ConvolutionProblem& problem) {
  const std::int64_t pixels = pixels_of(problem.output);
  const Three at = check.row < 0 ? Three{} : place_in(problem.output, check.row % pixels);
  const std::string place = check.row < 0 ? "no element"
                                          : fmt::format("channel {} of pixel {}x{}x{} of image {}", check.column, at[0], at[1],
                                                        at[2], check.row / pixels);
  const std::string count =
      fmt::format("{}: {} of {} elements", check.method, check.compared, problem.batch * pixels * problem.output_channels);
  if (!check.passed)
    return fmt::format(
        "{}: WRONG: {} is {:.9g}, expected {:.9g} {}", check.method, place, check.got, check.expected,
        check.bound == 0 ? "exactly" : fmt::format("within {:.3g}, {:.3g} times its bound", check.bound, check.worst_ratio));
  if (check.method == "exact" || check.worst_ratio == 0) return count + " equal the reference";
  return fmt::format(
      "{} compared, the worst error is {:.3g} of its bound ({:.3g} of 2 sqrt(k) u |A||B|), in {}, and the median error "
      "{:.3g}",
      count, check.worst_ratio, check.worst_ratio_sqrt, place, check.median_ratio);
}

}  // namespace

template <class T, class C>
Check check_convolution(const Convolution& convolution, std::span<const T> input, std::span<const T> filters,
                        std::span<const C> output, std::int64_t samples, std::uint64_t seed, Precision precision) {
  const ConvolutionProblem problem = problem_of(convolution);
  const std::int64_t inputs = problem.input_channels / problem.groups, outputs = problem.output_channels / problem.groups;
  const std::int64_t in_pixels = pixels_of(problem.input), out_pixels = pixels_of(problem.output);
  require_elements("input", input.size(), problem.batch * in_pixels * problem.input_channels);
  require_elements("filters", filters.size(), pixels_of(problem.filter) * inputs * problem.output_channels);
  require_elements("output", output.size(), problem.batch * out_pixels * problem.output_channels);
  if (problem.bias || problem.residual || problem.activation != ActivationKind::none)
    throw std::invalid_argument("check_convolution: a bias, a residual or an activation, of which it does not know");
  Terms<T, C> terms;
  terms.precision = precision;
  terms.quantized = static_cast<bool>(problem.filters.quantization);
  Check all;
  all.method = "exact";
  all.passed = true;
  if (output.empty()) return all.summary = summary_of(all, problem), all;
  for (const auto& [phase, pixels] : compared_pixels(problem, samples, seed)) {
    const std::vector<std::int64_t> taps = taps_of(problem, phase);
    const std::int64_t k = std::ssize(taps) * inputs;
    const std::int64_t part = std::max<std::int64_t>(1, (1 << 22) / std::max<std::int64_t>(1, k));
    for (std::int64_t group = 0; group < problem.groups; ++group) {
      Matrix<T> b(k, outputs);
      for (std::int64_t p = 0; p < k; ++p)
        for (std::int64_t o = 0; o < outputs; ++o)
          b(p, o) = filters[index(weight_of(problem, group, p % inputs, group * outputs + o, taps[index(p / inputs)]))];
      for (std::int64_t first = 0; first < std::ssize(pixels); first += part) {
        const std::span here = std::span(pixels).subspan(index(first), index(std::min(part, std::ssize(pixels) - first)));
        Matrix<T> a(std::ssize(here), k);
        Matrix<C> c(std::ssize(here), outputs);
        for (std::int64_t r = 0; r < a.rows(); ++r) {
          const std::int64_t image = here[index(r)] / out_pixels, pixel = here[index(r)] % out_pixels;
          const Three at = place_in(problem.output, pixel);
          for (std::int64_t t = 0; t < std::ssize(taps); ++t) {
            const std::int64_t from = met(problem, at, place_in(problem.filter, taps[index(t)]));
            for (std::int64_t i = 0; i < inputs && from >= 0; ++i)
              a(r, t * inputs + i) = input[index(
                  element_of(problem.input_layout, image, in_pixels, from, problem.input_channels, group * inputs + i))];
          }
          for (std::int64_t o = 0; o < outputs; ++o)
            c(r, o) = output[index(
                element_of(problem.output_layout, image, out_pixels, pixel, problem.output_channels, group * outputs + o))];
        }
        add(all, check_full(a, b, c, terms), here, group * outputs);
      }
    }
  }
  all.summary = summary_of(all, problem);
  return all;
}

}  // namespace glgemm

#define GLGEMM_FOR_TYPES(T, C)                                                                                      \
  template GLGEMM_VERIFY_EXPORT Check check_convolution(const Convolution&, std::span<const T>, std::span<const T>, \
                                                        std::span<const C>, std::int64_t, std::uint64_t, Precision);
#include "verify/instantiate.hpp"
