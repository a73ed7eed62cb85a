// Quantised arrays on the device, and on the host what makes them and reads models' files.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <glgemm/gemm.hpp>

#include "python/array.hpp"
#include "python/pybind.hpp"

namespace glgemm::python {

/// An array of such a shape on the device, whose last dimension is along k; the dimensions before it are rows. The others are
/// arrays of bytes without gaps: see QuantizedMatrix.
/// @throws std::invalid_argument  an array has not the bytes that the format and the shape ask for
Array upload_quantized(const std::shared_ptr<Service>& service, const std::string& format, const py::object& shape,
                       const py::array& codes, const py::array& scales, const py::array& zeros);

/// The same of codes, scales and zeros that lie in OpenGL buffers of the application, which `owner` keeps: as in Array.
/// @throws std::invalid_argument  an array leaves its buffer
Array wrap_quantized(const std::shared_ptr<Service>& service, const std::string& format, const py::object& shape,
                     const std::vector<std::pair<unsigned, std::int64_t>>& places, const py::object& owner);

/// Layout and leading dimension of an array's matrices, counted in codes; none if neither dimension is along k.
std::optional<MatrixLines> code_lines(const Strided& array);

/// As view_of_lines(), of a quantised array.
/// @throws std::invalid_argument  the part begins within a block, or leaves out rows whose scales lie apart
BufferView view_of_codes(const Elements& elements, std::int64_t lines, std::int64_t width, std::int64_t ld, std::int64_t offset);

/// The numbers that a part of a quantised array stands for, on the host. It has elements.
py::array decoded(const Elements& elements, const Strided& layout);

void define_weights(py::module_& module);

}  // namespace glgemm::python
