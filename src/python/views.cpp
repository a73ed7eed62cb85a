#include "python/views.hpp"

#include <fmt/core.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include "python/dtype.hpp"

namespace glgemm::python {
namespace {

/// An address that is never read: only shapes and strides of arrays there are looked at.
char* const nowhere = reinterpret_cast<char*>(std::uintptr_t{1} << 46);

}  // namespace

py::array outline(const Array& array) {
  return py::array(dtype_of(array.layout.type), array.layout.shape, strides_in_bytes(array.layout), nowhere, py::none());
}

namespace {

/// The part of the array that `view`, NumPy's function of such an array, shows.
template <class View>
Array shown(const Array& array, const View& view) {
  const auto made = py::reinterpret_borrow<py::array>(view(outline(array)));
  const std::int64_t bytes = element_bytes(array.layout.type);
  const auto dimensions = static_cast<std::size_t>(made.ndim());
  Strided layout{array.layout.type, {made.shape(), made.shape() + made.ndim()}};
  for (py::ssize_t i = 0; i < made.ndim(); ++i) layout.strides.push_back(made.strides(i) / bytes);
  layout.offset = array.layout.offset + (static_cast<const char*>(made.data()) - nowhere) / bytes;
  for (std::size_t i = 0; i < array.layout.tables.size() && layout.size() > 0; ++i) {
    if (!array.layout.tables[i]) continue;
    // An array of what the table adds to each element's offset shows which dimension has the table now.
    std::vector<py::ssize_t> strides(array.layout.dimensions(), 0);
    strides[i] = sizeof(std::int64_t);
    const auto added = py::reinterpret_borrow<py::array>(
        view(py::array(py::dtype::of<std::int64_t>(), array.layout.shape, strides, array.layout.tables[i]->data(), made)));
    const auto* const first = static_cast<const std::int64_t*>(added.data());
    std::size_t now = 0;
    while (now < dimensions && (layout.shape[now] == 1 || added.strides(static_cast<py::ssize_t>(now)) == 0)) ++now;
    if (now == dimensions) {
      layout.offset += *first;
      continue;
    }
    const std::int64_t step = added.strides(static_cast<py::ssize_t>(now)) / static_cast<py::ssize_t>(sizeof(std::int64_t));
    Sizes table;
    for (std::int64_t k = 0; k < layout.shape[now]; ++k) table.push_back(first[k * step]);
    layout.tables.resize(dimensions);
    layout.tables[now] = std::make_shared<const Sizes>(std::move(table));
  }
  return array.with(std::move(layout));
}

/// What a key has for a dimension as NumPy's array, if it is one, a list or a boolean; numbers on the device are read.
std::optional<py::array> array_in_key(const py::object& key) {
  if (PyLong_CheckExact(key.ptr()) || PySlice_Check(key.ptr())) return std::nullopt;  // soon: most keys are these
  if (py::isinstance<Array>(key)) return download(key.cast<const Array&>());
  const py::module_ numpy = py::module_::import("numpy");
  if (!PyBool_Check(key.ptr()) && !py::isinstance<py::list>(key) && !py::isinstance<py::array>(key) &&
      !py::isinstance(key, numpy.attr("generic")))
    return std::nullopt;
  const py::array array = numpy.attr("asarray")(key);
  if (py::isinstance<py::list>(key) && array.size() == 0 && array.ndim() == 1) return array.attr("astype")("int64");
  return array;
}

/// @throws py::index_error  these are no numbers that choose elements of one dimension
void check_numbers(const py::array& numbers) {
  const char kind = numbers.dtype().kind();
  if (kind == 'b')
    throw py::index_error(
        "an array on the device takes no booleans as indices: x[None] adds a dimension, x[numpy.flatnonzero(mask)] chooses by a "
        "mask");
  if (numbers.ndim() > 1 || (kind != 'i' && kind != 'u'))
    throw py::index_error(
        fmt::format("an array on the device takes an array of whole numbers with one dimension as an index; this one is {} {}",
                    text({numbers.shape(), numbers.shape() + numbers.ndim()}), py::str(numbers.dtype()).cast<std::string>()));
}

/// The numbers of an index, each from 0 on below `size`.
Sizes indices_of(const py::array& numbers, std::size_t dimension, std::int64_t size) {
  Sizes indices = numbers.attr("astype")("int64").attr("tolist")().cast<Sizes>();
  for (std::int64_t& index : indices) {
    if (index < -size || index >= size)
      throw py::index_error(fmt::format("index {} is out of bounds for axis {} with size {}", index, dimension, size));
    if (index < 0) index += size;
  }
  return indices;
}

/// The array with these indices of a dimension alone, in this order.
Array gathered(Array array, std::size_t dimension, const Sizes& indices) {
  Strided& layout = array.layout;
  Sizes table;
  for (const std::int64_t index : indices) table.push_back(layout.step(dimension, index));
  layout.shape[dimension] = static_cast<std::int64_t>(indices.size());
  if (layout.size() == 0) return array.with(dense(layout.type, layout.shape));
  layout.strides[dimension] = 0;
  layout.tables.resize(layout.dimensions());
  layout.tables[dimension] = table.size() > 1 ? std::make_shared<const Sizes>(std::move(table)) : nullptr;
  if (!layout.tables[dimension]) layout.offset += table[0];
  return array;
}

}  // namespace

Array part(const Array& array, const py::object& key) {
  py::list keys;
  bool has_dots = false, has_number = false;
  std::optional<py::array> chosen;      // an index that is an array of numbers
  std::ptrdiff_t before = 0, from = 0;  // dimensions that the keys before it make, and it and those behind it
  bool is_behind_dots = false;
  for (const py::handle handle : py::isinstance<py::tuple>(key) ? key.cast<py::tuple>() : py::make_tuple(key)) {
    auto one = py::reinterpret_borrow<py::object>(handle);
    const bool is_dots = one.is(py::ellipsis());
    if (const std::optional<py::array> numbers = array_in_key(one)) {
      check_numbers(*numbers);
      if (numbers->ndim() == 0) {
        one = numbers->attr("item")();
      } else {
        if (chosen) throw py::index_error("an array on the device takes one array of integers at a time: x[rows][:, columns]");
        chosen = numbers;
        is_behind_dots = has_dots;
        one = py::slice(std::nullopt, std::nullopt, std::nullopt);
      }
    }
    const bool is_number = PyIndex_Check(one.ptr());
    if (!is_number && !one.is_none() && !is_dots && !py::isinstance<py::slice>(one))
      throw py::index_error("an array on the device takes integers, slices, '...', None and arrays of integers as indices");
    if (is_number) one = py::reinterpret_steal<py::object>(PyNumber_Index(one.ptr()));
    if (!one) throw py::error_already_set();
    has_dots = has_dots || is_dots;
    has_number = has_number || is_number;
    if (!is_number && !is_dots) ++(chosen ? from : before);
    keys.append(one);
  }
  if (chosen && has_number)  // of which NumPy makes more than the elements that both name
    throw py::index_error("an array on the device takes integers and an array of them one after the other: x[rows][:, column]");
  if (!has_dots) keys.append(py::ellipsis());  // NumPy would read a single element
  const Array view = shown(array, [&](const py::array& of) { return of[py::tuple(keys)]; });
  if (!chosen) return view;
  const auto dimension = static_cast<std::size_t>(is_behind_dots ? std::ssize(view.layout.shape) - from : before);
  return gathered(view, dimension, indices_of(*chosen, dimension, view.layout.shape[dimension]));
}

Array transposed(const Array& array) {
  return shown(array, [](const py::array& of) { return of.attr("T"); });
}

Array matrix_transposed(const Array& array) {
  const std::size_t n = array.layout.dimensions();
  if (n < 2) throw std::invalid_argument(fmt::format("mT: the array has {} dimensions, and two are needed", n));
  return shown(array, [](const py::array& of) { return of.attr("swapaxes")(-1, -2); });
}

Array reshaped(const Array& array, const py::args& sizes) {
  const Sizes shape = whole_numbers("reshape: the shape", sizes.size() == 1 ? py::object(sizes[0]) : py::object(sizes));
  if (!is_dense(array.layout)) throw std::invalid_argument("reshape: the array has gaps: reshape a copy()");
  return shown(array, [&](const py::array& of) { return of.attr("reshape")(py::tuple(py::cast(shape))); });
}

/// The elements with that index of a dimension that has a table.
Array entry(const Array& array, std::size_t dimension, std::int64_t index) {
  Array result = array;
  Strided& layout = result.layout;
  const auto at = static_cast<std::ptrdiff_t>(dimension);
  layout.offset += layout.step(dimension, index);
  layout.shape.erase(layout.shape.begin() + at);
  layout.strides.erase(layout.strides.begin() + at);
  layout.tables.erase(layout.tables.begin() + at);
  return result;
}

}  // namespace glgemm::python
