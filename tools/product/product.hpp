// Products of host matrices, one or a batch: run on an engine, and checked.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include <glgemm/device_matrix.hpp>
#include <glgemm/engine.hpp>
#include <glgemm/inspect.hpp>
#include <glgemm/streaming.hpp>
#include <glgemm/verify.hpp>

#include "files/any_matrix.hpp"
#include "product/shapes.hpp"

namespace glgemm::tools {

/// Calls f(T(), C()) with the host types of A and B and of C. `c_type` is one of the types that C may be, where A and B are of
/// `type`, or where they differ and their products are summed in it.
template <class F>
constexpr decltype(auto) with_types(Type type, Type c_type, F&& f) {
  const bool c_is_sum = c_type == accumulator(type);
  return with_type(type, [&]<class T>(T x) -> decltype(auto) {
    if (!c_is_sum)
      return with_type(c_type, [&]<class C>(C c) -> decltype(auto) {
        constexpr Type narrow = type_of<C>();
        if constexpr (info(narrow).c == TypesOfC::either && (type_of<T>() == narrow || type_of<T>() == accumulator(narrow)))
          return f(x, c);
        else
          return f(x, accumulator_t<T>());
      });
    return f(x, accumulator_t<T>());
  });
}

/// A factor as the device gets it: elements of its own type, or a quantised one's arrays. Row-major without gaps.
struct StoredMatrix {
  ElementFormat format;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::vector<std::byte> bytes{};            ///< elements, or codes
  std::vector<std::byte> scales{}, zeros{};  ///< of formats whose scales lie apart
};

/// A factor on the host's side: `stored`, or without it `numbers`. Both must outlive it.
HostMatrix host_factor(const std::optional<StoredMatrix>& stored, const AnyMatrix& numbers);

void upload(Engine& engine, const AnyMatrix& from, const DeviceMatrix& to);
/// Waits for what writes it.
AnyMatrix download(Engine& engine, const DeviceMatrix& from);

/// A factor on the device.
class DeviceFactor {
 public:
  /// Of `stored`, or without it of `numbers`.
  DeviceFactor(Engine& engine, const std::optional<StoredMatrix>& stored, const AnyMatrix& numbers);

  BufferView view() const;

 private:
  DeviceMatrix matrix_;
  std::optional<DeviceMatrix> scales_, zeros_;
  std::int64_t columns_ = 0;
  Quantization quantization_{};
};

/// C = alpha op(A) op(B) + beta C0. The matrices of a batch stand below each other; one that repeats stands there once.
struct HostProduct {
  Op op_a = Op::none;
  Op op_b = Op::none;
  std::complex<double> alpha = 1;
  std::complex<double> beta = 0;
  AnyMatrix a;  ///< numbers of one type, as the check takes them
  AnyMatrix b;
  Type c_type = Type::f32;
  AnyMatrix c0;                               ///< of c_type; without elements where beta is 0
  Precision precision = Precision::standard;  ///< with which C was computed
  bool matrix_cores = false;                  ///< a vendor's library may have computed it
  std::int64_t batch = 1;
  bool quantized = false;  ///< as in Terms
  int digits = 0;          ///< likewise
  bool a_repeats = false;
  bool b_repeats = false;
  /// What the device gets in place of `a`, or of `b`, which have the same numbers for the check.
  std::optional<StoredMatrix> stored_a{}, stored_b{};

  std::int64_t a_rows() const { return a_repeats ? a.rows() : a.rows() / batch; }
  std::int64_t b_rows() const { return b_repeats ? b.rows() : b.rows() / batch; }
  std::int64_t m() const { return op_a == Op::none ? a_rows() : a.columns(); }
  std::int64_t k() const { return op_a == Op::none ? a.columns() : a_rows(); }
  std::int64_t n() const { return op_b == Op::none ? b.columns() : b_rows(); }
  Formats formats() const {
    return {stored_a ? stored_a->format : ElementFormat{a.type()}, stored_b ? stored_b->format : ElementFormat{b.type()}};
  }
  bool adds() const { return beta != 0.0; }

  /// What Engine::gemm gets, but for the names of the buffers.
  Gemm gemm() const;
  /// With the buffers of these, which have the matrices of a batch below each other.
  Gemm gemm(const BufferView& device_a, const BufferView& device_b, const BufferView& device_c) const;
};

/// Uploads, multiplies (by `multiply`, or by Engine::gemm) and downloads; the report's total time is of all three.
/// @throws as Engine::gemm
AnyMatrix run(Engine& engine, const HostProduct& p, const PlanOptions& options, Report& report,
              const std::function<void(const Gemm&)>& multiply = {});

/// Calls f(a, b, c, terms) for each item of the batch, with op(A) and op(B) still to be applied. T and C are the types of `a` and
/// of `c`.
template <class T, class C, class F>
void for_each_item(const HostProduct& p, const AnyMatrix& c, const F& f) {
  Terms<T, C> terms;
  terms.op_a = p.op_a;
  terms.op_b = p.op_b;
  terms.alpha = scalar_as<accumulator_t<T>>(p.alpha);
  terms.beta = scalar_as<accumulator_t<T>>(p.beta);
  terms.precision = p.precision;
  terms.matrix_cores = p.matrix_cores;
  terms.quantized = p.quantized;
  terms.digits = p.digits;
  if (p.batch == 1) {
    if (p.adds()) terms.c0 = &p.c0.as<C>();
    f(p.a.as<T>(), p.b.as<T>(), c.as<C>(), terms);
    return;
  }
  AnyMatrix a, b, c0;
  for (std::int64_t z = 0; z < p.batch; ++z) {
    if (z == 0 || !p.a_repeats) a = rows_of(p.a, z * p.a_rows(), p.a_rows());
    if (z == 0 || !p.b_repeats) b = rows_of(p.b, z * p.b_rows(), p.b_rows());
    if (p.adds()) {
      c0 = rows_of(p.c0, z * p.m(), p.m());
      terms.c0 = &c0.as<C>();
    }
    f(a.as<T>(), b.as<T>(), rows_of(c, z * p.m(), p.m()).as<C>(), terms);
  }
}

/// What was found of one product, or of the worst one of a batch.
struct ProductCheck : Check {
  std::int64_t batch = 1;  ///< how many products there are
  std::int64_t item = 0;   ///< whose place, worst and median these are
};

/// check_full, or check_probe, of every item. The result is the worst item's, with the counts of all; a probe compares
/// some 4096 samples of all items together, but at least 16 of each.
ProductCheck check(const HostProduct& p, const AnyMatrix& c, bool full);

/// glgemm::check_convolution of numbers in one type, with an output of its sums' type, or of one that these may be written as.
Check check_convolution(const Convolution& convolution, const AnyMatrix& input, const AnyMatrix& filters, const AnyMatrix& output,
                        std::int64_t samples, Precision precision = Precision::standard);

/// glgemm::error_ratios of all items, below each other.
Matrix<float> error_ratios(const HostProduct& p, const AnyMatrix& c);

}  // namespace glgemm::tools
