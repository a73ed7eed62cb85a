// NumPy's dtypes and glgemm's types.
#pragma once

#include <optional>

#include <glgemm/types.hpp>

#include "python/pybind.hpp"

namespace glgemm::python {

/// The type of such elements in this machine's byte order; none if glgemm has none.
std::optional<Type> type_of_dtype(const py::dtype& dtype);
/// The type for anything that NumPy takes as a dtype.  @throws py::type_error  glgemm has none
Type type_of_object(const py::object& dtype);
/// The same, and none for None.
std::optional<Type> optional_type(const py::object& dtype);
/// NumPy's dtype of a type.  @throws py::import_error  the package ml_dtypes has it and is not installed
py::dtype dtype_of(Type type);

}  // namespace glgemm::python
