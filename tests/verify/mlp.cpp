// The check of networks: right ones pass, and what is wrong is found where it is.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <glgemm/verify.hpp>

#include "verify/activation.hpp"

using namespace glgemm;

namespace {

HostLayer layer_of(Matrix<float> weights, const Matrix<float>& bias, const Activation& activation = {}) {
  return {std::move(weights), {bias.elements().begin(), bias.elements().end()}, activation};
}

/// The layers in float, one after the other.
Matrix<float> computed(const std::vector<HostLayer>& layers, Matrix<float> x) {
  for (const HostLayer& layer : layers) {
    x = multiply_serial(layer.weights, x);
    for (std::int64_t i = 0; i < x.rows(); ++i)
      for (std::int64_t j = 0; j < x.columns(); ++j)
        x(i, j) = verify::activation_value(layer.activation, x(i, j) + layer.bias[static_cast<std::size_t>(i)]);
  }
  return x;
}

}  // namespace

TEST_CASE("networks are checked through every activation") {
  for (const ActivationInfo& row : activation_table) {
    CAPTURE(row.name);
    const double parameters[] = {row.kind == ActivationKind::sine         ? 3.0
                                 : row.kind == ActivationKind::leaky_relu ? 0.125
                                                                          : -0.5,
                                 0.75};
    const std::vector<HostLayer> layers{layer_of(random_matrix(7, 5, 1), random_matrix(1, 7, 2),
                                                 Activation::of(row.kind, std::span(parameters, row.parameter_count))),
                                        layer_of(random_matrix(3, 7, 3), random_matrix(1, 3, 4))};
    const Matrix<float> input = random_matrix(5, 20, 5), right = computed(layers, input);
    const Check passes = check_mlp<float>(layers, input, right);
    CHECK_MESSAGE(passes.passed, passes.summary);
    CHECK(passes.method == "bound");
    CHECK(passes.compared == 60);
    const auto fails = [&](const Matrix<float>& wrong) {
      const Check check = check_mlp<float>(layers, input, wrong);
      CHECK(!check.passed);
      return check;
    };
    Matrix<float> wrong = right;
    wrong(1, 13) += 1;
    const Check found = fails(wrong);
    CHECK(found.row == 1);
    CHECK(found.column == 13);
    CHECK(found.expected == doctest::Approx(static_cast<double>(right(1, 13))));
    CHECK(found.summary.find("WRONG: output 1 of sample 13") != std::string::npos);
    wrong(1, 13) = std::numeric_limits<float>::quiet_NaN();
    fails(wrong);
    fails(Matrix<float>(3, 20));
    wrong = right;
    std::swap(wrong(2, 3), wrong(2, 4));
    fails(wrong);
  }
}

TEST_CASE("networks of integers must be exact, however deep") {
  std::vector<HostLayer> layers;
  for (std::uint64_t i = 0; i < 15; ++i)
    layers.push_back(layer_of(random_integer_matrix(64, 64, 2, i), random_integer_matrix(1, 64, 2, i + 20),
                              i % 3 == 0   ? Activation::relu()
                              : i % 3 == 1 ? Activation::leaky_relu(-1)
                                           : Activation::clamp(-9, 20)));
  layers.push_back(layer_of(random_integer_matrix(4, 64, 2, 40), random_integer_matrix(1, 4, 2, 41)));
  const Matrix<float> input = random_integer_matrix(64, 10, 2, 42);
  Matrix<float> output = computed(layers, input);
  const Check check = check_mlp<float>(layers, input, output);
  CHECK_MESSAGE(check.passed, check.summary);
  CHECK(check.method == "exact");
  output(3, 9) = std::nextafter(output(3, 9), 1e9F);
  CHECK(!check_mlp<float>(layers, input, output).passed);
  CHECK(check_mlp<float>(layers, input, output, 1).passed);  // the first sample alone
  CHECK(!check_mlp<float>(layers, input, output, 2).passed);
  CHECK(check_mlp<float>(layers, input, output, 2).compared == 8);

  // 2049 is rounded to even.
  const std::vector<HostLayer> sum{layer_of({{1, 1}}, {{1}})};
  const Matrix<float> x{{1024}, {1024}};
  CHECK(check_mlp<half>(sum, x, Matrix<half>{{half(2048.0F)}}).passed);
  CHECK(!check_mlp<half>(sum, x, Matrix<half>{{half(2050.0F)}}).passed);
  CHECK(check_mlp<half>(sum, Matrix<float>{{65536}, {0}}, Matrix<half>{{half(std::numeric_limits<float>::infinity())}}).passed);
}

TEST_CASE("networks may overflow, and are NaN where their input is") {
  const float infinity = std::numeric_limits<float>::infinity(), not_a_number = std::numeric_limits<float>::quiet_NaN();
  const std::vector<HostLayer> layers{layer_of({{3e38F, 3e38F}}, {{0}}), layer_of({{1}, {0.5F}}, {{0, 1}})};
  const Matrix<float> input{{1, 0}, {1, 0}};
  for (const float beyond : {infinity, not_a_number})
    CHECK(check_mlp<float>(layers, input, Matrix<float>{{beyond, 0}, {beyond, 1}}).passed);
  CHECK(!check_mlp<float>(layers, input, Matrix<float>{{infinity, not_a_number}, {infinity, 1}}).passed);
  CHECK(check_mlp<half>(layers, Matrix<float>{{not_a_number}, {0}}, Matrix<half>{{half(not_a_number)}, {half(not_a_number)}})
            .passed);
}

TEST_CASE("networks whose sizes disagree are not checked") {
  const std::vector<HostLayer> layers{layer_of(Matrix<float>(3, 2), Matrix<float>(1, 3)),
                                      layer_of(Matrix<float>(4, 3), Matrix<float>(1, 4))};
  const auto refused = [&](const std::vector<HostLayer>& wrong, std::int64_t inputs, std::int64_t outputs, const char* why) {
    CHECK_THROWS_WITH_AS(check_mlp<float>(wrong, Matrix<float>(inputs, 5), Matrix<float>(outputs, 5)), why,
                         std::invalid_argument);
  };
  refused({}, 2, 2, "check_mlp: there are no layers");
  refused(layers, 3, 4, "check_mlp: a layer has 2 inputs, and gets 3");
  refused({layers[1], layers[1]}, 3, 4, "check_mlp: a layer has 3 inputs, and gets 4");
  refused(layers, 2, 3, "check_mlp: the output is 3x5 and not 4x5");
  refused({layer_of(Matrix<float>(3, 2), Matrix<float>(1, 2))}, 2, 3, "check_mlp: 2 biases for 3 outputs");
  CHECK(check_mlp<float>(layers, Matrix<float>(2, 0), Matrix<float>(4, 0)).passed);
}
