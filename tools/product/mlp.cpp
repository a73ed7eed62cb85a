// Networks in words: see mlp.hpp.
#include "product/mlp.hpp"

#include <stdexcept>

#include <fmt/format.h>

#include "files/files.hpp"
#include "terminal/texts.hpp"

namespace glgemm::tools {

std::vector<std::int64_t> parse_widths(std::string_view text, std::string_view what) {
  std::vector<std::int64_t> widths;
  for (const std::string_view part : split(text, ',')) widths.push_back(parse_size(part, what));
  if (widths.size() < 2)
    throw std::invalid_argument(fmt::format("{}: {} is not two widths or more, as in 3,64,64,4", what, quote(text)));
  if (widths.size() > Mlp::max_layers + 1)
    throw std::invalid_argument(
        fmt::format("{}: {} has {} layers, and networks have {} at most", what, quote(text), widths.size() - 1, Mlp::max_layers));
  return widths;
}

PlainMlp plain_mlp(const std::vector<std::int64_t>& widths, const Formats& formats, std::int64_t samples) {
  if (formats.b.quantization || !can_multiply(formats.a.type, formats.b.type) ||
      sum_type(formats.a.type, formats.b.type) != Type::f32)
    throw std::invalid_argument(fmt::format(
        "--type: the weights and the input of a network are summed in f32, as those of f16, f16/f32 or q4_0/f32; {} are not",
        to_string(formats)));
  PlainMlp network{.widths = widths, .formats = formats, .samples = samples};
  const auto place = [](std::int64_t& end, std::int64_t bytes) {
    const std::int64_t at = end;
    end += (bytes + 15) / 16 * 16;
    return at;
  };
  double bytes = 0;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    const std::int64_t inputs = widths[i], outputs = widths[i + 1];
    problem_of({outputs, samples, inputs}, {formats.a, i == 0 ? formats.b : ElementFormat{}});  // its sizes can be counted
    bytes += stored_bytes(formats.a, outputs, inputs);
    if (bytes > 0x1p60)
      throw std::invalid_argument(fmt::format("the weights have {}, more than can be counted", bytes_text(bytes)));
    MlpLayer& layer = network.layers.emplace_back();
    BufferView& weights = layer.weights;
    weights.rows = outputs;
    weights.columns = inputs;
    weights.ld = row_elements(formats.a, inputs);
    weights.type = formats.a.type;
    weights.quantization = formats.a.quantization;
    weights.offset_bytes = place(network.weights_bytes, outputs * storage_bytes(formats.a, weights.ld));
    if (scales_lie_apart(weights.quantization)) {
      const QuantizedBytes apart = quantized_bytes(weights.quantization, outputs, weights.ld);
      weights.scales.offset_bytes = place(network.weights_bytes, apart.scales);
      if (apart.zeros > 0) weights.zeros.offset_bytes = place(network.weights_bytes, apart.zeros);
    }
    layer.bias = BiasView::for_each_output(0, place(network.biases_bytes, outputs * element_bytes(Type::f32)));
    if (i + 2 < widths.size()) layer.activation = Activation::relu();
  }
  return network;
}

Mlp PlainMlp::mlp() const {
  Mlp result;
  result.layers = layers;
  result.input = {.rows = widths.front(), .columns = samples, .layout = Layout::column_major, .type = formats.b.type};
  result.output = {.rows = widths.back(), .columns = samples, .layout = Layout::column_major};
  return result;
}

std::string to_string(const PlainMlp& network) {
  return fmt::format("{}", fmt::join(network.widths, ","));
}

double flops_of(const PlainMlp& network) {
  double all = 0;
  for (const MlpLayer& layer : network.layers) all += flops({layer.weights.rows, network.samples, layer.weights.columns});
  return all;
}

std::string kernel_text(const MlpPlan::Group& group) {
  if (group.program) return to_string(group.program->kernel);
  return group.products.empty() ? "" : to_string(group.products.front().kernel);
}

std::string layers_text(const MlpPlan::Group& group) {
  if (group.count == 1) return fmt::format("layer {}", group.first + 1);
  return fmt::format("layers {} to {}", group.first + 1, group.first + group.count);
}

}  // namespace glgemm::tools
