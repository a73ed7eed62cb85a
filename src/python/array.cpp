#include "python/array.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

#include <fmt/core.h>

#include "python/dtype.hpp"
#include "python/placed.hpp"
#include "python/views.hpp"
#include "python/weights.hpp"

namespace glgemm::python {
namespace {

/// All elements that an array reaches, as one line.
BufferView span_of(const Elements& elements, const Strided& layout) {
  const auto [lowest, highest] = layout.reach();
  const std::int64_t width = layout.size() > 0 ? highest - lowest + 1 : 0;
  return view_of_lines(elements, layout.type, 1, width, width, layout.offset + lowest);
}

/// The elements of an array whose lines are these.
BufferView view_of(const Elements& elements, const Strided& layout, const Stacked& lines) {
  return view_of_lines(elements, layout.type, lines.lines, lines.width, lines.ld, layout.offset);
}

/// The array's elements in `span`, which has all that it reaches, as NumPy's view of them.
py::array of_span(const Strided& layout, const py::array& span) {
  const char* first = static_cast<const char*>(span.data()) - layout.reach().first * element_bytes(layout.type);
  return py::array(span.dtype(), layout.shape, strides_in_bytes(layout), first, span);
}

void read(Service& service, const BufferView& view, py::array& host) {
  void* to = host.mutable_data();
  service.run("numpy", [&](Engine& engine, Interrupt&) { engine.download(view, to); });
}

py::array read_span(Service& service, const BufferView& span) {
  py::array host(dtype_of(span.type), Sizes{span.columns});
  read(service, span, host);
  return host;
}

bool repeats(const Strided& layout) {
  for (std::size_t i = 0; i < layout.dimensions(); ++i)
    if (layout.shape[i] > 1 && layout.strides[i] == 0 && !layout.has_table(i)) return true;
  return false;
}

}  // namespace

Strided at_least_2d(Strided array) {
  while (array.dimensions() < 2) array.insert(0);
  return array;
}

std::shared_ptr<const Elements> elements_of(const Array& array) {
  const std::shared_ptr<const Elements>& elements = array.storage->elements;
  if (!elements) throw std::invalid_argument("the array is freed, or its engine is closed");
  if (!array.owner) return elements;
  struct WithOwner {
    std::shared_ptr<const Elements> elements;
    py::object object;
    ~WithOwner() {  // on any thread
      const py::gil_scoped_acquire gil;
      object = {};
    }
  };
  const std::shared_ptr<WithOwner> both(new WithOwner{elements, array.owner.attr("kept")});
  return {both, elements.get()};
}

std::shared_ptr<const Elements> new_elements(const std::shared_ptr<Service>& service, Engine& engine, std::int64_t rows,
                                             std::int64_t columns, Type type) {
  return std::make_shared<const Elements>(service, std::make_unique<DeviceMatrix>(engine, rows, columns, type));
}

Array array_of(std::shared_ptr<const Elements> elements, const Strided& layout, const py::object& owner) {
  return {std::make_shared<Storage>(std::move(elements), owner), layout, owner};
}

BufferView view_of_lines(const Elements& elements, Type type, std::int64_t lines, std::int64_t width, std::int64_t ld,
                         std::int64_t offset) {
  if (elements.quantization) return view_of_codes(elements, lines, width, ld, offset);
  BufferView view{.buffer = elements.buffer,
                  .rows = lines,
                  .columns = width,
                  .ld = std::max<std::int64_t>(1, lines > 1 ? ld : width),
                  .offset_bytes = offset * element_bytes(type),
                  .type = type};
  if (!elements.matrix) return view;
  const BufferView whole = elements.matrix->view();
  view.buffer = whole.buffer;
  if (whole.bands.empty() || lines == 0 || width == 0) return view;
  if (lines > 1 && ld != whole.columns)
    throw std::invalid_argument(
        fmt::format("an array of {}x{} lies in several buffers, since the driver gives none that is so "
                    "large: whole rows of it, or parts of them, can be used alone",
                    whole.rows, whole.columns));
  return elements.matrix->view(offset / whole.columns, offset % whole.columns, lines, width);
}

Array empty(const std::shared_ptr<Service>& service, Type type, const Sizes& shape) {
  const Strided layout = dense(type, shape);
  const std::int64_t columns = shape.empty() ? 1 : shape.back();
  const std::int64_t rows = shape.empty() ? 1 : product_of({shape.begin(), shape.end() - 1});
  std::shared_ptr<const Elements> elements;
  service->run("empty", [&](Engine& engine, Interrupt&) { elements = new_elements(service, engine, rows, columns, type); });
  return array_of(std::move(elements), layout);
}

namespace {

/// Strides and offset of an array in a buffer, counted in elements.
Strided in_buffer(Type type, const Sizes& shape, std::int64_t offset, const py::object& given_strides) {
  Strided layout = dense(type, shape);
  const std::int64_t bytes = element_bytes(type);
  const auto in_elements = [&](const char* what, std::int64_t given) {
    if (given % bytes == 0) return given / bytes;
    throw std::invalid_argument(fmt::format("wrap: the {} {} is no multiple of the element's {} bytes", what, given, bytes));
  };
  if (std::any_of(shape.begin(), shape.end(), [](std::int64_t size) { return size < 0; }))
    throw std::invalid_argument(fmt::format("wrap: the shape {} has a negative size", text(shape)));
  layout.offset = in_elements("offset", offset);
  if (given_strides.is_none()) return layout;
  const Sizes strides = whole_numbers("wrap: strides", given_strides);
  if (strides.size() != shape.size())
    throw std::invalid_argument(fmt::format("wrap: {} strides for {} dimensions", strides.size(), shape.size()));
  std::transform(strides.begin(), strides.end(), layout.strides.begin(),
                 [&](std::int64_t stride) { return in_elements("stride", stride); });
  return layout;
}

}  // namespace

Array wrap(const std::shared_ptr<Service>& service, unsigned buffer, const py::object& owner, const py::object& given_shape,
           const py::object& dtype, const py::object& offset, const py::object& strides) {
  const Sizes shape = whole_numbers("wrap: the shape", given_shape);
  const Type type = type_of_object(dtype);
  const Strided layout = in_buffer(type, shape, whole_number("wrap: the offset", offset), strides);
  const std::string what = fmt::format("wrap: {} {}", text(shape), info(type).numpy);
  double reach = static_cast<double>(layout.offset);
  for (std::size_t i = 0; i < shape.size(); ++i)
    reach += std::abs(static_cast<double>(layout.strides[i])) * static_cast<double>(std::max<std::int64_t>(1, shape[i]) - 1);
  if (reach * static_cast<double>(element_bytes(type)) >= 0x1p62)
    throw std::invalid_argument(what + " with such strides reaches further than any buffer");
  const std::int64_t first = layout.offset + layout.reach().first;
  if (first < 0) throw std::invalid_argument(fmt::format("{} starts at byte {}", what, first * element_bytes(type)));
  const auto elements = std::make_shared<const Elements>(service, nullptr, buffer);
  const BufferView span = span_of(*elements, layout);
  service->run("wrap", [&](Engine& engine, Interrupt&) {
    // A product without columns checks its operands and reads none of them.
    const Gemm nothing{.a = span,
                       .b = {.buffer = buffer, .rows = span.columns, .columns = 0, .type = type},
                       .c = {.buffer = buffer, .rows = 1, .columns = 0, .type = accumulator(type)}};
    try {
      engine.gemm(nothing);
    } catch (const Unsupported&) {  // of the type for products; its elements can be copied
    } catch (const std::invalid_argument& error) {
      const std::string said = error.what(), operand = fmt::format("gemm: A of 1x{0} with ld {0}", span.columns);
      throw std::invalid_argument(what + (said.starts_with(operand) ? said.substr(operand.size()) : ": " + said));
    }
  });
  return array_of(elements, layout, owner.is_none() ? py::object() : owner);
}

std::optional<Strided> strided(const py::array& host, Type type) {
  const py::ssize_t bytes = element_bytes(type);
  Strided layout{type, {host.shape(), host.shape() + host.ndim()}};
  if (layout.size() == 0) return dense(type, layout.shape);  // whose strides mean nothing
  for (py::ssize_t i = 0; i < host.ndim(); ++i) {
    if (host.strides(i) % bytes != 0) return std::nullopt;
    layout.strides.push_back(host.strides(i) / bytes);
  }
  return layout;
}

py::array host_array(const Strided& packed) {
  return py::array(dtype_of(packed.type), packed.shape, strides_in_bytes(packed));
}

Array upload(const std::shared_ptr<Service>& service, const py::array& host) {
  const Type type = type_of_object(host.dtype().attr("newbyteorder")("="));
  Array array = empty(service, type, {host.shape(), host.shape() + host.ndim()});
  assign(array, host);
  return array;
}

Array copied(const Array& array) {
  return upload(array.storage->service, download(array));
}

std::int64_t bytes_of(const Array& array) {
  const Elements* elements = array.storage->elements.get();
  const Strided& layout = array.layout;
  if (!elements || !elements->quantization || layout.size() == 0) return layout.size() * element_bytes(layout.type);
  std::int64_t k = layout.size();
  for (std::size_t i = 0; i < layout.dimensions(); ++i)
    if (layout.strides[i] == 1) k = std::min(k, layout.shape[i]);
  const QuantizedBytes bytes = quantized_bytes(elements->quantization, layout.size() / k, k);
  return bytes.codes + bytes.scales + bytes.zeros;
}

py::array download(const Array& array) {
  const std::shared_ptr<const Elements> elements = elements_of(array);
  const Strided matrix = at_least_2d(array.layout);
  if (matrix.size() == 0) return host_array(dense(matrix.type, array.layout.shape));
  if (const auto dimension = array.layout.gathered()) {
    py::list entries;
    for (std::int64_t i = 0; i < array.layout.shape[*dimension]; ++i) entries.append(download(entry(array, *dimension, i)));
    return py::module_::import("numpy").attr("stack")(entries, *dimension);
  }
  if (elements->quantization) return decoded(*elements, array.layout);
  Service& service = *array.storage->service;
  const auto lines = repeats(matrix) ? std::nullopt : stacked(matrix);
  if (!lines)
    return py::reinterpret_borrow<py::array>(
        of_span(array.layout, read_span(service, span_of(*elements, array.layout))).attr("copy")());
  const auto added = static_cast<std::ptrdiff_t>(matrix.dimensions() - array.layout.dimensions());
  const Strided packed{matrix.type, array.layout.shape, {lines->packed.strides.begin() + added, lines->packed.strides.end()}};
  py::array host = host_array(added > 0 ? dense(packed.type, packed.shape) : packed);
  read(service, view_of(*elements, matrix, *lines), host);
  return host;
}

void assign(const Array& array, const py::object& host) {
  const std::shared_ptr<const Elements> elements = elements_of(array);
  const py::module_ numpy = py::module_::import("numpy");
  py::module_::import("glgemm._arrays").attr("refuse_mask")(host);
  if (elements->quantization) throw py::type_error("a quantised array cannot be written: quantize() makes a new one");
  const Strided matrix = at_least_2d(array.layout);
  if (repeats(matrix)) throw std::invalid_argument("an array that repeats its elements cannot be written");
  if (matrix.size() == 0) return;
  if (const auto dimension = array.layout.gathered()) {
    const py::array all = host_array(dense(array.layout.type, array.layout.shape));
    numpy.attr("copyto")(all, host, "same_kind");  // all are there before one is written
    for (std::int64_t i = 0; i < array.layout.shape[*dimension]; ++i)
      assign(entry(array, *dimension, i), numpy.attr("take")(all, i, *dimension));
    return;
  }
  const auto write = [&](const BufferView& view, const py::array& from, std::int64_t ld) {
    const void* data = from.data();
    array.storage->service->run("asarray", [&](Engine& engine, Interrupt&) { engine.upload(data, ld, view); });
  };
  const auto lines = stacked(matrix);
  if (!lines) {
    const BufferView view = span_of(*elements, array.layout);
    const py::array span = read_span(*array.storage->service, view);
    numpy.attr("copyto")(of_span(array.layout, span), host, "same_kind");
    return write(view, span, 0);
  }
  const BufferView view = view_of(*elements, matrix, *lines);
  if (py::isinstance<py::array>(host)) {  // without a copy, if its lines have the same order
    const auto given = py::reinterpret_borrow<py::array>(host);
    const auto layout = type_of_dtype(given.dtype()) == matrix.type ? strided(given, matrix.type) : std::nullopt;
    const auto from = layout && layout->shape == array.layout.shape ? stacked(at_least_2d(*layout)) : std::nullopt;
    if (from && from->lines == lines->lines && from->width == lines->width && from->packed.strides == lines->packed.strides)
      return write(view, given, from->ld);
  }
  const py::array copy = host_array(lines->packed);
  numpy.attr("copyto")(copy, host, "same_kind");
  write(view, copy, 0);
}

namespace {

/// DLPack's name of the CPU's memory.
py::tuple cpu_device() {
  return py::make_tuple(1, 0);
}

py::object as_numpy(const Array& array, const py::object& dtype, const py::object& copy) {
  if (!copy.is_none() && !copy.cast<bool>())
    throw std::invalid_argument("__array__: the elements are on the device and cannot be had without a copy");
  const py::array host = download(array);
  if (dtype.is_none()) return host;
  return host.attr("astype")(dtype, py::arg("copy") = false);
}

/// As the array API has it. NumPy before 2.1 knows neither `max_version` nor `copy`, which it may do without.
py::object as_dlpack(const Array& array, const py::object& stream, const py::object& max_version, const py::object& device,
                     const py::object& copy) {
  const char* const who = "__dlpack__: the elements are copied to the CPU's memory";
  if (!stream.is_none()) throw py::buffer_error(fmt::format("{}, where the stream is None, not {}", who, repr(stream)));
  if (!device.is_none() && !device.equal(cpu_device()))
    throw py::buffer_error(fmt::format("{}, device (1, 0), not to {}", who, repr(device)));
  if (!copy.is_none() && !copy.cast<bool>())
    throw py::buffer_error("__dlpack__: the elements are on the device and cannot be had without a copy");
  const py::object host = download(array);
  py::dict known;
  if (!max_version.is_none()) known["max_version"] = max_version;
  if (!copy.is_none()) known["copy"] = copy;
  try {
    return host.attr("__dlpack__")(**known);
  } catch (const py::error_already_set& error) {
    if (known.empty() || !error.matches(PyExc_TypeError)) throw;
  }
  return host.attr("__dlpack__")();
}

[[noreturn]] bool refuse_comparison(const Array&, const py::object&) {
  throw py::type_error(
      "an array on the device is not compared: x.numpy() == y compares elements, 'x is y' tells whether it is that array");
}

Array matmul(const Array& a, const Array& b) {
  static const Terms plain;
  return PlacedProduct({a, b}, plain, {}).run();
}

std::string described(const Array& array) {
  const Elements* elements = array.storage->elements.get();
  const Quantization quantization = elements ? elements->quantization : Quantization();
  return fmt::format(
      "<glgemm.Array of {}, shape {}, {}{}>", quantization ? to_string(quantization) : std::string(info(array.layout.type).numpy),
      text(array.layout.shape), elements ? "on " : "freed", elements ? array.storage->service->device().renderer : std::string());
}

int visit_owner(const Array& array, visitproc visit, void* arg) {
  Py_VISIT(array.owner.ptr());
  return 0;
}

}  // namespace

void define_array(py::module_& module) {
  py::class_<Array> type(module, "Array", shows_kept<Array, visit_owner>(),
                         R"(A matrix, a vector or a batch of matrices on the device.

Made by Engine.asarray(), Engine.empty(), Engine.wrap() and by products of arrays. Indexing with integers, slices, '...' and
None makes views of the same elements, as T, mT and reshape() do. So does an array or a list of integers, x[[3, 1, 4]] or
x[:, numbers], of one dimension and beside slices, '...' and None alone; numbers on the device are read. `a @ b` is computed
on the device and stays there; numpy() copies the elements to the host. Elements are freed with the last array that shows
them, or by free().)");
  for (const auto& [name, doc] : std::to_array<std::pair<const char*, const char*>>(
           {{"shape", "Tuple of the dimensions' sizes."},
            {"dtype", "NumPy's dtype of the elements."},
            {"ndim", "The number of dimensions."},
            {"size", "The number of elements."},
            {"itemsize", "The bytes of an element, or of the number that a code stands for."},
            {"strides",
             "Bytes from an element to the next one in each dimension, 0 where an array of numbers chose them; of a quantised "
             "array, as if it had its numbers."}}))
    type.def_property_readonly(
        name, [name = name](const Array& a) { return py::object(outline(a).attr(name)); }, doc);
  type.def_property_readonly(
          "offset", [](const Array& a) { return a.layout.offset * element_bytes(a.layout.type); },
          "The byte of the buffer at which the first element lies.")
      .def_property_readonly(
          "buffer", [](const Array& a) { return view_of_lines(*elements_of(a), a.layout.type, 0, 0, 1, 0).buffer; },
          "The name of the OpenGL buffer; 0 for an array in several buffers.")
      .def_property_readonly("nbytes", &bytes_of, "The bytes of all elements, or of their codes, scales and zeros.")
      .def_property_readonly(
          "format",
          [](const Array& a) {
            const Quantization quantization = elements_of(a)->quantization;
            return quantization ? std::optional(to_string(quantization)) : std::nullopt;
          },
          "What the codes of a quantised array are, such as 'q4_k'; None where the elements are numbers.")
      .def_property_readonly("T", &transposed, "A view with the dimensions in reverse order.")
      .def_property_readonly("mT", &matrix_transposed, "A view with the last two dimensions exchanged.")
      .def("numpy", &download,
           "Waits for what writes the elements and returns a copy of them as a NumPy array: of a quantised array, the numbers "
           "that\n"
           "its codes stand for.")
      .def("__array__", &as_numpy, py::arg("dtype") = py::none(), py::arg("copy") = py::none(), "As numpy().")
      .def("__dlpack__", &as_dlpack, py::kw_only(), py::arg("stream") = py::none(), py::arg("max_version") = py::none(),
           py::arg("dl_device") = py::none(), py::arg("copy") = py::none(), "A DLPack capsule of a copy in the CPU's memory.")
      .def(
          "__dlpack_device__", [](const Array&) { return cpu_device(); }, "The CPU's memory, in which __dlpack__() copies.")
      .def("reshape", &reshaped, "A view of another shape; the elements must lie without gaps.")
      .def("copy", &copied, "A new array with the same elements, without gaps; of a quantised array, with its numbers.")
      .def(
          "free", [](const Array& a) { a.storage->free(); },
          "Frees the elements now, for all arrays that show them. Buffers of the application are let go of.")
      .def("__len__", [](const Array& a) { return py::len(outline(a)); })
      .def("__iter__",
           [](const py::object& self) {
             if (self.cast<const Array&>().layout.dimensions() == 0) throw py::type_error("iteration over a 0-d array");
             return py::reinterpret_steal<py::object>(PySeqIter_New(self.ptr()));
           })
      .def("__getitem__", &part, "A view of a part of the array.")
      .def(
          "__setitem__",
          [](const Array& a, const py::object& key, const py::object& value) {
            assign(part(a, key), py::isinstance<Array>(value) ? py::object(download(value.cast<const Array&>())) : value);
          },
          "Replaces a part by the elements of a NumPy array or of a number, which is broadcast.")
      .def("__matmul__", &matmul, py::is_operator())
      .def(
          "__matmul__", [](const Array& a, const py::array& b) { return matmul(a, upload(a.storage->service, b)); },
          py::is_operator())
      .def(
          "__rmatmul__", [](const Array& b, const py::array& a) { return matmul(upload(b.storage->service, a), b); },
          py::is_operator())
      .def("__eq__", &refuse_comparison)
      .def("__bool__",
           [](const Array&) -> bool {
             throw py::type_error("an array on the device has no truth value: x.numpy().any() and all() have one, and x.size");
           })
      .def("__repr__", &described)
      .def("__enter__", [](py::object self) { return self; })
      .def("__exit__", [](const Array& a, const py::args&) { a.storage->free(); });
  type.attr("__array_ufunc__") = py::none();  // so that NumPy leaves ndarray @ array to __rmatmul__
}

}  // namespace glgemm::python
