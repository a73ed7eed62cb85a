// oneDNN as a peer, on the CPU: dnnl_sgemm for f32, its primitive for products of the other types that it has on this processor,
// and its convolution in the layouts that it finds best, into which the input and the filters are brought before it is timed.
#include <oneapi/dnnl/dnnl_debug.h>
#include <oneapi/dnnl/dnnl.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <unordered_map>
#include <vector>

#include "peers/peer.hpp"

namespace glgemm::tools {
namespace {

using DataType = dnnl::memory::data_type;

class OneDnn final : public Peer {
 public:
  std::string device() const override {
    const dnnl_version_t& version = *dnnl_version();
    return "oneDNN " + std::to_string(version.major) + "." + std::to_string(version.minor) + "." + std::to_string(version.patch) +
           " for " + dnnl_cpu_isa2str(dnnl_get_effective_cpu_isa());
  }

  bool convolves() const override { return true; }

  std::string why_not(const PeerProblem& p) const override {
    if (p.type == Type::f32 && !p.convolution) return {};
    const std::string of_type = (p.convolution ? "such convolutions of " : "products of ") + std::string(to_string(p.type));
    if (!data_type(p.type)) return "oneDNN has no " + of_type;
    if (p.alpha != 1.0 || p.beta != 0.0) return of_type + " are measured with alpha = 1 and beta = 0 alone in oneDNN";
    try {
      if (p.convolution)
        convolution(p);
      else
        product(p);
    } catch (const dnnl::error& error) {
      return "oneDNN has no " + of_type + " on this processor (" + error.message + ")";
    }
    return {};
  }

  void load(const PeerProblem& problem, const void* a, const void* b) override {
    p_ = problem;
    a_.assign(static_cast<const std::byte*>(a), static_cast<const std::byte*>(a) + p_.a_bytes());
    b_.assign(static_cast<const std::byte*>(b), static_cast<const std::byte*>(b) + p_.b_bytes());
    c_.assign(static_cast<std::size_t>(p_.c_bytes()), std::byte());
    primitive_.reset();
    if (p_.convolution) {
      const auto what = convolution(p_);
      const Descriptors given = descriptors(p_, true);
      const dnnl::memory input(what.src_desc(), engine_), filters(what.weights_desc(), engine_);
      output_ = dnnl::memory(what.dst_desc(), engine_);
      reorder(dnnl::memory(given.input, engine_, a_.data()), input);
      reorder(dnnl::memory(given.filters, engine_, b_.data()), filters);
      primitive_ = dnnl::convolution_forward(what);
      arguments_ = {{DNNL_ARG_SRC, input}, {DNNL_ARG_WEIGHTS, filters}, {DNNL_ARG_DST, output_}};
    } else if (p_.type != Type::f32) {
      const auto what = product(p_);
      primitive_ = dnnl::matmul(what);
      arguments_ = {{DNNL_ARG_SRC, dnnl::memory(what.src_desc(), engine_, a_.data())},
                    {DNNL_ARG_WEIGHTS, dnnl::memory(what.weights_desc(), engine_, b_.data())},
                    {DNNL_ARG_DST, dnnl::memory(what.dst_desc(), engine_, c_.data())}};
    }
  }
  void set_c(const void* c) override { std::memcpy(c_.data(), c, c_.size()); }
  void get_c(void* c) override {
    if (p_.convolution) reorder(output_, dnnl::memory(descriptors(p_, true).output, engine_, c_.data()));
    std::memcpy(c, c_.data(), c_.size());
  }

  void run() override {
    if (primitive_) {
      primitive_->execute(stream_, arguments_);
      stream_.wait();
      return;
    }
    const auto transposition = [](Op op) { return op == Op::none ? 'N' : 'T'; };
    for (std::int64_t item = 0; item < p_.batch; ++item) {
      const dnnl_status_t status =
          dnnl_sgemm(transposition(p_.op_a), transposition(p_.op_b), p_.m, p_.n, p_.k, static_cast<float>(p_.alpha.real()),
                     floats(a_) + item * p_.m * p_.k, p_.lda(), floats(b_) + item * p_.k * p_.n, p_.ldb(),
                     static_cast<float>(p_.beta.real()), floats(c_) + item * p_.m * p_.n, p_.n);
      if (status != dnnl_success) throw std::runtime_error(std::string("dnnl_sgemm's status is ") + dnnl_status2str(status));
    }
  }

 private:
  static float* floats(std::vector<std::byte>& bytes) { return static_cast<float*>(static_cast<void*>(bytes.data())); }

  static std::optional<DataType> data_type(Type type) {
    switch (type) {
      case Type::f32:
        return DataType::f32;
      case Type::f16:
        return DataType::f16;
      case Type::bf16:
        return DataType::bf16;
      case Type::i8:
        return DataType::s8;
      case Type::u8:
        return DataType::u8;
      default:
        return {};
    }
  }
  static DataType type_of_sums(Type type) { return accumulator(type) == Type::i32 ? DataType::s32 : DataType::f32; }

  dnnl::matmul::primitive_desc product(const PeerProblem& p) const {
    const auto strides = [](std::int64_t item, Op op, std::int64_t ld) {
      return op == Op::none ? dnnl::memory::dims{item, ld, 1} : dnnl::memory::dims{item, 1, ld};
    };
    const dnnl::memory::desc a({p.batch, p.m, p.k}, *data_type(p.type), strides(p.m * p.k, p.op_a, p.lda()));
    const dnnl::memory::desc b({p.batch, p.k, p.n}, *data_type(p.type), strides(p.k * p.n, p.op_b, p.ldb()));
    const dnnl::memory::desc c({p.batch, p.m, p.n}, type_of_sums(p.type), strides(p.m * p.n, Op::none, p.n));
#if DNNL_VERSION_MAJOR >= 3
    return {engine_, a, b, c};
#else
    return {dnnl::matmul::desc(a, b, c), engine_};
#endif
  }

  using Dims = dnnl::memory::dims;
  using Order = std::vector<std::size_t>;
  struct Descriptors {
    dnnl::memory::desc input, filters, output;
  };

  /// Elements of these sizes without gaps, whose dimensions lie in this order, outermost first, if they lie in order, else as is
  /// best. What is left out has one element, and is named with the last first.
  static dnnl::memory::desc elements(Dims sizes, const Order& order, const Order& left_out, DataType type, bool in_order) {
    Dims strides(sizes.size());
    std::int64_t stride = 1;
    for (auto d = order.rbegin(); d != order.rend(); ++d) {
      strides[*d] = stride;
      stride *= sizes[*d];
    }
    for (const std::size_t d : left_out) {
      sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(d));
      strides.erase(strides.begin() + static_cast<std::ptrdiff_t>(d));
    }
    return in_order ? dnnl::memory::desc(sizes, type, strides) : dnnl::memory::desc(sizes, type, dnnl::memory::format_tag::any);
  }

  static bool is_flat(const ConvolutionProblem& x) {
    return x.input[0] == 1 && x.filter[0] == 1 && x.output[0] == 1;
  }

  /// How the elements lie: as they are given, or as oneDNN likes them.
  static Descriptors descriptors(const PeerProblem& p, bool given) {
    const ConvolutionProblem& x = *p.convolution;
    const bool flat = is_flat(x);
    const DataType type = *data_type(p.type);
    const auto images = [&](std::int64_t channels, const ConvolutionProblem::Three& size, TensorLayout layout, DataType of) {
      const Order order = layout == TensorLayout::nchw ? Order{0, 1, 2, 3, 4} : Order{0, 2, 3, 4, 1};
      return elements({x.batch, channels, size[0], size[1], size[2]}, order, flat ? Order{2} : Order{}, of, given);
    };
    // Groups, output channels, input channels, and the filter's size.
    const Dims sizes{x.groups, x.output_channels / x.groups, x.input_channels / x.groups, x.filter[0], x.filter[1], x.filter[2]};
    const Order order = x.filter_layout == FilterLayout::oihw   ? Order{0, 1, 2, 3, 4, 5}
                        : x.filter_layout == FilterLayout::ohwi ? Order{0, 1, 3, 4, 5, 2}
                                                                : Order{3, 4, 5, 2, 0, 1};
    Order left_out;
    if (flat) left_out.push_back(3);
    if (x.groups == 1) left_out.push_back(0);
    return {images(x.input_channels, x.input, x.input_layout, type), elements(sizes, order, left_out, type, given),
            images(x.output_channels, x.output, x.output_layout, type_of_sums(p.type))};
  }

  dnnl::convolution_forward::primitive_desc convolution(const PeerProblem& p) const {
    const ConvolutionProblem& x = *p.convolution;
    Dims stride, dilation, before, after;
    for (std::size_t d = is_flat(x) ? 1 : 0; d < 3; ++d) {
      stride.push_back(x.stride[d]);
      dilation.push_back(x.dilation[d] - 1);
      before.push_back(x.before[d]);
      const std::int64_t reach = (x.output[d] - 1) * x.stride[d] + (x.filter[d] - 1) * x.dilation[d] + 1;
      after.push_back(std::max<std::int64_t>(0, reach - x.input[d] - x.before[d]));
    }
    const auto [input, filters, output] = descriptors(p, false);
    constexpr auto kind = dnnl::prop_kind::forward_inference;
    constexpr auto algorithm = dnnl::algorithm::convolution_direct;
#if DNNL_VERSION_MAJOR >= 3
    return {engine_, kind, algorithm, input, filters, output, stride, dilation, before, after};
#else
    return {dnnl::convolution_forward::desc(kind, algorithm, input, filters, output, stride, dilation, before, after), engine_};
#endif
  }

  void reorder(dnnl::memory from, dnnl::memory to) {
    dnnl::reorder(from, to).execute(stream_, from, to);
    stream_.wait();
  }

  PeerProblem p_;
  std::vector<std::byte> a_, b_, c_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  std::optional<dnnl::primitive> primitive_;
  dnnl::memory output_;  ///< of a convolution, as oneDNN likes it
  std::unordered_map<int, dnnl::memory> arguments_;
};

}  // namespace

std::unique_ptr<Peer> make_peer() {
  return std::make_unique<OneDnn>();
}

}  // namespace glgemm::tools
