// Arrays on the device.
#pragma once

#include <pybind11/numpy.h>

#include <memory>
#include <string>

#include <glgemm/gemm.hpp>

#include "python/service.hpp"
#include "python/strided.hpp"

namespace glgemm::python {

/// An array in a buffer, or a part of one: several arrays may share a storage.
struct Array {
  std::shared_ptr<Storage> storage;
  Strided lies;
};

/// The buffers in which elements lie; they must live as long as what refers to them.
struct Where {
  const DeviceMatrix* matrix = nullptr;  ///< else
  unsigned buffer = 0;                   ///< the application's
};
/// @throws std::invalid_argument  the array is freed
Where where(const Array& array);

/// With two dimensions at least: a vector is a matrix of one row.
Strided at_least_2d(Strided array);
/// Lines of elements.
/// @throws std::invalid_argument  the matrix lies in several buffers, and the lines do not go with them
BufferView view_of_lines(const Where& where, Type type, std::int64_t lines, std::int64_t width, std::int64_t ld,
                         std::int64_t offset);
/// A new array without gaps, whose elements are not set.
Array empty(const std::shared_ptr<Service>& service, Type type, const Sizes& shape);
/// A copy on the device.
Array upload(const std::shared_ptr<Service>& service, const py::array& host);
/// A new array with the same elements, without gaps.
Array copied(const Array& array);
/// A copy on the host.
py::array download(const Array& array);
/// Replaces the elements by those of `host`, which is broadcast.
void assign(const Array& array, const py::object& host);
/// What array[key] is.
Array part(const Array& array, const py::object& key);

/// A shape, or strides: a whole number, or a sequence of them.
/// @throws py::type_error  it is neither; `what` begins the message
Sizes whole_numbers(const std::string& what, const py::object& given);

/// How a NumPy array lies; its strides must be whole elements.
Strided strided(const py::array& host, Type type);
/// A new NumPy array with such strides, which have no gaps.
py::array host_array(const Strided& packed);

void define_array(py::module_& module);

}  // namespace glgemm::python
