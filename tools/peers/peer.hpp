// A peer: another library that multiplies matrices, in a program of its own (glgemm-peer-NAME), which `glgemm bench` talks to.
//
// A program of its own, since a library may not be a quiet guest: OpenBLAS's threads, for one, spin for a tenth of a second after
// each call and at the start of every process that links it.
//
// Some peers convolve too, see PeerProblem::convolution: A is then the input, B are the filters, and C is the output.
//
// Over a channel one line is answered by one line, "ok ..." or "error SENTENCE"; matrices follow a line as bytes:
//     (nothing)        ok DEVICE                     once, at the start
//     can PROBLEM      ok [REASON]                   why it cannot be done; nothing if it can
//     load PROBLEM     ok                            A, B and C0 follow the line; A and B go where the peer wants them
//     reset            ok                            C = C0
//     run              ok MILLISECONDS               one product, with nothing moved
//     fetch            ok                            C follows the answer
#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <glgemm/inspect.hpp>

namespace glgemm::tools {

/// C = alpha op(A) op(B) + beta C, row-major without gaps; the items of a batch follow each other. C is of the type of the sums.
struct PeerProblem {
  Type type = Type::f32;
  Op op_a = Op::none;
  Op op_b = Op::none;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t batch = 1;
  std::complex<double> alpha = 1;
  std::complex<double> beta = 0;
  /// Instead of a product: its sizes and layouts are meant, and neither its types nor that it may be transposed.
  std::optional<ConvolutionProblem> convolution{};

  std::int64_t lda() const { return op_a == Op::none ? k : m; }
  std::int64_t ldb() const { return op_b == Op::none ? n : k; }
  std::int64_t a_bytes() const {
    const std::int64_t elements =
        convolution ? convolution->batch * convolution->input_channels * volume(convolution->input) : batch * m * k;
    return elements * element_bytes(type);
  }
  std::int64_t b_bytes() const {
    const std::int64_t elements =
        convolution
            ? convolution->output_channels * (convolution->input_channels / convolution->groups) * volume(convolution->filter)
            : batch * k * n;
    return elements * element_bytes(type);
  }
  std::int64_t c_bytes() const {
    const std::int64_t elements =
        convolution ? convolution->batch * convolution->output_channels * volume(convolution->output) : batch * m * n;
    return elements * element_bytes(accumulator(type));
  }

 private:
  static std::int64_t volume(const ConvolutionProblem::Three& size) { return size[0] * size[1] * size[2]; }
};

/// f(x) for each number and layout that a line has of a convolution, in the line's order.
template <class Problem, class F>
void for_each_number(Problem& p, const F& f) {
  for (auto* x : {&p.batch, &p.input_channels, &p.output_channels, &p.groups}) f(*x);
  for (auto* three : {&p.input, &p.output, &p.filter, &p.stride, &p.dilation, &p.before})
    for (auto& x : *three) f(x);
  f(p.input_layout);
  f(p.output_layout);
  f(p.filter_layout);
}

/// What a peer's program implements. Every function throws an exception whose message is one sentence where it fails.
class Peer {
 public:
  Peer() = default;
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  virtual ~Peer() = default;
  /// The library, its version, and what it runs on.
  virtual std::string device() const = 0;
  /// Whether it has convolutions; the others never see one.
  virtual bool convolves() const { return false; }
  /// Why it cannot do this, as a sentence; empty if it can.
  virtual std::string why_not(const PeerProblem& problem) const = 0;
  /// A and B are gone after the call.
  virtual void load(const PeerProblem& problem, const void* a, const void* b) = 0;
  virtual void set_c(const void* c) = 0;
  /// Multiplies, and returns when C is there.
  virtual void run() = 0;
  virtual void get_c(void* c) = 0;
};

/// Each peer's program has one.  @throws std::exception  its device cannot be had; the message says what to install
std::unique_ptr<Peer> make_peer();

}  // namespace glgemm::tools
