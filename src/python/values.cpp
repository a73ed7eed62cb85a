#include "python/values.hpp"

namespace glgemm::python {
namespace {

std::int64_t number_of(const py::handle& given) {
  const py::ssize_t number = PyNumber_AsSsize_t(given.ptr(), PyExc_OverflowError);
  if (number == -1 && PyErr_Occurred()) throw py::error_already_set();
  return number;
}

/// Runs `read`, whose errors become errors that name `what`.
template <class Read>
auto named(const std::string& what, const py::object& given, const char* wanted, const Read& read) {
  try {
    return read();
  } catch (const py::error_already_set& error) {
    const bool is_large = error.matches(PyExc_OverflowError);
    if (!is_large && !error.matches(PyExc_TypeError)) throw;
    const std::string message = fmt::format("{} is {} and must be {}", what, repr(given), wanted);
    if (is_large) throw py::value_error(message + " of 64 bits");
    throw py::type_error(message);
  }
}

}  // namespace

std::int64_t whole_number(const std::string& what, const py::object& given) {
  return named(what, given, "a whole number", [&] { return number_of(given); });
}

Sizes whole_numbers(const std::string& what, const py::object& given) {
  return named(what, given, "whole numbers", [&] {
    if (PyIndex_Check(given.ptr()) && !PySequence_Check(given.ptr())) return Sizes{number_of(given)};  // NumPy's arrays are both
    Sizes numbers;
    for (const py::handle one : given) numbers.push_back(number_of(one));
    return numbers;
  });
}

std::string path_of(const std::string& what, const py::object& given) {
  return named(what, given, "a path", [&] { return py::module_::import("os").attr("fsencode")(given).cast<std::string>(); });
}

}  // namespace glgemm::python
