#include "support/convolutions.hpp"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <glgemm/inspect.hpp>
#include <glgemm/job.hpp>
#include <span>
#include <vector>

#include "base/elements.hpp"
#include "support/context.hpp"
#include "support/functions.hpp"
#include "support/quantised.hpp"

namespace glgemm::test {
namespace {

using Numbers = std::vector<double>;
constexpr std::int64_t guard = 48;  // bytes before and behind each tensor

/// Elements of a type between guards of bytes that spoil what is added to them.
std::vector<std::byte> bytes_of(const Numbers& numbers, Type type, std::byte gap) {
  const std::int64_t bytes = static_cast<std::int64_t>(numbers.size()) * element_bytes(type);
  std::vector<std::byte> result(static_cast<std::size_t>(guard + (bytes + 3) / 4 * 4 + guard), gap);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    store_element(result.data() + guard + static_cast<std::int64_t>(i) * element_bytes(type), type, numbers[i]);
  return result;
}

/// As a buffer needs them: whole words, and at least one.
std::vector<std::byte> padded(std::vector<std::byte> bytes) {
  bytes.resize((bytes.size() + 7) / 4 * 4);
  return bytes;
}

/// Integers, so that sums are exact. Unsigned types have none below 0.
Numbers drawn(std::int64_t count, Type type, Random& random) {
  const int least = type == Type::u8 || type == Type::u32 ? 0 : -2;
  Numbers result(static_cast<std::size_t>(count));
  for (double& each : result) each = static_cast<double>(random.below(3 - least)) + least;
  return result;
}

/// What a convolution is computed from, and what comes out.
struct Drawn {
  Numbers input, filters, residual, bias, expected;
  QuantizedArrays codes;  ///< of quantised filters
};

/// Drivers may make 0 + x into x, and a sum of one product then keeps the sign of its zero.
std::vector<std::byte> without_negative_zeros(std::vector<std::byte> bytes, const TensorView& output) {
  const auto size = static_cast<std::size_t>(element_bytes(output.type));
  const auto is_zero = [](std::byte byte) { return byte == std::byte{}; };
  for (std::int64_t i = 0; i < elements(output) && !is_integer(output.type); ++i) {
    const auto element = std::span(bytes).subspan(static_cast<std::size_t>(guard) + static_cast<std::size_t>(i) * size, size);
    if (element.back() == std::byte{0x80} && std::all_of(element.begin(), element.end() - 1, is_zero)) element.back() = {};
  }
  return bytes;
}

Drawn draw(const Convolution& conv, std::uint64_t seed) {
  Random random(seed);
  const std::int64_t k = volume(conv.filters.size) * conv.input.channels / conv.groups, outputs = conv.output.channels;
  Drawn result;
  result.input = drawn(elements(conv.input), conv.input.type, random);
  result.filters = drawn(k * outputs, conv.filters.type, random);
  result.residual = drawn(elements(conv.output), conv.output.type, random);
  result.bias = drawn(outputs, conv.output.type, random);
  if (const Quantization& quantization = conv.filters.quantization) {
    const std::int64_t block = block_codes(quantization), columns = (k + block - 1) / block * block;
    result.codes = random_quantised(quantization, outputs, columns, true, random);
    const std::vector<float> all = decoded(result.codes);
    for (std::int64_t i = 0; i < k * outputs; ++i)
      result.filters[static_cast<std::size_t>(i)] = static_cast<double>(all[static_cast<std::size_t>(i / k * columns + i % k)]);
  }
  Convolution with_padding = conv;  // gl_convolution.cpp tests how `same` chooses the padding
  if (conv.residual) with_padding.residual = conv.output;
  const ConvolutionProblem problem = problem_of(with_padding);
  with_padding.padding.before = {};
  for (std::size_t d = Extents::max_dimensions - conv.input.size.size(); d < Extents::max_dimensions; ++d)
    with_padding.padding.before.push_back(problem.before[d]);
  result.expected = convolved(with_padding, result.input, result.filters);
  for (std::int64_t i = 0; i < elements(conv.output); ++i) {
    double& value = result.expected[static_cast<std::size_t>(i)];
    const std::int64_t channel = conv.output.layout == TensorLayout::nhwc ? i % outputs : i / volume(conv.output.size) % outputs;
    if (conv.residual) value += result.residual[static_cast<std::size_t>(i)];
    if (conv.bias) value += result.bias[static_cast<std::size_t>(channel)];
    if (conv.activation.kind() == ActivationKind::relu) value = std::max(value, 0.0);
  }
  return result;
}

}  // namespace

std::string fault_of_convolution(Engine& engine, Convolution conv, std::uint64_t seed, bool by_job, const PlanOptions& options) {
  const auto [input, filters, residual, bias, expected, codes] = draw(conv, seed);
  constexpr std::byte spoils{0xff}, shows{0x5a};
  const Buffer in(bytes_of(input, conv.input.type, spoils)), of_filters(bytes_of(filters, conv.filters.type, spoils)),
      d(bytes_of(residual, conv.output.type, spoils)), of_bias(bytes_of(bias, conv.output.type, spoils)),
      other(bytes_of(Numbers(expected.size(), 0), conv.output.type, shows));
  const bool in_place = conv.residual && seed % 3 == 0;
  const Buffer out(bytes_of(in_place ? residual : Numbers(expected.size(), 0), conv.output.type, shows));
  const Buffer blocks(padded(codes.codes)), scales(padded(codes.scales)), zeros(padded(codes.zeros));
  conv.input.buffer = in.name();
  conv.filters.buffer = of_filters.name();
  conv.output.buffer = out.name();
  conv.input.offset_bytes = conv.filters.offset_bytes = conv.output.offset_bytes = guard;
  if (conv.filters.quantization) {
    conv.filters.buffer = blocks.name(), conv.filters.offset_bytes = 0;
    conv.filters.scales = {scales.name(), 0}, conv.filters.zeros = {zeros.name(), 0};
  }
  if (conv.residual) conv.residual = conv.output, conv.residual->buffer = in_place ? out.name() : d.name();
  if (conv.bias) conv.bias = BiasView::for_each_output(of_bias.name(), guard, conv.output.type);
  if (by_job) {
    Job job = engine.start(conv, options);
    if (!job.done() && job.progress() != 0) return fmt::format("a job that has not begun has a progress of {}", job.progress());
    job.advance(std::chrono::nanoseconds(1));
    // Another one in between takes nothing from it.
    Convolution between = conv;
    between.output.buffer = other.name();
    if (between.residual) between.residual->buffer = d.name();
    between.workspace = {};
    engine.convolve(between, options);
    while (!job.advance(std::chrono::milliseconds(1))) {
    }
    if (job.progress() != 1) return fmt::format("a job that is done has a progress of {}", job.progress());
  } else {
    engine.convolve(conv, options);
  }
  const std::vector<std::byte> right = bytes_of(expected, conv.output.type, shows);
  const std::vector<std::byte> got = without_negative_zeros(out.read(), conv.output);
  if (got == right || !computes()) return {};
  return fmt::format("byte {} of {} is wrong; the output begins at {}",
                     std::mismatch(got.begin(), got.end(), right.begin()).first - got.begin(), got.size(), guard);
}

Convolution draw_convolution(Random& random, const Limits& limits) {
  const auto from = [&](std::int64_t least, std::int64_t most) { return least + random.below(most - least + 1); };
  const auto dimensions = static_cast<std::size_t>(from(1, 3));
  const auto sizes = [&](std::int64_t least, std::int64_t most) {
    Extents result;
    for (std::size_t d = 0; d < dimensions; ++d) result.push_back(from(least, most));
    return result;
  };
  const std::int64_t groups = random.pick({1, 1, 2, 3});
  Convolution conv;
  conv.transposed = random.below(3) == 0;
  conv.input = {.batch = from(1, 3), .size = sizes(conv.transposed ? 2 : 1, 12), .channels = groups * from(1, 6)};
  conv.output.channels = groups * from(1, 6);
  conv.groups = groups;
  if (random.below(5) == 0) conv.groups = conv.output.channels = conv.input.channels;  // depthwise
  conv.filters.size = sizes(1, 4);
  conv.stride = sizes(1, 3);
  conv.dilation = random.below(3) == 0 ? sizes(1, 2) : Extents{};
  conv.input.layout = random.pick({TensorLayout::nhwc, TensorLayout::nchw});
  conv.output.layout = random.pick({TensorLayout::nhwc, TensorLayout::nchw});
  conv.filters.layout = random.pick({FilterLayout::ohwi, FilterLayout::oihw, FilterLayout::hwio});
  // So much that no filter leaves the image; less where a transposed one would leave nothing.
  conv.padding = {Padding::Kind::given, sizes(0, 2), conv.transposed ? sizes(0, 0) : sizes(5, 8)};
  if (random.below(3) == 0) conv.padding = random.pick({Padding::same_upper(), Padding::same_lower()});
  struct Types {
    Type input, filters, output;
  };
  const Types types = random.pick<Types>({{Type::f32, Type::f32, Type::f32},
                                          {Type::f32, Type::f32, Type::f32},
                                          {Type::f16, Type::f16, Type::f16},
                                          {Type::bf16, Type::f32, Type::f32},
                                          {Type::u8, Type::i8, Type::i32},
                                          {Type::i32, Type::i32, Type::i32},
                                          {Type::f64, Type::f64, Type::f64}});
  if (types.input != Type::f64 || limits.f64)
    conv.input.type = types.input, conv.filters.type = types.filters, conv.output.type = types.output;
  conv.alpha = random.pick({1.0, 1.0, 1.0, 2.0, 0.0});
  if (random.coin()) conv.bias = BiasView::for_each_output(0, 0, conv.output.type);
  // Phases lie where tables say, which takes one storage buffer more.
  const bool has_buffers = limits.storage_blocks > 4 || !conv.transposed || !conv.bias;
  if (random.coin() && has_buffers) conv.residual = TensorView{};
  if (random.coin() && !is_integer(conv.output.type)) conv.activation = Activation::relu();
  return completed(conv);
}

std::string text_of(const Convolution& conv) {
  const auto text = [](const Extents& extents) { return fmt::format("{}", fmt::join(extents.begin(), extents.end(), "x")); };
  return fmt::format(
      "{} images of {} with {} channels of {}, {}filters of {} of {}, to {} of {}, strides {}, dilations {}, padding {} and {} "
      "(kind {}), {} groups, layouts {} {} {}, alpha {}",
      conv.input.batch, text(conv.input.size), conv.input.channels, to_string(conv.input.type),
      conv.transposed ? "transposed " : "", text(conv.filters.size), to_string(conv.filters.type), conv.output.channels,
      to_string(conv.output.type), text(conv.stride), text(conv.dilation), text(conv.padding.before), text(conv.padding.after),
      static_cast<int>(conv.padding.kind), conv.groups, static_cast<int>(conv.input.layout), static_cast<int>(conv.output.layout),
      static_cast<int>(conv.filters.layout), conv.alpha.value.real());
}

}  // namespace glgemm::test
