// Networks of fully connected layers as the command line names them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <glgemm/inspect.hpp>
#include <glgemm/mlp.hpp>

#include "product/shapes.hpp"

namespace glgemm::tools {

/// Reads "3,64,64,4": the inputs of the first layer, and the outputs of each.
/// @throws std::invalid_argument  in one sentence that `what` opens: there are not 2 to 17 widths, or as parse_size
std::vector<std::int64_t> parse_widths(std::string_view text, std::string_view what);

/// A network as `bench` and `inspect` take it: with biases, relu between its layers and nothing at its end. Its samples lie one
/// after the other. One buffer has all weights, each layer's from a multiple of 16 bytes on, and one all biases.
struct PlainMlp {
  std::vector<std::int64_t> widths;
  Formats formats;  ///< of the weights and of the input
  std::int64_t samples = 0;
  std::vector<MlpLayer> layers{};  ///< their buffers have no names yet
  std::int64_t weights_bytes = 0, biases_bytes = 0;

  /// Valid as long as this is.
  Mlp mlp() const;
};
/// @throws std::invalid_argument  sizes that cannot be counted, or formats that are not summed in f32
PlainMlp plain_mlp(const std::vector<std::int64_t>& widths, const Formats& formats, std::int64_t samples);

/// "3,64,64,4".
std::string to_string(const PlainMlp& network);
/// Two for each multiply-add.
double flops_of(const PlainMlp& network);

/// What runs a group of layers, as "mlp:width=64" or "blocked:block_m=64".
std::string kernel_text(const MlpPlan::Group& group);
/// "layer 2", "layers 1 to 4".
std::string layers_text(const MlpPlan::Group& group);

}  // namespace glgemm::tools
