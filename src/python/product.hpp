// Products of arrays: on the device, and from host memory through it.
#pragma once

#include <pybind11/complex.h>
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <complex>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <glgemm/gemm.hpp>
#include <glgemm/plan_options.hpp>

#include "python/array.hpp"

namespace glgemm::python {

/// What a product has beside its matrices.
struct Terms {
  std::complex<double> alpha = 1;
  std::complex<double> beta = 0;
  Op op_a = Op::none;
  Op op_b = Op::none;
  Activation activation{};
  PlanOptions options{};
};
Scalar scalar(std::complex<double> value, Type type);

/// alpha op(a) op(b) + beta c of arrays on one device; into `out` if given, else into a new array of `c_type` (by default, the
/// type of the sums, or a's own where C may have it).
struct DeviceProduct {
  Array a, b;
  std::optional<Array> out{};
  std::optional<Array> bias{};
  std::optional<Array> residual{};
};
Array multiply(const DeviceProduct& product, const Terms& terms, std::optional<Type> c_type = {});

/// The same of NumPy arrays with at least two dimensions; c has all of the batch's. What is None is not there.
struct HostProduct {
  py::array a, b, c;
  std::optional<py::array> bias{};  ///< with the shape (m, 1) or (1, n)
  std::optional<py::array> residual{};
};
void multiply(const std::shared_ptr<Service>& service, const HostProduct& product, const Terms& terms);

/// What that would do, in lines of text.
std::string explain(const std::shared_ptr<Service>& service, const HostProduct& product, const Terms& terms);

Terms terms_of(const py::object& alpha, const py::object& beta, const std::string& op_a, const std::string& op_b,
               const py::object& activation, const py::object& kernel, std::int64_t split_k, const std::string& precision);

}  // namespace glgemm::python
