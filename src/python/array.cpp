#include "python/array.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "python/dtype.hpp"
#include "python/product.hpp"

namespace glgemm::python {
namespace {

/// The bytes that an array reaches, as one line.
BufferView span_of(const Array& array) {
  const Strided& lies = array.lies;
  const std::int64_t width = lies.highest() - lies.lowest() + 1;
  return view_of_lines(where(array), lies.type, 1, width, width, lies.offset + lies.lowest());
}

/// The elements of `span` that the array has, as NumPy's view of it.
py::array of_span(const Array& array, const py::array& span) {
  const Strided& lies = array.lies;
  const std::int64_t bytes = element_bytes(lies.type);
  std::vector<py::ssize_t> strides;
  for (const std::int64_t stride : lies.strides) strides.push_back(stride * bytes);
  const char* first = static_cast<const char*>(span.data()) - lies.lowest() * bytes;
  return py::array(span.dtype(), lies.shape, strides, first, span);
}

py::array read_span(const Array& array) {
  const BufferView view = span_of(array);
  py::array span(dtype_of(array.lies.type), Sizes{view.columns});
  void* to = span.mutable_data();
  array.storage->service->run("numpy", [&](Engine& engine, Interrupt&) { engine.download(view, to); });
  return span;
}

bool repeats(const Strided& lies) {
  for (std::size_t i = 0; i < lies.dimensions(); ++i)
    if (lies.shape[i] > 1 && lies.strides[i] == 0) return true;
  return false;
}

}  // namespace

Strided at_least_2d(Strided array) {
  while (array.dimensions() < 2) {
    array.shape.insert(array.shape.begin(), 1);
    array.strides.insert(array.strides.begin(), 0);
  }
  return array;
}

Where where(const Array& array) {
  const Storage& storage = *array.storage;
  if (storage.freed) throw std::invalid_argument("the array is freed, or its engine is closed");
  return {storage.matrix ? &*storage.matrix : nullptr, storage.buffer};
}

BufferView view_of_lines(const Where& where, Type type, std::int64_t lines, std::int64_t width, std::int64_t ld,
                         std::int64_t offset) {
  BufferView view{.buffer = where.buffer,
                  .rows = lines,
                  .columns = width,
                  .ld = std::max<std::int64_t>(1, lines > 1 ? ld : width),
                  .offset_bytes = offset * element_bytes(type),
                  .type = type};
  if (!where.matrix) return view;
  const BufferView whole = where.matrix->view();
  view.buffer = whole.buffer;
  if (whole.bands.empty() || lines == 0 || width == 0) return view;
  if (lines > 1 && ld != whole.columns)
    throw std::invalid_argument("an array of " + std::to_string(whole.rows) + "x" + std::to_string(whole.columns) +
                                " lies in several buffers, since the driver gives none that is so large: whole rows of it, or "
                                "parts of them, can be used alone");
  return where.matrix->view(offset / whole.columns, offset % whole.columns, lines, width);
}

Sizes whole_numbers(const std::string& what, const py::object& given) {
  Sizes numbers;
  try {
    const bool is_one = PyIndex_Check(given.ptr()) && !PySequence_Check(given.ptr());  // NumPy's arrays are both
    const py::object all = is_one ? py::object(py::make_tuple(given)) : given;
    for (const py::handle one : all) {
      numbers.push_back(PyNumber_AsSsize_t(one.ptr(), PyExc_OverflowError));
      if (numbers.back() == -1 && PyErr_Occurred()) throw py::error_already_set();
    }
  } catch (py::error_already_set& error) {
    const bool is_large = error.matches(PyExc_OverflowError);
    if (!is_large && !error.matches(PyExc_TypeError)) throw;
    const std::string message = what + " is " + py::repr(given).cast<std::string>() + " and must be whole numbers";
    if (is_large) throw py::value_error(message + " of 64 bits");
    throw py::type_error(message);
  }
  return numbers;
}

Array empty(const std::shared_ptr<Service>& service, Type type, const Sizes& shape) {
  const std::int64_t columns = shape.empty() ? 1 : shape.back();
  const std::int64_t rows = shape.empty() ? 1 : product_of(shape, shape.size() - 1);
  NewMatrix matrix(service);
  service->run("empty", [&](Engine& engine, Interrupt&) { matrix.make(engine, rows, columns, type); });
  return {matrix.take(), dense(type, shape)};
}

Strided strided(const py::array& host, Type type) {
  Strided lies{type};
  const py::ssize_t bytes = element_bytes(type);
  for (py::ssize_t i = 0; i < host.ndim(); ++i) {
    lies.shape.push_back(host.shape(i));
    if (host.strides(i) % bytes != 0) throw std::invalid_argument("an array's strides are no whole elements");
    lies.strides.push_back(host.strides(i) / bytes);
  }
  if (lies.size() == 0) return dense(type, lies.shape);  // whose strides mean nothing
  return lies;
}

py::array host_array(const Strided& packed) {
  std::vector<py::ssize_t> strides;
  for (const std::int64_t stride : packed.strides) strides.push_back(stride * element_bytes(packed.type));
  return py::array(dtype_of(packed.type), packed.shape, strides);
}

Array upload(const std::shared_ptr<Service>& service, const py::array& host) {
  const Type type = type_of_object(host.dtype());
  const Sizes shape(host.shape(), host.shape() + host.ndim());
  Array array = empty(service, type, shape);
  if (array.lies.size() > 0) assign(array, host);
  return array;
}

Array copied(const Array& array) {
  return upload(array.storage->service, download(array));
}

py::array download(const Array& array) {
  const Strided matrix = at_least_2d(array.lies);
  where(array);
  if (matrix.size() == 0) return host_array(dense(matrix.type, array.lies.shape));
  const auto lines = repeats(matrix) ? std::nullopt : stacked(matrix);
  if (!lines) return py::reinterpret_borrow<py::array>(of_span(array, read_span(array)).attr("copy")());
  Strided packed = lines->packed;
  const auto vectors = static_cast<std::ptrdiff_t>(matrix.dimensions() - array.lies.dimensions());
  packed.shape.erase(packed.shape.begin(), packed.shape.begin() + vectors);
  packed.strides.erase(packed.strides.begin(), packed.strides.begin() + vectors);
  if (array.lies.dimensions() < 2) packed = dense(packed.type, packed.shape);
  py::array host = host_array(packed);
  void* to = host.mutable_data();
  const BufferView view = view_of_lines(where(array), matrix.type, lines->lines, lines->width, lines->ld, matrix.offset);
  array.storage->service->run("numpy", [&](Engine& engine, Interrupt&) { engine.download(view, to); });
  return host;
}

void assign(const Array& array, const py::object& host) {
  const py::module_ numpy = py::module_::import("numpy");
  const Strided matrix = at_least_2d(array.lies);
  where(array);
  if (repeats(matrix)) throw std::invalid_argument("an array that repeats its elements cannot be written");
  if (matrix.size() == 0) return;
  const auto run = [&](const BufferView& view, const py::array& from, std::int64_t ld) {
    const void* data = from.data();
    array.storage->service->run("asarray", [&](Engine& engine, Interrupt&) { engine.upload(data, ld, view); });
  };
  const auto lines = stacked(matrix);
  if (!lines) {
    const py::array span = read_span(array);
    numpy.attr("copyto")(of_span(array, span), host, "same_kind");
    return run(span_of(array), span, 0);
  }
  const BufferView view = view_of_lines(where(array), matrix.type, lines->lines, lines->width, lines->ld, matrix.offset);
  if (py::isinstance<py::array>(host)) {  // read where it lies, if its lines are the same
    const auto given = py::reinterpret_borrow<py::array>(host);
    const Sizes shape(given.shape(), given.shape() + given.ndim());
    if (shape == array.lies.shape && type_of_dtype(given.dtype()) == matrix.type &&
        std::all_of(given.strides(), given.strides() + given.ndim(),
                    [&](py::ssize_t stride) { return stride % element_bytes(matrix.type) == 0; })) {
      const auto from = stacked(at_least_2d(strided(given, matrix.type)));
      if (from && from->lines == lines->lines && from->width == lines->width && from->packed.strides == lines->packed.strides)
        return run(view, given, from->ld);
    }
  }
  Strided packed = lines->packed;
  packed.offset = 0;
  const py::array copy = host_array(packed);
  numpy.attr("copyto")(copy, host, "same_kind");
  run(view, copy, 0);
}

namespace {

/// Moves an index that counts from the end.
std::int64_t checked_index(std::int64_t index, std::int64_t size, std::size_t dimension) {
  if (index < -size || index >= size)
    throw py::index_error("index " + std::to_string(index) + " is out of bounds for axis " + std::to_string(dimension) +
                          " with size " + std::to_string(size));
  return index < 0 ? index + size : index;
}

}  // namespace

Array part(const Array& array, const py::object& key) {
  const py::tuple keys = py::isinstance<py::tuple>(key) ? key.cast<py::tuple>() : py::make_tuple(key);
  std::size_t used = 0;
  for (const py::handle one : keys) used += !one.is_none() && !one.is(py::ellipsis());
  const Strided& from = array.lies;
  if (used > from.dimensions())
    throw py::index_error("too many indices: the array has " + std::to_string(from.dimensions()) + " dimensions, but " +
                          std::to_string(used) + " were indexed");
  Strided to{from.type, {}, {}, from.offset};
  std::size_t dimension = 0;
  const auto keep = [&](std::size_t count) {
    for (; count > 0; --count, ++dimension) {
      to.shape.push_back(from.shape[dimension]);
      to.strides.push_back(from.strides[dimension]);
    }
  };
  bool dots = false;
  for (const py::handle one : keys) {
    if (one.is_none()) {
      to.shape.push_back(1);
      to.strides.push_back(0);
    } else if (one.is(py::ellipsis())) {
      if (std::exchange(dots, true)) throw py::index_error("an index can only have a single ellipsis ('...')");
      keep(from.dimensions() - used);
    } else if (py::isinstance<py::slice>(one)) {
      py::ssize_t start = 0, stop = 0, step = 0, length = 0;
      if (!py::reinterpret_borrow<py::slice>(one).compute(from.shape[dimension], &start, &stop, &step, &length))
        throw py::error_already_set();
      if (length > 0) to.offset += start * from.strides[dimension];
      to.shape.push_back(length);
      to.strides.push_back(from.strides[dimension++] * step);
    } else if (PyIndex_Check(one.ptr()) && !py::isinstance<Array>(one)) {
      const py::ssize_t index = PyNumber_AsSsize_t(one.ptr(), PyExc_IndexError);
      if (index == -1 && PyErr_Occurred()) throw py::error_already_set();
      to.offset += checked_index(index, from.shape[dimension], dimension) * from.strides[dimension];
      ++dimension;
    } else {
      throw py::index_error("an array on the device takes integers, slices, '...' and None as indices");
    }
  }
  if (!dots) keep(from.dimensions() - dimension);
  return {array.storage, to};
}

namespace {

py::tuple tuple_of(const Sizes& sizes, std::int64_t factor = 1) {
  py::tuple result(sizes.size());
  for (std::size_t i = 0; i < sizes.size(); ++i) result[i] = py::int_(sizes[i] * factor);
  return result;
}

Array transposed(const Array& array) {
  Array result = array;
  std::reverse(result.lies.shape.begin(), result.lies.shape.end());
  std::reverse(result.lies.strides.begin(), result.lies.strides.end());
  return result;
}

Array matrix_transposed(const Array& array) {
  const std::size_t n = array.lies.dimensions();
  if (n < 2) throw std::invalid_argument("mT: the array has " + std::to_string(n) + " dimensions, and two are needed");
  Array result = array;
  std::swap(result.lies.shape[n - 1], result.lies.shape[n - 2]);
  std::swap(result.lies.strides[n - 1], result.lies.strides[n - 2]);
  return result;
}

Array reshaped(const Array& array, const py::args& sizes) {
  Sizes shape = whole_numbers("reshape: the shape", sizes.size() == 1 ? py::object(sizes[0]) : py::object(sizes));
  const auto open = std::find(shape.begin(), shape.end(), -1);
  const std::int64_t size = array.lies.size();
  if (open != shape.end()) {
    *open = 1;
    const std::int64_t rest = product_of(shape, shape.size());
    *open = rest > 0 ? size / rest : 0;
  }
  if (std::any_of(shape.begin(), shape.end(), [](std::int64_t one) { return one < 0; }) ||
      product_of(shape, shape.size()) != size)
    throw std::invalid_argument("cannot reshape an array of shape " + text(array.lies.shape) + " into shape " + text(shape));
  if (!is_dense(array.lies)) throw std::invalid_argument("reshape: the array has gaps: reshape a copy()");
  Strided lies = dense(array.lies.type, shape);
  lies.offset = array.lies.offset;
  return {array.storage, lies};
}

py::object as_numpy(const Array& array, const py::object& dtype, const py::object& copy) {
  if (!copy.is_none() && !copy.cast<bool>())
    throw std::invalid_argument("__array__: the elements are on the device and cannot be had without a copy");
  const py::array host = download(array);
  if (dtype.is_none()) return host;
  return host.attr("astype")(dtype, py::arg("copy") = false);
}

const Terms& plain_terms() {
  static const Terms plain;
  return plain;
}

std::string described(const Array& array) {
  return "<glgemm.Array of " + std::string(info(array.lies.type).numpy) + ", shape " + text(array.lies.shape) +
         (array.storage->freed ? ", freed>" : ", on " + array.storage->service->device().renderer + ">");
}

}  // namespace

void define_array(py::module_& module) {
  py::class_<Array> type(module, "Array", R"(A matrix, a vector or a batch of matrices on the device.

Made by Engine.asarray(), Engine.empty(), Engine.wrap() and by products of arrays. Indexing with integers, slices, '...' and
None makes views of the same elements, as T, mT and reshape() do. `a @ b` is computed on the device and stays there;
numpy() copies the elements to the host. Elements are freed with the last array that shows them, or by free().)");
  type.def_property_readonly(
          "shape", [](const Array& a) { return tuple_of(a.lies.shape); }, "Tuple of the dimensions' sizes.")
      .def_property_readonly(
          "dtype", [](const Array& a) { return dtype_of(a.lies.type); }, "NumPy's dtype of the elements.")
      .def_property_readonly(
          "ndim", [](const Array& a) { return a.lies.dimensions(); }, "The number of dimensions.")
      .def_property_readonly(
          "size", [](const Array& a) { return a.lies.size(); }, "The number of elements.")
      .def_property_readonly(
          "itemsize", [](const Array& a) { return element_bytes(a.lies.type); }, "The bytes of an element.")
      .def_property_readonly(
          "nbytes", [](const Array& a) { return a.lies.size() * element_bytes(a.lies.type); }, "The bytes of all elements.")
      .def_property_readonly(
          "strides", [](const Array& a) { return tuple_of(a.lies.strides, element_bytes(a.lies.type)); },
          "Bytes from an element to the next one in each dimension.")
      .def_property_readonly(
          "offset", [](const Array& a) { return a.lies.offset * element_bytes(a.lies.type); },
          "The byte of the buffer at which the first element lies.")
      .def_property_readonly(
          "buffer", [](const Array& a) { return view_of_lines(where(a), a.lies.type, 0, 0, 1, 0).buffer; },
          "The name of the OpenGL buffer; 0 for an array in several buffers.")
      .def_property_readonly("T", &transposed, "A view with the dimensions in reverse order.")
      .def_property_readonly("mT", &matrix_transposed, "A view with the last two dimensions exchanged.")
      .def("numpy", &download, "Waits for what writes the elements and returns a copy of them as a NumPy array.")
      .def("__array__", &as_numpy, py::arg("dtype") = py::none(), py::arg("copy") = py::none(), "As numpy().")
      .def(
          "__dlpack__", [](const Array& a, const py::kwargs& arguments) { return download(a).attr("__dlpack__")(**arguments); },
          "A DLPack capsule of a copy in the CPU's memory.")
      .def(
          "__dlpack_device__", [](const Array&) { return py::make_tuple(1, 0); },
          "The CPU's memory, in which __dlpack__() copies.")
      .def("reshape", &reshaped, "A view of another shape; the elements must lie without gaps.")
      .def("copy", &copied, "A new array with the same elements, without gaps.")
      .def(
          "free", [](const Array& a) { a.storage->free(); },
          "Frees the elements now, for all arrays that show them. Buffers of the application are let go of.")
      .def("__len__",
           [](const Array& a) {
             if (a.lies.shape.empty()) throw py::type_error("len() of an array without dimensions");
             return a.lies.shape.front();
           })
      .def("__getitem__", &part, "A view of a part of the array.")
      .def(
          "__setitem__",
          [](const Array& a, const py::object& key, const py::object& value) {
            assign(part(a, key), py::isinstance<Array>(value) ? py::object(download(value.cast<const Array&>())) : value);
          },
          "Replaces a part by the elements of a NumPy array or of a number, which is broadcast.")
      .def(
          "__matmul__",
          [](const Array& a, const Array& b) {
            return multiply({a, b}, plain_terms());
          },
          py::is_operator())
      .def(
          "__matmul__",
          [](const Array& a, const py::array& b) {
            return multiply({a, upload(a.storage->service, b)}, plain_terms());
          },
          py::is_operator())
      .def(
          "__rmatmul__",
          [](const Array& b, const py::array& a) {
            return multiply({upload(b.storage->service, a), b}, plain_terms());
          },
          py::is_operator())
      .def("__repr__", &described)
      .def("__enter__", [](py::object self) { return self; })
      .def("__exit__", [](const Array& a, const py::args&) { a.storage->free(); });
  type.attr("__array_ufunc__") = py::none();  // so that NumPy leaves ndarray @ array to __rmatmul__
}

}  // namespace glgemm::python
