// oneDNN as a peer, on the CPU: dnnl_sgemm for f32, and its primitive for products of the types that it has on this processor.
#include <oneapi/dnnl/dnnl_debug.h>
#include <oneapi/dnnl/dnnl.hpp>

#include <cstddef>
#include <cstring>
#include <optional>
#include <stdexcept>
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

  std::string why_not(const PeerProblem& p) const override {
    if (p.type == Type::f32) return {};
    const std::string of_type = "products of " + std::string(to_string(p.type));
    if (!data_type(p.type)) return "oneDNN has no " + of_type;
    if (p.alpha != 1.0 || p.beta != 0.0) return of_type + " are measured with alpha = 1 and beta = 0 alone in oneDNN";
    try {
      primitive(p);
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
    multiply_.reset();
    if (p_.type == Type::f32) return;
    const auto what = primitive(p_);
    multiply_ = dnnl::matmul(what);
    arguments_ = {{DNNL_ARG_SRC, dnnl::memory(what.src_desc(), engine_, a_.data())},
                  {DNNL_ARG_WEIGHTS, dnnl::memory(what.weights_desc(), engine_, b_.data())},
                  {DNNL_ARG_DST, dnnl::memory(what.dst_desc(), engine_, c_.data())}};
  }
  void set_c(const void* c) override { std::memcpy(c_.data(), c, c_.size()); }
  void get_c(void* c) override { std::memcpy(c, c_.data(), c_.size()); }

  void run() override {
    if (multiply_) {
      multiply_->execute(stream_, arguments_);
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

  dnnl::matmul::primitive_desc primitive(const PeerProblem& p) const {
    const auto strides = [](std::int64_t item, Op op, std::int64_t ld) {
      return op == Op::none ? dnnl::memory::dims{item, ld, 1} : dnnl::memory::dims{item, 1, ld};
    };
    const dnnl::memory::desc a({p.batch, p.m, p.k}, *data_type(p.type), strides(p.m * p.k, p.op_a, p.lda()));
    const dnnl::memory::desc b({p.batch, p.k, p.n}, *data_type(p.type), strides(p.k * p.n, p.op_b, p.ldb()));
    const dnnl::memory::desc c({p.batch, p.m, p.n}, accumulator(p.type) == Type::i32 ? DataType::s32 : DataType::f32,
                               strides(p.m * p.n, Op::none, p.n));
#if DNNL_VERSION_MAJOR >= 3
    return {engine_, a, b, c};
#else
    return {dnnl::matmul::desc(a, b, c), engine_};
#endif
  }

  PeerProblem p_;
  std::vector<std::byte> a_, b_, c_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  std::optional<dnnl::matmul> multiply_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

}  // namespace

std::unique_ptr<Peer> make_peer() {
  return std::make_unique<OneDnn>();
}

}  // namespace glgemm::tools
