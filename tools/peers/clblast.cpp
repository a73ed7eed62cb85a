// CLBlast as a peer, on an OpenCL device: the first one, or the one that GLGEMM_OPENCL_DEVICE names by its index or a part of its
// name.
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "peers/peer.hpp"

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <clblast.h>

namespace glgemm::tools {
namespace {

void require(cl_int status, const std::string& what) {
  if (status != CL_SUCCESS) throw std::runtime_error(what + ": OpenCL error " + std::to_string(status));
}

std::vector<cl_device_id> all_devices() {
  cl_uint count = 0;
  if (clGetPlatformIDs(0, nullptr, &count) != CL_SUCCESS) return {};
  std::vector<cl_platform_id> platforms(count);
  if (count > 0) require(clGetPlatformIDs(count, platforms.data(), nullptr), "clGetPlatformIDs");
  std::vector<cl_device_id> devices;
  for (const cl_platform_id platform : platforms) {
    if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS || count == 0) continue;
    const std::size_t before = devices.size();
    devices.resize(before + count);
    require(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, devices.data() + before, nullptr), "clGetDeviceIDs");
  }
  return devices;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

std::string device_text(cl_device_id device, cl_device_info what) {
  std::size_t size = 0;
  require(clGetDeviceInfo(device, what, 0, nullptr, &size), "clGetDeviceInfo");
  std::string text(size, '\0');
  require(clGetDeviceInfo(device, what, size, text.data(), nullptr), "clGetDeviceInfo");
  while (!text.empty() && (text.back() == '\0' || text.back() == ' ')) text.pop_back();
  return text;
}

cl_device_id choose_device() {
  const std::vector<cl_device_id> devices = all_devices();
  if (devices.empty()) throw std::runtime_error("there is no OpenCL device; on a CPU the package pocl-opencl-icd gives one");
  const char* const variable = std::getenv("GLGEMM_OPENCL_DEVICE");
  const std::string wanted = variable ? variable : "";
  if (wanted.empty()) return devices.front();
  const bool index = std::all_of(wanted.begin(), wanted.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  std::string names;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const std::string name = device_text(devices[i], CL_DEVICE_NAME);
    if (index ? std::to_string(i) == wanted : lower(name).find(lower(wanted)) != std::string::npos) return devices[i];
    names += (i == 0 ? "" : ", ") + std::to_string(i) + " " + name;
  }
  throw std::runtime_error("no OpenCL device is '" + wanted + "'; there are: " + names);
}

std::string why_no_doubles(cl_device_id device) {
  const bool there = device_text(device, CL_DEVICE_EXTENSIONS).find("cl_khr_fp64") != std::string::npos;
  return there ? "" : "this OpenCL device has no doubles";
}

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
