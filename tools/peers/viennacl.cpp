// ViennaCL as a peer, on an OpenCL device: templates, whose kernels it makes for the device.
#define VIENNACL_WITH_OPENCL
#include <algorithm>
#include <deque>
#include <string>
#include <variant>
#include <vector>

#include "peers/opencl.hpp"
#include "peers/peer.hpp"

#include <viennacl/linalg/prod.hpp>
#include <viennacl/matrix.hpp>

namespace glgemm::tools {
namespace {

template <class T>
using OnDevice = viennacl::matrix<T, viennacl::row_major>;

/// Its rows are padded with zeros, as ViennaCL's kernels expect.
template <class T>
void put(const T* from, OnDevice<T>& matrix) {
  std::vector<T> padded(matrix.internal_size());
  for (std::size_t row = 0; row < matrix.size1(); ++row, from += matrix.size2())
    std::copy_n(from, matrix.size2(), padded.data() + row * matrix.internal_size2());
  viennacl::fast_copy(padded.data(), padded.data() + padded.size(), matrix);
}

template <class T>
struct Product {
  OnDevice<T> a, b, c;

  explicit Product(const PeerProblem& p)
      : a(size(p.m * p.k / p.lda()), size(p.lda())), b(size(p.k * p.n / p.ldb()), size(p.ldb())), c(size(p.m), size(p.n)) {}
  static std::size_t size(std::int64_t x) { return static_cast<std::size_t>(x); }

  void get(T* to) const {
    std::vector<T> padded(c.internal_size());
    viennacl::fast_copy(c, padded.data());
    for (std::size_t row = 0; row < c.size1(); ++row, to += c.size2())
      std::copy_n(padded.data() + row * c.internal_size2(), c.size2(), to);
  }

  void multiply(const PeerProblem& p) {
    using viennacl::linalg::prod_impl;
    const T alpha = static_cast<T>(p.alpha.real()), beta = static_cast<T>(p.beta.real());
    const viennacl::matrix_base<T>&x = a, &y = b;
    viennacl::matrix_base<T>& z = c;
    if (p.op_a == Op::none)
      p.op_b == Op::none ? prod_impl(x, y, z, alpha, beta) : prod_impl(x, trans(y), z, alpha, beta);
    else
      p.op_b == Op::none ? prod_impl(trans(x), y, z, alpha, beta) : prod_impl(trans(x), trans(y), z, alpha, beta);
  }
};

class ViennaCl final : public Peer {
 public:
  ViennaCl() : device_(choose_device()) { viennacl::ocl::setup_context(0, viennacl::ocl::device(device_)); }

  std::string device() const override {
    return "ViennaCL on " + device_text(device_, CL_DEVICE_NAME) + ", " + device_text(device_, CL_DEVICE_VERSION);
  }

  std::string why_not(const PeerProblem& p) const override {
    if (p.type != Type::f32 && p.type != Type::f64) return "ViennaCL has no products of " + std::string(to_string(p.type));
    return p.type == Type::f64 ? why_no_doubles(device_) : "";
  }

  void load(const PeerProblem& problem, const void* a, const void* b) override {
    p_ = problem;
    if (p_.type == Type::f32)
      products_.emplace<Products<float>>();
    else
      products_.emplace<Products<double>>();
    with_products([&]<class T>(Products<T>& products) {
      for (std::int64_t i = 0; i < p_.batch; ++i) {
        Product<T>& product = products.emplace_back(p_);
        put(static_cast<const T*>(a) + i * p_.m * p_.k, product.a);
        put(static_cast<const T*>(b) + i * p_.k * p_.n, product.b);
      }
    });
  }
  void set_c(const void* c) override {
    with_products([&]<class T>(Products<T>& products) {
      // It reads C where beta is 0 too, and NaN times 0 is NaN.
      const std::vector<T> zeros(p_.beta == 0.0 ? static_cast<std::size_t>(p_.m * p_.n) : 0);
      const T* from = static_cast<const T*>(c);
      for (Product<T>& product : products) {
        put(zeros.empty() ? from : zeros.data(), product.c);
        from += p_.m * p_.n;
      }
    });
  }
  void get_c(void* c) override {
    with_products([&]<class T>(Products<T>& products) {
      T* to = static_cast<T*>(c);
      for (const Product<T>& product : products) {
        product.get(to);
        to += p_.m * p_.n;
      }
    });
  }
  void run() override {
    with_products([&](auto& products) {
      for (auto& product : products) product.multiply(p_);
    });
    viennacl::backend::finish();
  }

 private:
  template <class T>
  using Products = std::deque<Product<T>>;  ///< a batch's

  template <class F>
  void with_products(const F& f) {
    if (auto* const floats = std::get_if<Products<float>>(&products_))
      f(*floats);
    else
      f(std::get<Products<double>>(products_));
  }

  cl_device_id device_;
  PeerProblem p_;
  std::variant<Products<float>, Products<double>> products_;
};

}  // namespace

std::unique_ptr<Peer> make_peer() {
  return std::make_unique<ViennaCl>();
}

}  // namespace glgemm::tools
