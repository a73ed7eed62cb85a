// Runs the network.
#include "view/network.hpp"

#include <cstddef>
#include <span>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "view/digits_weights.hpp"

namespace glgemm::tools {
namespace {

/// The tensor's bytes.  @throws std::invalid_argument  it has another type or shape
const std::byte* elements(const ModelFile& weights, const std::string& name, Type type, const std::vector<std::int64_t>& shape) {
  const ModelTensor& tensor = weights.tensor(name);
  if (tensor.type != type || tensor.shape != shape)
    throw std::invalid_argument(fmt::format("{}: the tensor {} is {} of {}, and the network's is {} of {}", weights.path(), name,
                                            fmt::join(tensor.shape, " x "), tensor.type_name, fmt::join(shape, " x "),
                                            to_string(type)));
  return tensor.data;
}

std::int64_t elements_of(const TensorView& view) {
  std::int64_t count = view.batch * view.channels;
  for (const std::int64_t size : view.size) count *= size;
  return count;
}

}  // namespace

ModelFile built_in_weights() {
  return ModelFile("the built-in weights", std::as_bytes(std::span(digits_weights)));
}

/// `geometry` has the filters' size, how they move, the output's channels and the activation.
Network::Layer::Layer(const ModelFile& weights, const std::string& name, const TensorView& input, Convolution geometry)
    : filters(4 * geometry.output.channels * input.channels * geometry.filters.size[0] * geometry.filters.size[1],
              elements(weights, name + ".weight", Type::f32,
                       {geometry.output.channels, geometry.filters.size[0], geometry.filters.size[1], input.channels})),
      bias(4 * geometry.output.channels, elements(weights, name + ".bias", Type::f32, {geometry.output.channels})),
      output([&] {
        geometry.input = input;
        geometry.output.size = output_size(geometry);
        return 4 * elements_of(geometry.output);
      }()),
      convolution(std::move(geometry)) {
  convolution.filters.buffer = filters.name();
  convolution.bias = BiasView::for_each_output(bias.name());
  convolution.output.buffer = output.name();
}

Network::Network(Engine& engine, const ModelFile& weights) : engine_(engine), input_(sizeof(Digit)) {
  const auto layer = [&](const char* name, const TensorView& input, const Convolution& geometry) {
    return layers_.emplace_back(weights, name, input, geometry).convolution.output;
  };
  const TensorView image{.buffer = input_.name(), .size = {digit_side, digit_side}};
  const TensorView first = layer("conv1", image,
                                 {.filters = {.size = {3, 3}},
                                  .output = {.channels = 16},
                                  .padding = Padding::both({1, 1}),
                                  .activation = Activation::relu()});
  const TensorView second = layer("conv2", first,
                                  {.filters = {.size = {3, 3}},
                                   .output = {.channels = 32},
                                   .stride = {2, 2},
                                   .padding = Padding::both({1, 1}),
                                   .activation = Activation::relu()});
  layer("dense", second, {.filters = {.size = {4, 4}}, .output = {.channels = 10}});
  const std::byte* cells = elements(weights, "examples", Type::u8, {10, digit_side, digit_side});
  for (Digit& example : examples_)
    for (float& cell : example) cell = static_cast<float>(std::to_integer<int>(*cells++)) / 16;
  for (const Layer& each : layers_) engine_.prepare({&each.convolution, 1});  // compiles now, so that no frame waits for it
}

void Network::begin(const Digit& digit, bool clear) {
  job_.reset();
  next_ = 0;
  slices_ = 0;
  glBindBuffer(GL_COPY_WRITE_BUFFER, input_.name());
  glBufferSubData(GL_COPY_WRITE_BUFFER, 0, sizeof digit, digit.data());
  if (!clear) return;
  constexpr std::uint32_t nan = 0xffffffff;
  for (const Layer& layer : layers_) {
    glBindBuffer(GL_COPY_WRITE_BUFFER, layer.output.name());
    glClearBufferData(GL_COPY_WRITE_BUFFER, GL_R32UI, GL_RED_INTEGER, GL_UNSIGNED_INT, &nan);
  }
}

bool Network::advance_layer(std::chrono::nanoseconds budget) {
  if (!job_) job_.emplace(engine_.start(layers_[next_].convolution));
  const std::int64_t before = job_->report().slices;
  const bool done = job_->advance(budget);
  slices_ += job_->report().slices - before;
  if (!done) return false;
  job_.reset();
  ++next_;
  return true;
}

void Network::advance(std::chrono::nanoseconds budget) {
  while (!done() && advance_layer(budget)) {
  }
}

void Network::step() {
  for (const std::int64_t before = slices_; !done() && slices_ == before;) {
    advance_layer(std::chrono::nanoseconds(1));  // less than any slice takes
    glFinish();                                  // the next call enqueues nothing while the device still works
  }
}

std::array<float, 10> Network::scores() const {
  std::array<float, 10> scores{};
  glMemoryBarrier(GL_BUFFER_UPDATE_BARRIER_BIT);
  glBindBuffer(GL_COPY_READ_BUFFER, layers_.back().output.name());
  glGetBufferSubData(GL_COPY_READ_BUFFER, 0, sizeof scores, scores.data());
  return scores;
}

}  // namespace glgemm::tools
