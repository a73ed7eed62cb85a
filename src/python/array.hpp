// Arrays on the device.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include <glgemm/gemm.hpp>

#include "python/pybind.hpp"
#include "python/service.hpp"
#include "python/strided.hpp"

namespace glgemm::python {

/// An array in a buffer, or a part of one: several arrays may share a storage.
struct Array {
  std::shared_ptr<Storage> storage;
  Strided layout;
  /// For a buffer of the application: _engine.Owner, which keeps the application's object until it is freed. Each array has a
  /// reference, and shows it to Python's collector, since that object may have the array.
  py::object owner{};

  /// Another part of the same elements.
  Array with(Strided other) const { return {storage, std::move(other), owner}; }
};

/// Elements in a buffer, and how they lie there.
struct Placed {
  std::shared_ptr<const Elements> elements;
  Strided layout;
};

/// Has Python's collector see what each object of a class keeps: `visit_kept` visits it.
template <class T, int (*visit_kept)(const T&, visitproc, void*)>
py::custom_type_setup shows_kept() {
  return py::custom_type_setup([](PyHeapTypeObject* heap) {
    PyTypeObject& type = heap->ht_type;
    type.tp_flags |= Py_TPFLAGS_HAVE_GC;
    type.tp_traverse = [](PyObject* self, visitproc visit, void* arg) {
      Py_VISIT(Py_TYPE(self));
      const auto& instance = *reinterpret_cast<py::detail::instance*>(self);
      const void* const made = instance.simple_layout ? instance.simple_value_holder[0] : nullptr;  // not yet where it is false
      return made ? visit_kept(*static_cast<const T*>(made), visit, arg) : 0;
    };
    type.tp_dealloc = [](PyObject* self) {
      PyObject_GC_UnTrack(self);  // as later versions of pybind11 do: the collector must not see half of it
      reinterpret_cast<PyTypeObject*>(py::detail::get_internals().instance_base)->tp_dealloc(self);
    };
  });
}

/// The elements, with the owner as long as these are kept.  @throws std::invalid_argument  the array is freed
std::shared_ptr<const Elements> elements_of(const Array& array);

/// Elements on the device that are not set. To be called by work.
std::shared_ptr<const Elements> new_elements(const std::shared_ptr<Service>& service, Engine& engine, std::int64_t rows,
                                             std::int64_t columns, Type type);
/// An array that has all of them.
Array array_of(std::shared_ptr<const Elements> elements, const Strided& layout, const py::object& owner = {});

/// The array with at least two dimensions: a vector becomes a matrix of one row.
Strided at_least_2d(Strided array);
/// A view of `lines` lines of `width` elements, `ld` elements apart, from the element `offset` on.
/// @throws std::invalid_argument  the matrix lies in several buffers, and the lines are not parts of its rows
BufferView view_of_lines(const Elements& elements, Type type, std::int64_t lines, std::int64_t width, std::int64_t ld,
                         std::int64_t offset);
/// A new array without gaps, whose elements are not set.
Array empty(const std::shared_ptr<Service>& service, Type type, const Sizes& shape);
/// An array in an OpenGL buffer of the application, which `owner` keeps: as in Array, or None. Offset and strides are bytes.
/// @throws std::invalid_argument  it leaves the buffer, or its elements do not begin at multiples of their size
Array wrap(const std::shared_ptr<Service>& service, unsigned buffer, const py::object& owner, const py::object& shape,
           const py::object& dtype, const py::object& offset, const py::object& strides);
/// A copy on the device, in this machine's byte order.
Array upload(const std::shared_ptr<Service>& service, const py::array& host);
/// A new array with the same elements, without gaps.
Array copied(const Array& array);
/// The bytes of all elements, or of their codes, scales and zeros.
std::int64_t bytes_of(const Array& array);
/// A copy on the host.
py::array download(const Array& array);
/// Replaces the elements by `host`, which is broadcast.  @throws py::type_error  it is a masked array
void assign(const Array& array, const py::object& host);

/// How a NumPy array lies; none if its strides are no whole elements.
std::optional<Strided> strided(const py::array& host, Type type);
/// A new NumPy array with such strides, which have no gaps.
py::array host_array(const Strided& packed);

void define_array(py::module_& module);

}  // namespace glgemm::python
