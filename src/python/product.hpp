// The terms of products, and products of NumPy's arrays by the device.
#pragma once

#include <chrono>
#include <complex>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>

#include <glgemm/engine.hpp>
#include <glgemm/gemm.hpp>
#include <glgemm/plan_options.hpp>
#include <glgemm/quantization.hpp>

#include "python/array.hpp"
#include "python/pybind.hpp"

namespace glgemm::python {

/// What ran, and what a streamed product moved.
struct Told : Report {
  std::int64_t bytes_to_device = 0, bytes_from_device = 0;
  std::chrono::nanoseconds transfer_time{};
};

/// What a product has beside its matrices.
struct Terms {
  std::string who = "matmul";  ///< the function that was called, with which errors begin
  std::complex<double> alpha = 1;
  std::complex<double> beta = 0;
  Op op_a = Op::none;
  Op op_b = Op::none;
  Activation activation{};
  PlanOptions options{};
  std::shared_ptr<Told> report{};  ///< what ran is added to it; null where nobody asks

  void add(const Report& ran) const;
};
Scalar scalar(std::complex<double> value, Type type);
/// @throws py::type_error, std::invalid_argument  Python's object names no activation, or has not its parameters
Activation activation_of(const std::string& who, const py::object& given);

/// What C is where nothing says it: the type of A and B where they have one and C may have it, else the type of the sums.
constexpr Type default_type_of_c(Type a, Type b) noexcept {
  return a == b && is_type_of_c(a, a) ? a : sum_type(a, b);
}

/// What C shall be: `wanted`, or by default default_type_of_c().
/// @throws py::type_error  the types have no product, or C cannot be that
Type type_of_c(const std::string& who, Type a, Type b, std::optional<Type> wanted);

/// @throws std::invalid_argument  the arrays belong to different engines
/// @throws py::type_error         one of `others` is quantised: `quantised` says what can be
void check_operands(const std::string& who, const Array& first, const Array& second,
                    std::initializer_list<const std::optional<Array>*> others, const char* quantised);

/// A quantised matrix in NumPy's arrays, which these objects keep.
struct HostCodes {
  QuantizedMatrix matrix;
  py::array codes, scales, zeros;
};

/// alpha op(a) op(b) + beta c of NumPy arrays with at least two dimensions, into c, which has all dimensions of the batch. Their
/// shapes and types go together.
struct HostProduct {
  py::array a, b, c;
  std::optional<py::array> bias{};  ///< of the shape (m, 1) or (1, n)
  std::optional<py::array> residual{};
  /// For stream(): where they are given, `a` or `b` has but the shape and the type of the numbers, with the op that is none.
  std::optional<HostCodes> codes_a{}, codes_b{};
};
void multiply(const std::shared_ptr<Service>& service, const HostProduct& product, const Terms& terms);

/// What multiply() would do, in lines of text.
std::string explain(const std::shared_ptr<Service>& service, const HostProduct& product, const Terms& terms);

void define_terms(py::module_& module);

}  // namespace glgemm::python
