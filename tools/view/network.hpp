// The network of glgemm-view: two convolutions and a dense layer, which run as jobs on buffers of the application.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include <glgemm/convolution.hpp>
#include <glgemm/glgemm.hpp>
#include <glgemm/job.hpp>
#include <glgemm/model_file.hpp>

#include "bench/current_gl.hpp"
#include "view/digit_scene.hpp"

namespace glgemm::tools {

/// The weights that the program holds: tests/data/digits.safetensors.
ModelFile built_in_weights();

/// In the context that is current.
class Network {
 public:
  /// Compiles what it needs.
  /// @throws std::invalid_argument  the file has not these tensors; the message has the sizes
  Network(Engine& engine, const ModelFile& weights);

  /// Begins anew, with this digit. With `clear` the layers' outputs are NaN, which has a colour of its own, until they are
  /// computed.
  void begin(const Digit& digit, bool clear);
  /// Gives each layer that comes next about this time of the device, up to the first that needs more. Enqueues.
  void advance(std::chrono::nanoseconds budget);
  /// Goes on by a slice of a layer's product. Waits.
  void step();
  bool done() const { return next_ == layers_.size(); }
  std::int64_t slices() const { return slices_; }  ///< since it began

  /// The last layer's output, once all is done. Waits.
  std::array<float, 10> scores() const;
  const GlBuffer& input() const { return input_; }
  const GlBuffer& output(std::size_t layer) const { return layers_[layer].output; }
  /// The weights' example of a digit.
  const Digit& example(int digit) const { return examples_[static_cast<std::size_t>(digit)]; }

 private:
  struct Layer {
    Layer(const ModelFile& weights, const std::string& name, const TensorView& input, Convolution geometry);
    GlBuffer filters, bias, output;
    Convolution convolution;
  };

  /// Goes on with the layer that comes next; returns whether that is done.
  bool advance_layer(std::chrono::nanoseconds budget);

  Engine& engine_;
  GlBuffer input_;
  std::deque<Layer> layers_;
  std::size_t next_ = 0;
  std::optional<Job> job_;  ///< of layer next_, if it has begun
  std::int64_t slices_ = 0;
  std::array<Digit, 10> examples_{};
};

}  // namespace glgemm::tools
