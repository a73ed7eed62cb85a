// Views of device arrays: other arrays of the same elements, by NumPy's rules.
#pragma once

#include "python/array.hpp"
#include "python/pybind.hpp"

namespace glgemm::python {

/// A NumPy array with the array's shape and strides, of which NumPy makes views. Its elements are not to be read.
py::array outline(const Array& array);

/// What array[key] is: an array of numbers in the key becomes a table.
/// @throws py::index_error  what the key has is none of these, or out of bounds
Array part(const Array& array, const py::object& key);
Array transposed(const Array& array);
Array matrix_transposed(const Array& array);
Array reshaped(const Array& array, const py::args& sizes);

/// The elements with that index of a dimension that has a table.
Array entry(const Array& array, std::size_t dimension, std::int64_t index);

}  // namespace glgemm::python
