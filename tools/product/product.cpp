// Products of host matrices: see product.hpp.
#include "product/product.hpp"

#include <algorithm>
#include <chrono>
#include <tuple>
#include <utility>

#include <fmt/core.h>

namespace glgemm::tools {
namespace {

std::optional<DeviceMatrix> copy(Engine& engine, const std::vector<std::byte>& bytes) {
  if (bytes.empty()) return std::nullopt;
  DeviceMatrix result(engine, 1, static_cast<std::int64_t>(bytes.size()), Type::i8);
  engine.upload(bytes.data(), 0, result.view());
  return result;
}

/// A quantised factor's bytes, else its elements.
DeviceMatrix matrix_of(Engine& engine, const std::optional<StoredMatrix>& stored, const AnyMatrix& numbers) {
  const bool codes = stored && stored->format.quantization;
  DeviceMatrix result =
      !stored ? DeviceMatrix(engine, numbers.rows(), numbers.columns(), numbers.type())
              : DeviceMatrix(engine, stored->rows, codes ? storage_bytes(stored->format, stored->columns) : stored->columns,
                             codes ? Type::i8 : stored->format.type);
  engine.upload(stored ? stored->bytes.data() : numbers.bytes().data(), 0, result.view());
  return result;
}

/// Of a matrix without gaps.
BufferView view_of(std::int64_t rows, std::int64_t columns, const ElementFormat& format) {
  BufferView result;
  result.rows = rows;
  result.columns = columns;
  result.type = format.type;
  result.quantization = format.quantization;
  return result;
}

}  // namespace

HostMatrix host_factor(const std::optional<StoredMatrix>& stored, const AnyMatrix& numbers) {
  if (!stored) return host_matrix(numbers.bytes().data(), numbers.rows(), numbers.columns(), numbers.type());
  const auto& [format, rows, columns, bytes, scales, zeros] = *stored;
  return format.quantization ? host_matrix(QuantizedMatrix{format.quantization, rows, columns, bytes, scales, zeros})
                             : host_matrix(bytes.data(), rows, columns, format.type);
}

void upload(Engine& engine, const AnyMatrix& from, const DeviceMatrix& to) {
  engine.upload(from.bytes().data(), 0, to.view());
}

AnyMatrix download(Engine& engine, const DeviceMatrix& from) {
  AnyMatrix result(from.type(), from.rows(), from.columns());
  engine.download(from.view(), result.bytes().data());
  return result;
}

DeviceFactor::DeviceFactor(Engine& engine, const std::optional<StoredMatrix>& stored, const AnyMatrix& numbers)
    : matrix_(matrix_of(engine, stored, numbers)) {
  if (!stored) return;
  scales_ = copy(engine, stored->scales);
  zeros_ = copy(engine, stored->zeros);
  columns_ = stored->columns;
  quantization_ = stored->format.quantization;
}

BufferView DeviceFactor::view() const {
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

Gemm HostProduct::gemm() const {
  Gemm product;
  product.op_a = op_a;
  product.op_b = op_b;
  product.alpha = alpha;
  product.beta = beta;
  product.a = view_of(a_rows(), a.columns(), formats().a);
  product.b = view_of(b_rows(), b.columns(), formats().b);
  product.c = view_of(m(), n(), {c_type});
  product.batch.count = batch;
  product.batch.stride_a = a_repeats ? 0 : a_rows() * row_elements(formats().a, a.columns());
  product.batch.stride_b = b_repeats ? 0 : b_rows() * row_elements(formats().b, b.columns());
  product.batch.stride_c = m() * n();
  return product;
}

Gemm HostProduct::gemm(const BufferView& device_a, const BufferView& device_b, const BufferView& device_c) const {
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

AnyMatrix run(Engine& engine, const HostProduct& p, const PlanOptions& options, Report& report,
              const std::function<void(const Gemm&)>& multiply) {
  const auto begin = std::chrono::steady_clock::now();
  make_plan(problem_of(p.gemm()), limits_of(engine), options);  // what cannot run is refused before anything is uploaded
  const DeviceFactor a(engine, p.stored_a, p.a), b(engine, p.stored_b, p.b);
  const DeviceMatrix c(engine, p.batch * p.m(), p.n(), p.c_type);
  if (p.adds()) upload(engine, p.c0, c);
  const Gemm product = p.gemm(a.view(), b.view(), c.view());
  multiply ? multiply(product) : engine.gemm(product, options, &report);
  AnyMatrix result = download(engine, c);
  report.total_time = std::chrono::steady_clock::now() - begin;
  return result;
}

ProductCheck check(const HostProduct& p, const AnyMatrix& c, bool full) {
  ProductCheck all;
  std::int64_t item = 0, compared = 0;
  bool passed = true;
  const auto add = [&](Check one) {
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
  };
  const std::int64_t samples = std::max<std::int64_t>(16, 4096 / p.batch);
  with_types(p.a.type(), p.c_type, [&]<class T, class C>(T, C) {
    for_each_item<T, C>(p, c, [&](const auto& a, const auto& b, const auto& c_item, const auto& terms) {
      add(full ? check_full(a, b, c_item, terms) : check_probe(a, b, c_item, 1, samples, terms));
    });
  });
  if (p.batch > 1) {
    all.summary = fmt::format("{} of {} elements of {} products compared; product {}{}: {}", compared, c.rows() * c.columns(),
                              p.batch, all.item, passed ? ", the worst" : "", all.summary);
  }
  all.compared = compared;
  all.batch = p.batch;
  return all;
}

Check check_convolution(const Convolution& convolution, const AnyMatrix& input, const AnyMatrix& filters, const AnyMatrix& output,
                        std::int64_t samples, Precision precision) {
  return with_types(input.type(), output.type(), [&]<class T, class C>(T, C) {
    return glgemm::check_convolution(convolution, input.as<T>().elements(), filters.as<T>().elements(), output.as<C>().elements(),
                                     samples, 1, precision);
  });
}

Matrix<float> error_ratios(const HostProduct& p, const AnyMatrix& c) {
  Matrix<float> all(c.rows(), c.columns());
  auto to = all.elements().begin();
  with_types(p.a.type(), p.c_type, [&]<class T, class C>(T, C) {
    for_each_item<T, C>(p, c, [&](const auto& a, const auto& b, const auto& c_item, const auto& terms) {
      const Matrix<float> one = glgemm::error_ratios(a, b, c_item, terms);
      to = std::copy(one.elements().begin(), one.elements().end(), to);
    });
  });
  return all;
}

}  // namespace glgemm::tools
