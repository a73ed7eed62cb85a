// Networks of fully connected layers, drawn, in buffers and on the host.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <glgemm/engine.hpp>
#include <glgemm/verify.hpp>

#include "support/functions.hpp"
#include "support/random.hpp"

namespace glgemm::test {

/// What a network is to be; the rest is drawn.
struct MlpWish {
  std::vector<std::int64_t> widths{};  ///< of the input and of each layer's output; drawn if empty
  std::int64_t samples = -1;           ///< drawn if negative
  std::optional<Activation> activation{};
  /// Integers that every order of summation gives, which must be equal: an error shows however many layers follow. A network
  /// without widths may be of those too.
  bool exact = false;
  bool plain = false;  ///< f32, row-major, weights and biases in one buffer each, all aligned
};

/// A network in buffers. What lies between and around its elements is NaN, or of the output bytes that show when they are
/// changed.
class MlpCase {
 public:
  MlpCase(const MlpWish& wish, std::uint64_t seed);

  const Mlp& mlp() const { return mlp_; }
  std::vector<MlpLayer>& layers() { return layers_; }
  /// Writes the output's buffer anew.
  void reset();
  std::vector<std::byte> output() const { return buffers_.back().read(); }
  /// What is wrong with the output: an element, or a byte around it. Empty if nothing is.
  std::string fault() const;
  std::string text() const;

 private:
  /// A matrix of numbers in `bytes`, from a drawn offset on.
  BufferView place(const Matrix<float>& numbers, Type type, Layout layout, std::vector<std::byte>& bytes, bool plain);

  Random random_;
  std::uint64_t seed_;
  bool exact_;
  std::vector<HostLayer> host_;
  Matrix<float> input_{0, 0};
  std::vector<std::byte> before_;  ///< the output's buffer
  std::vector<Buffer> buffers_;    ///< the output's is the last
  std::vector<MlpLayer> layers_;
  Mlp mlp_;
};

/// Any network, or one as wished, run by run() or by a job. What is wrong, with what it takes to run it again; empty if nothing
/// is.
std::string fault_of_mlp(Engine& engine, std::uint64_t seed, const MlpWish& wish = {}, const PlanOptions& options = {},
                         bool by_job = false);

}  // namespace glgemm::test
