#include "python/product.hpp"

#include <algorithm>
#include <span>
#include <stdexcept>

#include <fmt/core.h>

#include "base/text.hpp"
#include "python/dtype.hpp"
#include "python/placed.hpp"
#include "python/weights.hpp"

namespace glgemm::python {

void Terms::add(const Report& ran) const {
  if (!report) return;
  report->kernel = ran.kernel;
  report->precision = ran.precision;
  report->slices += ran.slices;
  report->dispatches += ran.dispatches;
  report->kernel_time += ran.kernel_time;
}

Scalar scalar(std::complex<double> value, Type type) {
  if (is_complex(type) || value.imag() != 0) return Scalar(value);
  return Scalar(value.real());
}

Type type_of_c(const std::string& who, Type a, Type b, std::optional<Type> wanted) {
  if (!can_multiply(a, b))
    throw py::type_error(
        fmt::format("{}: A is {} and B is {}: their products have no common type of sums, and arrays on the "
                    "device are not converted",
                    who, info(a).numpy, info(b).numpy));
  if (!wanted) return default_type_of_c(a, b);
  if (!is_type_of_c(a, b, *wanted)) {
    const std::string types = a == b ? std::string(info(a).numpy) : fmt::format("{} and {}", info(a).numpy, info(b).numpy);
    throw py::type_error(fmt::format("{}: a product of {} is summed in {}, and an array on the device is not converted to {}",
                                     who, types, info(sum_type(a, b)).numpy, info(*wanted).numpy));
  }
  return *wanted;
}

void check_operands(const std::string& who, const Array& first, const Array& second,
                    std::initializer_list<const std::optional<Array>*> others, const char* quantised) {
  const auto check_engine = [&](const Array& other) {
    if (other.storage->service != first.storage->service)
      throw std::invalid_argument(who + ": the arrays belong to different engines");
  };
  check_engine(second);
  for (const std::optional<Array>* const other : others) {
    if (!*other) continue;
    check_engine(**other);
    if (elements_of(**other)->quantization) throw py::type_error(fmt::format("{}: {}", who, quantised));
  }
}

namespace {

/// A NumPy array on its way to the device, or from there.
struct HostOperand {
  explicit HostOperand(const py::array& given) : array(given) {
    const Type type = type_of_object(given.dtype());
    const auto layout = strided(given, type);
    auto stacked_lines = layout ? stacked(*layout) : std::nullopt;
    if (!stacked_lines) {
      array = py::module_::import("numpy").attr("array")(given, py::arg("order") = "C");
      is_copied = true;
      stacked_lines = stacked(*strided(array, type));
    }
    lines = *stacked_lines;
    data = const_cast<void*>(array.data());
  }

  py::array array;
  Stacked lines{};
  bool is_copied = false;  ///< since no leading dimension describes it
  void* data = nullptr;

  const Strided& on_device() const { return lines.packed; }
  std::int64_t bytes() const { return lines.lines * lines.width * element_bytes(on_device().type); }
  /// Elements on the device that have room for all of it.
  Placed room(Engine& engine) const {
    return {new_elements(nullptr, engine, lines.lines, lines.width, on_device().type), on_device()};
  }
  Placed carry(Engine& engine) const {
    Placed placed = room(engine);
    engine.upload(data, lines.ld, placed.elements->matrix->view());
    return placed;
  }
};

}  // namespace

void multiply(const std::shared_ptr<Service>& service, const HostProduct& product, const Terms& terms) {
  const HostOperand a(product.a), b(product.b), c(product.c);
  std::optional<HostOperand> bias, residual;
  if (product.bias) bias.emplace(*product.bias);
  if (product.residual) residual.emplace(*product.residual);
  if (c.on_device().size() == 0) return;
  Report ran;
  service->run(terms.who.c_str(), [&](Engine& engine, Interrupt& interrupt) {
    const Placed on_a = a.carry(engine), on_b = b.carry(engine);
    interrupt.check();
    const Placed on_c = terms.beta != 0.0 ? c.carry(engine) : c.room(engine);
    std::optional<Placed> on_bias, on_d;
    if (residual) on_d = residual->carry(engine);
    BuiltGemm built(on_a, on_b, on_c, terms, on_d);
    if (bias) built.add_bias(on_bias.emplace(bias->carry(engine)));
    execute(engine, built.gemm, terms.options, interrupt, terms.report ? &ran : nullptr);
    interrupt.check();
    engine.download(on_c.elements->matrix->view(), c.data, c.lines.ld);
  });
  terms.add(ran);
  if (c.is_copied) py::module_::import("numpy").attr("copyto")(product.c, c.array);
}

namespace {

std::string storage_of(const char* name, const py::array& given, const HostOperand& operand) {
  const Strided& layout = operand.on_device();
  const std::string what = fmt::format("{}: {} {}", name, text(layout.shape), info(layout.type).numpy);
  if (operand.is_copied)
    return fmt::format("{}, copied on the host first: neither op nor ld says its strides of {} bytes\n", what,
                       text({given.strides(), given.strides() + given.ndim()}));
  const bool by_rows = matrix_lines(layout)->layout == Layout::row_major;
  return fmt::format("{}, no copy on the host: {}, ld {}\n", what, by_rows ? "row-major" : "column-major", operand.lines.ld);
}

}  // namespace

std::string explain(const std::shared_ptr<Service>& service, const HostProduct& product, const Terms& terms) {
  const HostOperand a(product.a), b(product.b), c(product.c);
  std::string lines = storage_of("A", product.a, a) + storage_of("B", product.b, b) + storage_of("C", product.c, c);
  const auto placed = [&](unsigned name, const HostOperand& operand) {  // in a buffer that nothing asks for
    return Placed{std::make_shared<const Elements>(service, nullptr, name), operand.on_device()};
  };
  const BuiltGemm built(placed(1, a), placed(2, b), placed(3, c), terms);
  service->run(terms.who.c_str(), [&](Engine& engine, Interrupt&) {
    lines += plan_text(engine, built.gemm, terms.options) + memory_text(engine, a.bytes() + b.bytes() + c.bytes());
  });
  return lines;
}

Activation activation_of(const std::string& who, const py::object& given) {
  if (given.is_none()) return {};
  const auto known = std::span(activation_table).subspan(1);  // without none, which is None
  const auto message = [&] {
    const auto as_python = [](const ActivationInfo& row) {
      return row.parameters.empty() ? fmt::format("'{}'", row.name) : fmt::format("('{}', {})", row.name, row.parameters);
    };
    return fmt::format("{}: the activation is {} and must be one of {}", who, repr(given), names_of(known, as_python));
  };
  std::string name;
  std::vector<double> numbers;
  try {
    const py::tuple words = py::isinstance<py::str>(given) ? py::make_tuple(given) : given.cast<py::tuple>();
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (i == 0) name = words[i].cast<std::string>();
      if (i > 0) numbers.push_back(words[i].cast<double>());
    }
  } catch (const py::cast_error&) {  // what pybind11 says names nothing
    throw py::type_error(message());
  }
  for (const ActivationInfo& row : known)
    if (row.name == name && row.parameter_count == numbers.size()) return Activation::of(row.kind, numbers);
  throw std::invalid_argument(message());
}

namespace {

/// Takes any type that Python makes a complex number of.
std::complex<double> complex_of(const std::string& what, const py::object& given) {
  const Py_complex value = PyComplex_AsCComplex(given.ptr());
  if (value.real != -1.0 || !PyErr_Occurred()) return {value.real, value.imag};
  const py::error_already_set error;
  if (error.matches(PyExc_OverflowError)) throw std::invalid_argument(what + " is larger than any float");
  if (!error.matches(PyExc_TypeError)) throw error;
  throw py::type_error(fmt::format("{} is {} and must be a number", what, repr(given)));
}

Op op_of(const std::string& name) {
  return name == "C" ? Op::conjugate_transpose : Op::none;  // a transpose is said by strides
}

Terms terms_of(const std::string& who, const py::object& alpha, const py::object& beta, const std::string& op_a,
               const std::string& op_b, const py::object& activation, const py::object& kernel, const py::object& split_k,
               const py::object& precision, const std::shared_ptr<Told>& report) {
  if (report) *report = {};
  Terms terms{.who = who,
              .alpha = complex_of(who + ": alpha", alpha),
              .beta = complex_of(who + ": beta", beta),
              .op_a = op_of(op_a),
              .op_b = op_of(op_b),
              .activation = activation_of(who, activation),
              .report = report};
  if (!kernel.is_none())
    terms.options.kernel = parse_kernel(value_of<std::string>(who + ": the kernel", kernel, "a name or None"));
  terms.options.split_k = whole_number(who + ": split_k", split_k);
  terms.options.precision = parse_precision(
      value_of<std::string>(who + ": the precision", precision, "one of 'standard', 'fast', 'extended' and 'reproducible'"));
  return terms;
}

}  // namespace

void define_terms(py::module_& module) {
  py::class_<Terms>(module, "Terms")
      .def(py::init(&terms_of), py::arg("who"), py::arg("alpha") = 1, py::arg("beta") = 0, py::arg("op_a") = "N",
           py::arg("op_b") = "N", py::arg("activation") = py::none(), py::kw_only(), py::arg("kernel"), py::arg("split_k") = 0,
           py::arg("precision"), py::arg("report") = py::none());
  py::class_<HostProduct>(module, "HostProduct")
      .def(py::init<py::array, py::array, py::array, std::optional<py::array>, std::optional<py::array>, std::optional<HostCodes>,
                    std::optional<HostCodes>>(),
           py::arg("a"), py::arg("b"), py::arg("c"), py::arg("bias") = py::none(), py::arg("residual") = py::none(),
           py::arg("codes_a") = py::none(), py::arg("codes_b") = py::none());
}

}  // namespace glgemm::python
