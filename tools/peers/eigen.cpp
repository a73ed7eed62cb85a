// Eigen as a peer: templates, which this program compiles for the machine that builds it.
#include <Eigen/Core>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "peers/peer.hpp"

namespace glgemm::tools {
namespace {

template <class T>
using RowMajor = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using Factor = Eigen::Map<const RowMajor<T>>;

template <class T>
T scalar_of(std::complex<double> x) {
  if constexpr (Eigen::NumTraits<T>::IsComplex)
    return T(x);
  else
    return static_cast<T>(x.real());
}

/// f(op(matrix)): Eigen's expression of it.
template <class T, class F>
void with_op(Op op, const Factor<T>& matrix, const F& f) {
  if (op == Op::none) return f(matrix);
  if constexpr (Eigen::NumTraits<T>::IsComplex)
    if (op == Op::conjugate_transpose) return f(matrix.adjoint());
  f(matrix.transpose());
}

class EigenPeer final : public Peer {
 public:
  std::string device() const override {
    const int threads = Eigen::nbThreads();
    return "Eigen " + std::to_string(EIGEN_WORLD_VERSION) + "." + std::to_string(EIGEN_MAJOR_VERSION) + "." +
           std::to_string(EIGEN_MINOR_VERSION) + " for " + Eigen::SimdInstructionSetsInUse() + ", " + std::to_string(threads) +
           (threads == 1 ? " thread" : " threads");
  }

  std::string why_not(const PeerProblem& p) const override {
    if (p.type != Type::f32 && p.type != Type::f64 && !is_complex(p.type))
      return "products of " + std::string(to_string(p.type)) + " are not among those that are measured of Eigen";
    return {};
  }

  void load(const PeerProblem& problem, const void* a, const void* b) override {
    p_ = problem;
    a_.assign(static_cast<const std::byte*>(a), static_cast<const std::byte*>(a) + p_.a_bytes());
    b_.assign(static_cast<const std::byte*>(b), static_cast<const std::byte*>(b) + p_.b_bytes());
    c_.assign(static_cast<std::size_t>(p_.c_bytes()), std::byte());
  }
  void set_c(const void* c) override { std::memcpy(c_.data(), c, c_.size()); }
  void get_c(void* c) override { std::memcpy(c, c_.data(), c_.size()); }

  void run() override {
    if (p_.type == Type::f32)
      multiply<float>();
    else if (p_.type == Type::f64)
      multiply<double>();
    else if (p_.type == Type::c64)
      multiply<std::complex<float>>();
    else
      multiply<std::complex<double>>();
  }

 private:
  template <class T>
  void multiply() {
    const auto* const all_a = static_cast<const T*>(static_cast<const void*>(a_.data()));
    const auto* const all_b = static_cast<const T*>(static_cast<const void*>(b_.data()));
    auto* const all_c = static_cast<T*>(static_cast<void*>(c_.data()));
    const T alpha = scalar_of<T>(p_.alpha), beta = scalar_of<T>(p_.beta);
    for (std::int64_t item = 0; item < p_.batch; ++item) {
      const Factor<T> a(all_a + item * p_.m * p_.k, p_.m * p_.k / p_.lda(), p_.lda());
      const Factor<T> b(all_b + item * p_.k * p_.n, p_.k * p_.n / p_.ldb(), p_.ldb());
      Eigen::Map<RowMajor<T>> c(all_c + item * p_.m * p_.n, p_.m, p_.n);
      with_op(p_.op_a, a, [&](const auto& op_a) {
        with_op(p_.op_b, b, [&](const auto& op_b) {
          if (beta == T(0)) c.setZero();
          if (beta != T(0) && beta != T(1)) c *= beta;
          c.noalias() += alpha * (op_a * op_b);
        });
      });
    }
  }

  PeerProblem p_;
  std::vector<std::byte> a_, b_, c_;
};

}  // namespace

std::unique_ptr<Peer> make_peer() {
  return std::make_unique<EigenPeer>();
}

}  // namespace glgemm::tools
