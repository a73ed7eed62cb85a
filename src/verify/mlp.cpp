// Checks a network of fully connected layers.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <stdexcept>
#include <type_traits>

#include <glgemm/verify.hpp>

#include "base/elements.hpp"
#include "base/text.hpp"
#include "verify/activation.hpp"
#include "verify/random.hpp"

namespace glgemm {
namespace {

constexpr double roundoff_of_f32 = 0x1p-24, no_bound = std::numeric_limits<double>::infinity();

bool is_integer(double x) {
  return std::trunc(x) == x;
}

/// Whether the activation of an integer is one, and exact.
bool keeps_integers(const Activation& activation) {
  return (activation.kind() <= ActivationKind::leaky_relu || activation.kind() == ActivationKind::clamp) &&
         is_integer(activation.low()) && is_integer(activation.high());
}

/// Numbers of a layer, each with the bound of its error: 0 for integers that every order of summation gives.
struct Values {
  std::vector<double> value, bound;
};

Values apply(const HostLayer& layer, const Values& x) {
  const std::int64_t outputs = layer.weights.rows(), inputs = layer.weights.columns();
  const double steps = static_cast<double>(inputs) + 3,
               gamma = steps * roundoff_of_f32 / (1 - steps * roundoff_of_f32) + steps * 0x1p-53;
  Values result;
  for (std::int64_t i = 0; i < outputs; ++i) {
    const auto row = static_cast<std::size_t>(i);
    double sum = layer.bias.empty() ? 0 : static_cast<double>(layer.bias[row]), size = std::abs(sum), carried = 0, largest = 1;
    bool exact = is_integer(sum) && keeps_integers(layer.activation);
    for (std::int64_t p = 0; p < inputs; ++p) {
      const auto at = static_cast<std::size_t>(p);
      const double w = static_cast<double>(layer.weights(i, p)), magnitude = std::abs(w), error = magnitude * x.bound[at];
      exact = exact && x.bound[at] == 0 && is_integer(w) && is_integer(x.value[at]);
      sum += w * x.value[at];
      size += magnitude * std::abs(x.value[at]) + error;
      carried += error;
      largest = std::max({largest, magnitude, std::abs(x.value[at])});
    }
    double bound = carried + gamma * size + steps * 0x1p-126 * 2 * largest;
    if (!(size * (1 + gamma) < static_cast<double>(std::numeric_limits<float>::max()))) bound = no_bound;
    const Activation& activation = layer.activation;
    result.value.push_back(verify::activation_value(activation, sum));
    if (activation.kind() != ActivationKind::none)
      bound = static_cast<double>(verify::carried(activation, sum, bound) +
                                  16 * roundoff_of_f32 * verify::activation_scale(activation, sum)) +
              0x1p-126;
    if (!(std::abs(result.value.back()) + bound < static_cast<double>(std::numeric_limits<float>::max()))) bound = no_bound;
    if (exact && size < 1 / roundoff_of_f32 && std::abs(result.value.back()) < 1 / roundoff_of_f32) bound = 0;
    result.bound.push_back(bound);
  }
  return result;
}

/// What the rounding to C's type adds to a bound.
template <class C>
double rounded(double value, double bound) {
  if (bound == no_bound) return bound;  // the value may be NaN
  if constexpr (SmallFloat<C>)
    return bound + std::ldexp(0.5, -C::fraction_bits) * (std::abs(value) + bound) +
           (sizeof(C) == 2 && C::fraction_bits > 7 ? 0x1p-25 : 0x1p-126);
  return bound;
}

}  // namespace

template <class C>
Check check_mlp(std::span<const HostLayer> layers, const Matrix<float>& input, const Matrix<C>& output, std::int64_t samples,
                std::uint64_t seed) {
  std::int64_t width = input.rows();
  const auto require = [](bool is_right, const std::string& what) {
    if (!is_right) throw std::invalid_argument("check_mlp: " + what);
  };
  require(!layers.empty(), "there are no layers");
  for (const HostLayer& layer : layers) {
    require(layer.weights.columns() == width, fmt::format("a layer has {} inputs, and gets {}", layer.weights.columns(), width));
    width = layer.weights.rows();
    require(layer.bias.empty() || std::ssize(layer.bias) == width,
            fmt::format("{} biases for {} outputs", layer.bias.size(), width));
  }
  require(
      output.rows() == width && output.columns() == input.columns(),
      fmt::format("the output is {} and not {}", size_text(output.rows(), output.columns()), size_text(width, input.columns())));

  const std::int64_t count = input.columns();
  const bool all = samples < 0 || samples >= count;
  constexpr double overflows_at = std::is_same_v<C, half> ? 65520 : static_cast<double>(std::numeric_limits<float>::max());
  Check check;
  check.method = "bound";
  check.passed = true;
  verify::Random random(seed);
  std::vector<double> ratios;
  bool exact = true;
  for (std::int64_t n = 0; n < (all ? count : samples); ++n) {
    const std::int64_t j = all || n == 0 ? n : n == 1 ? count - 1 : random.below(count);
    Values values;
    for (std::int64_t p = 0; p < input.rows(); ++p) values.value.push_back(static_cast<double>(input(p, j)));
    values.bound.assign(values.value.size(), 0.0);
    for (const HostLayer& layer : layers) values = apply(layer, values);
    for (std::int64_t i = 0; i < width; ++i) {
      double expected = values.value[static_cast<std::size_t>(i)], bound = values.bound[static_cast<std::size_t>(i)];
      exact = exact && bound == 0;
      if (bound == 0)
        expected = to_number<double>(to_element<C>(std::complex<double>(expected))).real();
      else
        bound = rounded<C>(expected, bound);
      const double got = to_number<double>(output(i, j)).real(), error = std::abs(got - expected);
      const bool overflows =
          std::isinf(got) && std::signbit(got) == std::signbit(expected) && std::abs(expected) + bound >= overflows_at;
      const bool same = std::isnan(expected) ? std::isnan(got) : got == expected;
      const double ratio = bound == no_bound || overflows || same ? 0 : error <= bound ? error / bound : no_bound;
      check.passed = check.passed && ratio <= 1;
      check.greatest_bound = std::max(check.greatest_bound, bound);
      ++check.compared;
      ratios.push_back(ratio);
      if (check.row >= 0 && ratio <= check.worst_ratio) continue;
      check.worst_ratio = ratio;
      check.row = i, check.column = j;
      check.got = got, check.expected = expected, check.bound = bound;
    }
  }
  if (!ratios.empty()) {
    const auto middle = ratios.begin() + (std::ssize(ratios) - 1) / 2;
    std::nth_element(ratios.begin(), middle, ratios.end());
    check.median_ratio = *middle;
  }
  if (exact && check.compared > 0) check.method = "exact";
  check.summary =
      check.passed
          ? fmt::format("{}: {} of {} elements compared, the worst error is {:.3g} of its bound, and the median error {:.3g}",
                        check.method, check.compared, width * count, check.worst_ratio, check.median_ratio)
          : fmt::format("{}: WRONG: output {} of sample {} is {:.9g}, expected {:.9g} within {:.3g}", check.method, check.row,
                        check.column, check.got, check.expected, check.bound);
  return check;
}

#define GLGEMM_FOR(C)                                                                                               \
  template GLGEMM_VERIFY_EXPORT Check check_mlp(std::span<const HostLayer>, const Matrix<float>&, const Matrix<C>&, \
                                                std::int64_t, std::uint64_t);
GLGEMM_FOR(float)
GLGEMM_FOR(half)
GLGEMM_FOR(bfloat16)

}  // namespace glgemm
