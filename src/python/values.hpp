// Python's values as C++'s; an error names the argument and shows what was given.
#pragma once

#include <fmt/core.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "python/pybind.hpp"

namespace glgemm::python {

using Sizes = std::vector<std::int64_t>;

inline std::string repr(const py::object& object) {
  return py::repr(object).cast<std::string>();
}

/// @throws py::type_error  "WHAT is GIVEN and must be WANTED"
template <class T>
T value_of(const std::string& what, const py::object& given, const char* wanted) {
  try {
    return given.cast<T>();
  } catch (const py::cast_error&) {  // what pybind11 says names nothing
    throw py::type_error(fmt::format("{} is {} and must be {}", what, repr(given), wanted));
  }
}

inline double seconds_of(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

/// A whole number of 64 bits, of any type that Python takes for an index.
/// @throws py::type_error, py::value_error  it is none, or a larger one; `what` begins the message
std::int64_t whole_number(const std::string& what, const py::object& given);

/// A shape, or strides: a whole number, or a sequence of them.
/// @throws py::type_error, py::value_error  as whole_number()
Sizes whole_numbers(const std::string& what, const py::object& given);

/// What os.PathLike or a string says.  @throws py::type_error  it is neither
std::string path_of(const std::string& what, const py::object& given);

}  // namespace glgemm::python
