// OpenBLAS as a peer.
#include <cblas.h>
#if defined(__linux__)
#include <unistd.h>
#endif

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <sstream>
#include <vector>

#include "peers/peer.hpp"

namespace glgemm::tools {
namespace {

class OpenBlas final : public Peer {
 public:
  std::string device() const override {
    // "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ... SkylakeX MAX_THREADS=64"
    std::istringstream in(openblas_get_config());
    std::string library, version;
    in >> library >> version;
    const int threads = openblas_get_num_threads();
    return library + " " + version + " for " + openblas_get_corename() + ", " + std::to_string(threads) +
           (threads == 1 ? " thread" : " threads");
  }

  std::string why_not(const PeerProblem& p) const override {
    if (p.type != Type::f32 && p.type != Type::f64 && !is_complex(p.type))
      return "OpenBLAS has no products of " + std::string(to_string(p.type));
    const std::int64_t largest = std::max({p.m, p.n, p.k});
    if (largest > std::numeric_limits<blasint>::max())
      return "a size of " + std::to_string(largest) + " exceeds OpenBLAS's largest integer, " +
             std::to_string(std::numeric_limits<blasint>::max());
    return {};
  }

  void load(const PeerProblem& problem, const void* a, const void* b) override {
    p_ = problem;
    a_ = copy(a, p_.a_bytes());
    b_ = copy(b, p_.b_bytes());
    c_.assign(static_cast<std::size_t>(p_.c_bytes()), std::byte());
  }
  void set_c(const void* c) override { std::memcpy(c_.data(), c, c_.size()); }
  void get_c(void* c) override { std::memcpy(c, c_.data(), c_.size()); }

  void run() override {
    const std::int64_t bytes = element_bytes(p_.type);
    for (std::int64_t item = 0; item < p_.batch; ++item)
      multiply(a_.data() + item * p_.m * p_.k * bytes, b_.data() + item * p_.k * p_.n * bytes,
               c_.data() + item * p_.m * p_.n * bytes);
  }

 private:
  static std::vector<std::byte> copy(const void* data, std::int64_t bytes) {
    const auto* const first = static_cast<const std::byte*>(data);
    return {first, first + bytes};
  }
  static CBLAS_TRANSPOSE transposition(Op op) {
    return op == Op::none ? CblasNoTrans : op == Op::transpose ? CblasTrans : CblasConjTrans;
  }

  void multiply(const std::byte* a, const std::byte* b, std::byte* c) const {
    const auto op_a = transposition(p_.op_a), op_b = transposition(p_.op_b);
    const auto m = static_cast<blasint>(p_.m), n = static_cast<blasint>(p_.n), k = static_cast<blasint>(p_.k);
    const auto lda = static_cast<blasint>(p_.lda()), ldb = static_cast<blasint>(p_.ldb());
    const void* const va = a;
    const void* const vb = b;
    void* const vc = c;
    if (p_.type == Type::f32) {
      cblas_sgemm(CblasRowMajor, op_a, op_b, m, n, k, static_cast<float>(p_.alpha.real()), static_cast<const float*>(va), lda,
                  static_cast<const float*>(vb), ldb, static_cast<float>(p_.beta.real()), static_cast<float*>(vc), n);
    } else if (p_.type == Type::f64) {
      cblas_dgemm(CblasRowMajor, op_a, op_b, m, n, k, p_.alpha.real(), static_cast<const double*>(va), lda,
                  static_cast<const double*>(vb), ldb, p_.beta.real(), static_cast<double*>(vc), n);
    } else if (p_.type == Type::c64) {
      const std::complex<float> alpha(p_.alpha), beta(p_.beta);
      cblas_cgemm(CblasRowMajor, op_a, op_b, m, n, k, &alpha, va, lda, vb, ldb, &beta, vc, n);
    } else {
      cblas_zgemm(CblasRowMajor, op_a, op_b, m, n, k, &p_.alpha, va, lda, vb, ldb, &p_.beta, vc, n);
    }
  }

  PeerProblem p_;
  std::vector<std::byte> a_, b_, c_;
};

/// OpenBLAS takes a processor that is newer than itself for a Prescott, several times as slow. It reads the variable that tells
/// it better when it is loaded, so this program then starts once more.
void use_this_processor() {
#if defined(__x86_64__) && defined(__linux__)
  if (std::getenv("OPENBLAS_CORETYPE") || std::strcmp(openblas_get_corename(), "Prescott") != 0) return;
  const bool avx512 =
      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (!avx512 && !(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))) return;
  setenv("OPENBLAS_CORETYPE", avx512 ? "SkylakeX" : "Haswell", 1);
  std::string name = "glgemm-peer-openblas";
  char* const arguments[] = {name.data(), nullptr};
  execv("/proc/self/exe", arguments);  // returns only where it fails, and then OpenBLAS does what it can
#endif
}

}  // namespace

std::unique_ptr<Peer> make_peer() {
  use_this_processor();
  return std::make_unique<OpenBlas>();
}

}  // namespace glgemm::tools
