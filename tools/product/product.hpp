// Products of host matrices, one or a batch: run on an engine, and checked.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <glgemm/device_matrix.hpp>
#include <glgemm/engine.hpp>
#include <glgemm/inspect.hpp>
#include <glgemm/streaming.hpp>
#include <glgemm/verify.hpp>

#include "product/shapes.hpp"

namespace glgemm::tools {

/// A factor as the device gets it: elements of its own type, or a quantised one's arrays. Row-major without gaps.
struct StoredMatrix {
  ElementFormat format;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::vector<std::byte> bytes{};            ///< elements, or codes
  std::vector<std::byte> scales{}, zeros{};  ///< of formats whose scales lie apart
};

/// A factor on the host's side: `stored`, or without it `numbers`. Both must outlive it.
template <class T>
HostMatrix host_factor(const std::optional<StoredMatrix>& stored, const Matrix<T>& numbers) {
  if (!stored) return host_matrix(numbers);
  const auto& [format, rows, columns, bytes, scales, zeros] = *stored;
  return format.quantization ? host_matrix(QuantizedMatrix{format.quantization, rows, columns, bytes, scales, zeros})
                             : host_matrix(bytes.data(), rows, columns, format.type);
}

/// A factor on the device.
class DeviceFactor {
 public:
  template <class T>
  explicit DeviceFactor(Engine& engine, const Matrix<T>& numbers) : matrix_(engine, numbers), columns_(numbers.columns()) {}
  DeviceFactor(Engine& engine, const StoredMatrix& stored)
      : matrix_(engine, stored.rows, stored.format.quantization ? storage_bytes(stored.format, stored.columns) : stored.columns,
                stored.format.quantization ? Type::i8 : stored.format.type),
        scales_(copy(engine, stored.scales)),
        zeros_(copy(engine, stored.zeros)),
        columns_(stored.columns),
        quantization_(stored.format.quantization) {
    engine.upload(stored.bytes.data(), 0, matrix_.view());
  }
  /// `stored`, or without it `numbers`.
  template <class T>
  DeviceFactor(Engine& engine, const std::optional<StoredMatrix>& stored, const Matrix<T>& numbers)
      : DeviceFactor(stored ? DeviceFactor(engine, *stored) : DeviceFactor(engine, numbers)) {}

  BufferView view() const {
    BufferView result = matrix_.view();
    if (!quantization_) return result;
    result.columns = columns_;
    result.ld = 0;
    result.type = Type::f32;
    result.quantization = quantization_;
    if (scales_) result.scales.buffer = scales_->view().buffer;
    if (zeros_) result.zeros.buffer = zeros_->view().buffer;
    return result;
  }

 private:
  static std::optional<DeviceMatrix> copy(Engine& engine, const std::vector<std::byte>& bytes) {
    if (bytes.empty()) return std::nullopt;
    DeviceMatrix result(engine, 1, static_cast<std::int64_t>(bytes.size()), Type::i8);
    engine.upload(bytes.data(), 0, result.view());
    return result;
  }

  DeviceMatrix matrix_;
  std::optional<DeviceMatrix> scales_, zeros_;
  std::int64_t columns_ = 0;
  Quantization quantization_{};
};

/// C = alpha op(A) op(B) + beta C0. The matrices of a batch stand below each other; one that repeats stands there once.
template <class T, class C = accumulator_t<T>>
struct HostProduct {
  using Accumulator = accumulator_t<T>;
  Op op_a = Op::none;
  Op op_b = Op::none;
  Accumulator alpha = Accumulator(1);
  Accumulator beta = Accumulator(0);
  Matrix<T> a;
  Matrix<T> b;
  Matrix<C> c0;                               ///< without elements where beta is 0
  Precision precision = Precision::standard;  ///< with which C was computed
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
  std::int64_t inner_b() const { return op_b == Op::none ? b_rows() : b.columns(); }
  std::int64_t n() const { return op_b == Op::none ? b.columns() : b_rows(); }
  ElementFormat format_a() const { return stored_a ? stored_a->format : ElementFormat{type_of<T>()}; }
  ElementFormat format_b() const { return stored_b ? stored_b->format : ElementFormat{type_of<T>()}; }

  /// What Engine::gemm gets, but for the names of the buffers.
  Gemm gemm() const {
    const auto view = [](std::int64_t rows, std::int64_t columns, const ElementFormat& format) {
      BufferView result;
      result.rows = rows;
      result.columns = columns;
      result.type = format.type;
      result.quantization = format.quantization;
      return result;
    };
    Gemm product;
    product.op_a = op_a;
    product.op_b = op_b;
    product.alpha = alpha;
    product.beta = beta;
    product.a = view(a_rows(), a.columns(), format_a());
    product.b = view(b_rows(), b.columns(), format_b());
    product.c = view(m(), n(), {type_of<C>()});
    product.batch.count = batch;
    product.batch.stride_a = a_repeats ? 0 : a_rows() * row_elements(format_a(), a.columns());
    product.batch.stride_b = b_repeats ? 0 : b_rows() * row_elements(format_b(), b.columns());
    product.batch.stride_c = m() * n();
    return product;
  }
  /// With the buffers of these, which have the matrices of a batch below each other.
  Gemm gemm(const BufferView& device_a, const BufferView& device_b, const BufferView& device_c) const {
    Gemm product = gemm();
    for (const auto& [view, device] :
         {std::pair(&product.a, &device_a), std::pair(&product.b, &device_b), std::pair(&product.c, &device_c)}) {
      view->buffer = device->buffer;
      view->bands = device->bands;
      view->band_lines = device->band_lines;
      view->scales = device->scales;
      view->zeros = device->zeros;
    }
    return product;
  }
};

/// Uploads, multiplies (by `multiply`, or by Engine::gemm) and downloads; the report's total time is of all three.
/// @throws as Engine::gemm
template <class T, class C>
Matrix<C> run(Engine& engine, const HostProduct<T, C>& p, const PlanOptions& options, Report& report,
              const std::function<void(const Gemm&)>& multiply = {}) {
  const auto begin = std::chrono::steady_clock::now();
  make_plan(Engine::problem(p.gemm()), engine.limits(), options);  // what cannot run is refused before anything is uploaded
  const DeviceFactor a(engine, p.stored_a, p.a), b(engine, p.stored_b, p.b);
  DeviceMatrix c(engine, p.batch * p.m(), p.n(), type_of<C>());
  if (p.beta != typename HostProduct<T, C>::Accumulator(0)) c.upload(p.c0);
  multiply ? multiply(p.gemm(a.view(), b.view(), c.view())) : engine.gemm(p.gemm(a.view(), b.view(), c.view()), options, &report);
  Matrix<C> result = c.template download<C>();
  report.total_time = std::chrono::steady_clock::now() - begin;
  return result;
}

/// Matrix number `item` of x, in which matrices of `rows` rows each stand below each other.
template <class T>
Matrix<T> item_of(const Matrix<T>& x, std::int64_t item, std::int64_t rows) {
  const auto first = x.elements().begin() + item * rows * x.columns();
  return Matrix<T>(rows, x.columns(), {first, first + rows * x.columns()});
}

/// Calls f(a, b, c, terms) for each item of the batch, with op(A) and op(B) still to be applied.
template <class T, class C, class F>
void for_each_item(const HostProduct<T, C>& p, const Matrix<C>& c, const F& f) {
  Terms<T, C> terms;
  terms.op_a = p.op_a;
  terms.op_b = p.op_b;
  terms.alpha = p.alpha;
  terms.beta = p.beta;
  terms.c0 = &p.c0;
  terms.precision = p.precision;
  terms.quantized = p.quantized;
  terms.digits = p.digits;
  if (p.batch == 1) {
    f(p.a, p.b, c, terms);
    return;
  }
  Matrix<T> a, b;
  for (std::int64_t z = 0; z < p.batch; ++z) {
    if (z == 0 || !p.a_repeats) a = item_of(p.a, p.a_repeats ? 0 : z, p.a_rows());
    if (z == 0 || !p.b_repeats) b = item_of(p.b, p.b_repeats ? 0 : z, p.b_rows());
    const Matrix<C> c0 = p.c0.size() == 0 ? Matrix<C>(p.m(), p.n()) : item_of(p.c0, z, p.m());
    terms.c0 = &c0;
    f(a, b, item_of(c, z, p.m()), terms);
  }
}

/// What was found of one product, or of the worst one of a batch.
struct ProductCheck : Check {
  std::int64_t batch = 1;  ///< how many products there are
  std::int64_t item = 0;   ///< whose place, worst and median these are
};

/// check_full, or check_probe, of every item. The result is the worst item's, with the counts of all; a probe compares
/// some 4096 samples of all items together, but at least 16 of each.
template <class T, class C>
ProductCheck check(const HostProduct<T, C>& p, const Matrix<C>& c, bool full) {
  ProductCheck all;
  std::int64_t item = 0, compared = 0;
  bool passed = true;
  for_each_item(p, c, [&](const Matrix<T>& a, const Matrix<T>& b, const Matrix<C>& c_item, const Terms<T, C>& terms) {
    Check one =
        full ? check_full(a, b, c_item, terms) : check_probe(a, b, c_item, 1, std::max<std::int64_t>(16, 4096 / p.batch), terms);
    compared += one.compared;
    passed = passed && one.passed;
    // A wrong item is worse than a right one, whatever its ratio; an inexact one in which only the bound counts, than an exact
    // one.
    const auto badness = [](const Check& x) { return std::tuple(!x.passed, x.method == "bound", x.worst_ratio); };
    if (item == 0 || badness(one) > badness(all)) {
      static_cast<Check&>(all) = std::move(one);
      all.item = item;
    }
    ++item;
  });
  if (p.batch > 1) {
    all.summary = fmt::format("{} of {} elements of {} products compared; product {}{}: {}", compared, c.size(), p.batch,
                              all.item, passed ? ", the worst" : "", all.summary);
  }
  all.compared = compared;
  all.batch = p.batch;
  return all;
}

/// glgemm::error_ratios of all items, below each other.
template <class T, class C>
Matrix<float> error_ratios(const HostProduct<T, C>& p, const Matrix<C>& c) {
  Matrix<float> all(c.rows(), c.columns());
  auto to = all.elements().begin();
  for_each_item(p, c, [&](const Matrix<T>& a, const Matrix<T>& b, const Matrix<C>& c_item, const Terms<T, C>& terms) {
    const Matrix<float> one = glgemm::error_ratios(a, b, c_item, terms);
    to = std::copy(one.elements().begin(), one.elements().end(), to);
  });
  return all;
}

/// For a picture: complex numbers by their magnitude.
template <class C>
Matrix<float> as_float(const Matrix<C>& x) {
  if constexpr (std::is_same_v<C, float>) {
    return x;
  } else {
    Matrix<float> values(x.rows(), x.columns());
    std::transform(x.elements().begin(), x.elements().end(), values.elements().begin(), [](C value) {
      if constexpr (requires { value.imag(); })
        return static_cast<float>(std::abs(value));
      else
        return static_cast<float>(value);
    });
    return values;
  }
}

}  // namespace glgemm::tools
