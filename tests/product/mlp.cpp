// Networks on the command line.
#include <doctest/doctest.h>

#include <stdexcept>

#include "product/mlp.hpp"

using namespace glgemm;
using namespace glgemm::tools;

TEST_CASE("a network is the inputs of its first layer, and the outputs of each") {
  const PlainMlp network = plain_mlp(parse_widths("3,64,20,4", "x"), parse_formats("f16/f32"), 100);
  CHECK(to_string(network) == "3,64,20,4");
  CHECK(flops_of(network) == 2.0 * 100 * (3 * 64 + 64 * 20 + 20 * 4));
  REQUIRE(network.layers.size() == 3);
  CHECK(network.layers[1].weights.rows == 20);
  CHECK(network.layers[1].weights.columns == 64);
  CHECK(network.layers[1].weights.offset_bytes == 3 * 64 * 2);
  CHECK(network.layers[2].bias.offset_bytes() == (64 + 20) * 4);
  CHECK(network.layers[1].activation == Activation::relu());
  CHECK(network.layers[2].activation == Activation());
  CHECK(network.weights_bytes == 2 * (3 * 64 + 64 * 20 + 20 * 4));
  const Mlp mlp = network.mlp();
  CHECK(mlp.input.rows == 3);
  CHECK(mlp.output.columns == 100);
  CHECK(mlp.output.rows == 4);

  // Rows of whole blocks, and scales in the same buffer.
  const PlainMlp quantised = plain_mlp({40, 2}, parse_formats("nbits:bits=4,group=32,scales=f16/f32"), 1);
  CHECK(quantised.layers[0].weights.ld == 64);
  CHECK(quantised.layers[0].weights.scales.offset_bytes == 2 * 32);
  CHECK(quantised.weights_bytes == 2 * 32 + 16);
}

TEST_CASE("what is no network is refused with one sentence") {
  const auto refused = [](const char* text, const char* why) {
    CHECK_THROWS_WITH_AS(parse_widths(text, "--mlp"), why, std::invalid_argument);
  };
  refused("", "--mlp: '' is not a positive integer");
  refused("3", "--mlp: '3' is not two widths or more, as in 3,64,64,4");
  refused("3,64,", "--mlp: '' is not a positive integer");
  refused("3,x", "--mlp: 'x' is not a positive integer");
  CHECK_THROWS_AS(plain_mlp({4'000'000'000, 4'000'000'000}, {}, 1), std::invalid_argument);
  CHECK_THROWS_AS(plain_mlp({3, 4}, parse_formats("i8"), 1), std::invalid_argument);
}
