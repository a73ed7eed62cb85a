#include "python/dtype.hpp"

#include <array>
#include <string>

namespace glgemm::python {

std::optional<Type> type_of_dtype(const py::dtype& dtype) {
  constexpr int first_of_others = 24;  // NumPy's own dtypes have smaller numbers
  if (dtype.byteorder() == '>') return std::nullopt;
  if (dtype.num() >= first_of_others) {
    const auto name = py::str(dtype.attr("name")).cast<std::string>();
    for (const Type type : all_types)
      if (info(type).npy.empty() && name == info(type).numpy) return type;
    return std::nullopt;
  }
  const std::string code = std::string(1, dtype.kind()) + std::to_string(dtype.itemsize());
  for (const Type type : all_types)
    if (code == info(type).npy) return type;
  return std::nullopt;
}

Type type_of_object(const py::object& dtype) {
  const py::dtype given = py::dtype::from_args(dtype);
  if (const auto type = type_of_dtype(given)) return *type;
  throw py::type_error("glgemm has no matrices of " + py::str(py::handle(given)).cast<std::string>());
}

std::optional<Type> optional_type(const py::object& dtype) {
  return dtype.is_none() ? std::nullopt : std::optional(type_of_object(dtype));
}

py::dtype dtype_of(Type type) {
  // Never destroyed: Python may be gone by then.
  static auto& known = *new std::array<py::object, all_types.size()>;
  py::object& dtype = known[static_cast<std::size_t>(type)];
  if (!dtype) {
    const std::string name(info(type).numpy);
    dtype = info(type).npy.empty() ? py::dtype::from_args(py::module_::import("ml_dtypes").attr(name.c_str())) : py::dtype(name);
  }
  return py::reinterpret_borrow<py::dtype>(dtype);
}

}  // namespace glgemm::python
