#include "support/mlps.hpp"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include <glgemm/job.hpp>

#include "base/elements.hpp"
#include "support/context.hpp"

namespace glgemm::test {
namespace {

constexpr std::byte spoils{0xff}, shows{0x5a};

std::int64_t lines(const BufferView& view) {
  return view.layout == Layout::row_major ? view.rows : view.columns;
}
std::int64_t offset(const BufferView& view, std::int64_t i, std::int64_t j) {
  return view.offset_bytes + (view.layout == Layout::row_major ? i * view.ld + j : j * view.ld + i) * element_bytes(view.type);
}

/// Numbers of a type, which f32 holds.
Matrix<float> drawn(std::int64_t rows, std::int64_t columns, Type type, double largest, Random& random) {
  Matrix<float> result(rows, columns);
  for (std::int64_t i = 0; i < result.size(); ++i)
    result.data()[i] = with_type(type, [&]<class T>(T) {
      return static_cast<float>(
          to_number<double>(to_element<T>(std::complex<double>(largest * static_cast<double>(random.uniform())))).real());
    });
  return result;
}

/// Integers, the greatest 4 in magnitude.
Matrix<float> integers(std::int64_t rows, std::int64_t columns, Random& random) {
  Matrix<float> result(rows, columns);
  for (std::int64_t i = 0; i < result.size(); ++i) result.data()[i] = static_cast<float>(random.below(9) - 4);
  return result;
}

/// Weights for numbers up to `limit`, which becomes what they may give: sums stay below 2^24 through 16 layers of up to 400
/// inputs.
Matrix<float> integer_weights(std::int64_t rows, std::int64_t columns, double& limit, Random& random) {
  Matrix<float> result(rows, columns);
  const bool all = limit <= 1000 && random.coin();
  const std::int64_t count = all ? columns : limit <= 1000 ? 3 : 1;
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t t = 0; t < count; ++t)
      result(i, all ? t : random.below(columns)) = count == 1 ? 1 : random.pick({1.0F, 2.0F, -1.0F, -2.0F});
  limit = (count == 1 ? 1 : 2 * static_cast<double>(count)) * limit + 4;
  return result;
}

Activation any_activation_of_integers(double& limit, Random& random) {
  if (random.below(3) > 0) return random.pick({Activation(), Activation::relu(), Activation::leaky_relu(-1)});
  limit = std::min(limit, 30.0);
  return Activation::clamp(-20, 30);
}

Activation any_activation(Random& random) {
  const ActivationInfo& row = random.one_of(activation_table);
  const double parameters[] = {row.kind == ActivationKind::sine         ? 3.0
                               : row.kind == ActivationKind::leaky_relu ? 0.125
                                                                        : -0.5,
                               0.75};
  return Activation::of(row.kind, std::span(parameters, row.parameter_count));
}

}  // namespace

BufferView MlpCase::place(const Matrix<float>& numbers, Type type, Layout layout, std::vector<std::byte>& bytes, bool plain) {
  BufferView view{.rows = numbers.rows(), .columns = numbers.columns(), .layout = layout, .type = type};
  const std::int64_t width = layout == Layout::row_major ? view.columns : view.rows;
  view.ld = std::max<std::int64_t>(1, width) + (plain || random_.coin() ? 0 : random_.pick({1, 2, 4, 7}));
  const std::int64_t step = plain || random_.coin() ? 16 : element_bytes(type);
  view.offset_bytes = (std::ssize(bytes) + step - 1) / step * step;
  bytes.resize(static_cast<std::size_t>((view.offset_bytes + lines(view) * view.ld * element_bytes(type) + 3) / 4 * 4), spoils);
  for (std::int64_t i = 0; i < view.rows; ++i)
    for (std::int64_t j = 0; j < view.columns; ++j)
      store_element(bytes.data() + offset(view, i, j), type, static_cast<double>(numbers(i, j)));
  return view;
}

MlpCase::MlpCase(const MlpWish& wish, std::uint64_t seed)
    : random_(seed), seed_(seed), exact_(wish.exact || (wish.widths.empty() && random_.coin())) {
  std::vector<std::int64_t> widths = wish.widths;
  if (widths.empty()) {
    const std::int64_t count = random_.coin() ? 1 + random_.below(4) : 1 + random_.below(16),
                       most = random_.pick({8, 17, 40, 70, 130});
    for (std::int64_t i = 0; i <= count; ++i) widths.push_back(1 + random_.below(most));
  }
  const std::int64_t samples = wish.samples >= 0 ? wish.samples : random_.coin() ? random_.below(200) : random_.below(3001);
  const bool plain = wish.plain, apart = !plain && random_.below(3) == 0, mixed = !plain && random_.below(6) == 0;
  const auto any_type = [&] { return plain || random_.coin() ? Type::f32 : random_.pick({Type::f32, Type::f16, Type::bf16}); };
  const auto any_layout = [&] { return plain || random_.coin() ? Layout::row_major : Layout::column_major; };
  const Type of_all = any_type();
  Type input_type = any_type();
  std::vector<std::vector<std::byte>> memory(1, std::vector<std::byte>(16, spoils));  // of the weights and biases
  std::vector<std::size_t> weights_in, biases_in;
  const std::size_t count = widths.size() - 1;
  Type output_type = Type::f32;
  double limit = 4;
  for (std::size_t l = 0; l < count; ++l) {
    const Type type = mixed ? random_.pick({Type::f32, Type::f16, Type::bf16, Type::f8e4m3}) : of_all;
    while (l == 0 && !can_multiply(type, input_type)) input_type = any_type();
    const bool last = l + 1 == count;
    const Type before = l == 0 ? input_type : Type::f32;
    if (last)
      for (const Type narrow : {Type::f16, Type::bf16})
        if (!plain && random_.coin() && is_type_of_c(type, before, narrow)) output_type = narrow;
    const auto inputs = static_cast<double>(widths[l]);
    HostLayer& host = host_.emplace_back();
    host.weights = exact_ ? integer_weights(widths[l + 1], widths[l], limit, random_)
                          : drawn(widths[l + 1], widths[l], type, 1.5 / std::sqrt(inputs), random_);
    host.activation = wish.activation  ? *wish.activation
                      : exact_         ? any_activation_of_integers(limit, random_)
                      : random_.coin() ? Activation::relu()
                                       : any_activation(random_);
    MlpLayer& layer = layers_.emplace_back();
    layer.activation = host.activation;
    if (apart) memory.emplace_back(16, spoils);
    const bool turned = !plain && random_.below(3) == 0;
    layer.op = turned ? Op::transpose : Op::none;
    const std::size_t in = memory.size() - 1;
    layer.weights = place(turned ? transpose(host.weights) : host.weights, type, any_layout(), memory[in], plain);
    weights_in.push_back(in);
    biases_in.push_back(in);
    if (plain || random_.below(4) > 0) {
      const Type of_bias = last ? output_type : Type::f32;
      if (apart && random_.coin()) memory.emplace_back(16, spoils);
      const Matrix<float> bias = exact_ ? integers(1, widths[l + 1], random_) : drawn(1, widths[l + 1], of_bias, 0.5, random_);
      host.bias.assign(bias.elements().begin(), bias.elements().end());
      biases_in.back() = memory.size() - 1;
      layer.bias =
          BiasView::for_each_output(0, place(bias, of_bias, Layout::row_major, memory.back(), plain).offset_bytes, of_bias);
    }
  }
  input_ = exact_ ? integers(widths.front(), samples, random_) : drawn(widths.front(), samples, input_type, 1, random_);
  std::vector<std::byte> input(32, spoils);
  mlp_.input = place(input_, input_type, any_layout(), input, plain);
  before_.assign(32, shows);
  mlp_.output = place(Matrix<float>(widths.back(), samples), output_type, any_layout(), before_, plain);
  std::fill(before_.begin(), before_.end(), shows);
  before_.resize(before_.size() + 32, shows);
  for (const std::vector<std::byte>& bytes : memory) buffers_.emplace_back(bytes);
  for (std::size_t l = 0; l < count; ++l) {
    layers_[l].weights.buffer = buffers_[weights_in[l]].name();
    const BiasView bias = layers_[l].bias;
    layers_[l].bias = BiasView::of(bias.kind(), buffers_[biases_in[l]].name(), bias.offset_bytes(), bias.type());
  }
  input.resize(input.size() + 32, spoils);
  buffers_.emplace_back(input);
  mlp_.input.buffer = buffers_.back().name();
  mlp_.layers = layers_;
  reset();
}

void MlpCase::reset() {
  if (mlp_.output.buffer != 0) buffers_.pop_back();
  buffers_.emplace_back(before_);
  mlp_.output.buffer = buffers_.back().name();
}

std::string MlpCase::fault() const {
  const BufferView& view = mlp_.output;
  std::vector<std::byte> got = output();
  const auto check = [&]<class C>(C) {
    Matrix<C> result(view.rows, view.columns);
    for (std::int64_t i = 0; i < view.rows; ++i)
      for (std::int64_t j = 0; j < view.columns; ++j) {
        std::byte* const element = got.data() + offset(view, i, j);
        std::memcpy(static_cast<void*>(&result(i, j)), element, sizeof(C));
        std::fill_n(element, sizeof(C), shows);
      }
    const Check found = check_mlp<C>(host_, input_, result);
    if (exact_ && found.compared > 0 && found.method != "exact") return "the test's numbers are not exact: " + found.summary;
    return found.passed ? std::string() : found.summary;
  };
  std::string fault = view.type == Type::f16 ? check(half()) : view.type == Type::bf16 ? check(bfloat16()) : check(float());
  if (fault.empty() && got != before_) fault = "a byte beside the output's elements has changed";
  return accept(fault.empty()) ? "" : fault;
}

std::string MlpCase::text() const {
  std::string result = fmt::format("seed {}: {} {} samples", seed_, to_string(mlp_.input.type), mlp_.input.columns);
  for (const MlpLayer& layer : layers_)
    result += fmt::format(" -> {}x{} {} {}{}", layer.weights.rows, layer.weights.columns, to_string(layer.weights.type),
                          info(layer.activation.kind()).name, layer.bias ? " bias" : "");
  return result + fmt::format(" -> {}", to_string(mlp_.output.type));
}

std::string fault_of_mlp(Engine& engine, std::uint64_t seed, const MlpWish& wish, const PlanOptions& options, bool by_job) {
  MlpCase network(wish, seed);
  std::string fault;
  try {
    if (by_job) {
      Job job = engine.start(network.mlp(), options);
      while (!job.advance(std::chrono::milliseconds(1))) engine.fence().wait(std::chrono::seconds(60));
    } else {
      engine.run(network.mlp(), options);
    }
    fault = network.fault();
  } catch (const std::exception& error) {
    fault = error.what();
  }
  return fault.empty() ? "" : network.text() + ": " + fault;
}

}  // namespace glgemm::test
