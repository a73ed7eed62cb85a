// CLBlast as a peer, on an OpenCL device.
#include <stdexcept>
#include <string>

#include "peers/opencl.hpp"
#include "peers/peer.hpp"

#include <clblast.h>

namespace glgemm::tools {
namespace {

class ClBlast final : public Peer {
 public:
  ClBlast() : device_(choose_device()) {
    cl_int status = CL_SUCCESS;
    context_ = clCreateContext(nullptr, 1, &device_, nullptr, nullptr, &status);
    require(status, "clCreateContext");
    queue_ = clCreateCommandQueue(context_, device_, 0, &status);
    require(status, "clCreateCommandQueue");
  }
  ~ClBlast() override {
    release();
    if (queue_) clReleaseCommandQueue(queue_);
    if (context_) clReleaseContext(context_);
  }

  std::string device() const override {
    return "CLBlast on " + device_text(device_, CL_DEVICE_NAME) + ", " + device_text(device_, CL_DEVICE_VERSION);
  }

  std::string why_not(const PeerProblem& p) const override {
    if (p.type != Type::f32 && p.type != Type::f64 && !is_complex(p.type))
      return "CLBlast has no products of " + std::string(to_string(p.type));
    return needs_f64(p.type) ? why_no_doubles(device_) : "";
  }

  void load(const PeerProblem& problem, const void* a, const void* b) override {
    release();
    p_ = problem;
    a_ = buffer(p_.a_bytes());
    b_ = buffer(p_.b_bytes());
    c_ = buffer(p_.c_bytes());
    write(a_, a, p_.a_bytes());
    write(b_, b, p_.b_bytes());
  }
  void set_c(const void* c) override { write(c_, c, p_.c_bytes()); }
  void get_c(void* c) override {
    require(clEnqueueReadBuffer(queue_, c_, CL_TRUE, 0, static_cast<std::size_t>(p_.c_bytes()), c, 0, nullptr, nullptr),
            "clEnqueueReadBuffer");
  }

  void run() override {
    if (p_.type == Type::f32)
      multiply(static_cast<float>(p_.alpha.real()), static_cast<float>(p_.beta.real()));
    else if (p_.type == Type::f64)
      multiply(p_.alpha.real(), p_.beta.real());
    else if (p_.type == Type::c64)
      multiply(std::complex<float>(p_.alpha), std::complex<float>(p_.beta));
    else
      multiply(p_.alpha, p_.beta);
    require(clFinish(queue_), "clFinish");
  }

 private:
  cl_mem buffer(std::int64_t bytes) const {
    cl_int status = CL_SUCCESS;
    const cl_mem result = clCreateBuffer(context_, CL_MEM_READ_WRITE, static_cast<std::size_t>(bytes), nullptr, &status);
    require(status, "a buffer of " + std::to_string(bytes) + " bytes");
    return result;
  }
  void write(cl_mem to, const void* data, std::int64_t bytes) const {
    require(clEnqueueWriteBuffer(queue_, to, CL_TRUE, 0, static_cast<std::size_t>(bytes), data, 0, nullptr, nullptr),
            "clEnqueueWriteBuffer");
  }
  void release() {
    for (cl_mem* const x : {&a_, &b_, &c_}) {
      if (*x) clReleaseMemObject(*x);
      *x = nullptr;
    }
  }
  static clblast::Transpose transposition(Op op) {
    return op == Op::none        ? clblast::Transpose::kNo
           : op == Op::transpose ? clblast::Transpose::kYes
                                 : clblast::Transpose::kConjugate;
  }

  template <class T>
  void multiply(T alpha, T beta) {
    const auto size = [](std::int64_t x) { return static_cast<std::size_t>(x); };
    const auto op_a = transposition(p_.op_a), op_b = transposition(p_.op_b);
    const auto m = size(p_.m), n = size(p_.n), k = size(p_.k), lda = size(p_.lda()), ldb = size(p_.ldb());
    const clblast::StatusCode status =
        p_.batch == 1 ? clblast::Gemm<T>(clblast::Layout::kRowMajor, op_a, op_b, m, n, k, alpha, a_, 0, lda, b_, 0, ldb, beta, c_,
                                         0, n, &queue_)
                      : clblast::GemmStridedBatched<T>(clblast::Layout::kRowMajor, op_a, op_b, m, n, k, alpha, a_, 0, lda, m * k,
                                                       b_, 0, ldb, k * n, beta, c_, 0, n, m * n, size(p_.batch), &queue_);
    if (status != clblast::StatusCode::kSuccess)
      throw std::runtime_error("CLBlast's status is " + std::to_string(static_cast<int>(status)));
  }

  cl_device_id device_ = nullptr;
  cl_context context_ = nullptr;
  cl_command_queue queue_ = nullptr;
  PeerProblem p_;
  cl_mem a_ = nullptr, b_ = nullptr, c_ = nullptr;
};

}  // namespace

std::unique_ptr<Peer> make_peer() {
  return std::make_unique<ClBlast>();
}

}  // namespace glgemm::tools
