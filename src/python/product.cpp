#include "python/product.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include <glgemm/fence.hpp>
#include <glgemm/job.hpp>
#include <glgemm/plan.hpp>

#include "python/dtype.hpp"

namespace glgemm::python {
namespace {

using namespace std::chrono_literals;

/// Matrices in a buffer.
struct Placed {
  Where where{};
  Strided lies{};
};

Sizes batch_of(const Strided& array) {
  return {array.shape.begin(), array.shape.end() - 2};
}

/// The shape of all items, as NumPy broadcasts.
Sizes broadcast(const Sizes& a, const Sizes& b) {
  Sizes result(std::max(a.size(), b.size()), 1);
  for (std::size_t i = 1; i <= result.size(); ++i) {
    const std::int64_t x = i <= a.size() ? a[a.size() - i] : 1, y = i <= b.size() ? b[b.size() - i] : 1;
    if (x != y && x != 1 && y != 1)
      throw std::invalid_argument("gemm: the batches " + text(a) + " of A and " + text(b) + " of B do not go together");
    result[result.size() - i] = x == 1 ? y : x;
  }
  return result;
}

/// The strides of an operand's matrices in such a batch.
Sizes broadcast_strides(const Strided& array, const Sizes& batch) {
  const std::size_t own = array.dimensions() - 2;
  if (own > batch.size())
    throw std::invalid_argument("gemm: C has " + std::to_string(batch.size()) + " dimensions of a batch, too few");
  Sizes strides(batch.size(), 0);
  for (std::size_t i = 1; i <= own; ++i)
    if (array.shape[own - i] != 1) strides[batch.size() - i] = array.strides[own - i];
  return strides;
}

/// A product as the library takes it, and the arrays to which it refers.
class BuiltGemm {
 public:
  BuiltGemm(const Placed& a, const Placed& b, const Placed& c, const Terms& terms, const std::optional<Placed>& d = {}) {
    gemm.op_a = terms.op_a;
    gemm.op_b = terms.op_b;
    gemm.alpha = scalar(terms.alpha, a.lies.type);
    gemm.beta = scalar(terms.beta, a.lies.type);
    gemm.epilogue.activation = terms.activation;
    const Sizes batch = batch_of(c.lies);
    gemm.batch.count = product_of(batch, batch.size());
    set_batch(batch, {&a, &b, &c, d ? &*d : &c});
    gemm.a = view(a, 0);
    gemm.b = view(b, 1);
    gemm.c = view(c, 2);
    if (d) gemm.epilogue.residual = view(*d, 3);
  }
  BuiltGemm(const BuiltGemm&) = delete;
  BuiltGemm& operator=(const BuiltGemm&) = delete;

  /// The bias is dense.
  void add_bias(const Placed& bias, bool for_each_row) {
    const BufferView values = view_of_lines(bias.where, bias.lies.type, 1, bias.lies.size(), bias.lies.size(), bias.lies.offset);
    gemm.epilogue.bias = for_each_row ? BiasView::for_each_row(values.buffer, values.offset_bytes)
                                      : BiasView::for_each_column(values.buffer, values.offset_bytes);
  }

  Gemm gemm{};

 private:
  /// One stride for each operand, if the batch has an even step everywhere; else all offsets.
  void set_batch(const Sizes& batch, std::array<const Placed*, 4> operands) {
    std::array<Sizes, 4> strides;
    for (std::size_t i = 0; i < 4; ++i) strides[i] = broadcast_strides(operands[i]->lies, batch);
    Sizes sizes;
    std::array<Sizes, 4> steps;
    for (std::size_t d = batch.size(); d-- > 0;) {
      if (batch[d] == 1) continue;
      const bool goes_on = !sizes.empty() && std::all_of(operands.begin(), operands.end(), [&, i = std::size_t{0}](auto) mutable {
        const std::size_t at = i++;
        return strides[at][d] == steps[at].back() * sizes.back();
      });
      if (goes_on) {
        sizes.back() *= batch[d];
        continue;
      }
      sizes.push_back(batch[d]);
      for (std::size_t i = 0; i < 4; ++i) steps[i].push_back(strides[i][d]);
    }
    if (sizes.empty()) return;
    if (sizes.size() == 1 && std::all_of(steps.begin(), steps.end(), [](const Sizes& step) { return step[0] >= 0; })) {
      gemm.batch.stride_a = steps[0][0];
      gemm.batch.stride_b = steps[1][0];
      gemm.batch.stride_c = steps[2][0];
      gemm.batch.stride_d = steps[3][0];
      return;
    }
    for (std::size_t i = 0; i < 4; ++i) {
      offsets_[i] = batch_offsets(batch, strides[i]);
      if (offsets_[i].empty()) continue;
      lowest_[i] = *std::min_element(offsets_[i].begin(), offsets_[i].end());
      for (std::int64_t& offset : offsets_[i]) offset -= lowest_[i];
    }
    gemm.batch.offsets_a = offsets_[0];
    gemm.batch.offsets_b = offsets_[1];
    gemm.batch.offsets_c = offsets_[2];
    gemm.batch.offsets_d = offsets_[3];
  }

  BufferView view(const Placed& operand, std::size_t which) {
    const Strided& lies = operand.lies;
    const MatrixLines lines = *matrix_lines(lies);
    const bool by_rows = lines.layout == Layout::row_major;
    const std::int64_t count = by_rows ? lies.rows() : lies.columns(), width = by_rows ? lies.columns() : lies.rows();
    BufferView view = view_of_lines(operand.where, lies.type, count, width, lines.ld, lies.offset + lowest_[which]);
    if (count > 1) view.ld = lines.ld;
    view.layout = lines.layout;
    view.rows = lies.rows();
    view.columns = lies.columns();
    if (!view.bands.empty() && gemm.batch.count != 1)
      throw std::invalid_argument("gemm: an array that lies in several buffers is no batch");
    return view;
  }

  std::array<Sizes, 4> offsets_{};
  std::array<std::int64_t, 4> lowest_{};
};

/// Multiply-adds from which on a product is done in slices that a signal can end, and how long it works between two looks.
constexpr double long_product = 1 << 26;
constexpr auto longest_budget = 200ms;

double work_of(const Gemm& gemm) {
  const auto inner = gemm.op_a == Op::none ? gemm.a.columns : gemm.a.rows;
  return static_cast<double>(gemm.c.rows) * static_cast<double>(gemm.c.columns) * static_cast<double>(inner) *
         static_cast<double>(gemm.batch.count);
}

/// Enqueues the product; a long one slice by slice, and waits for it, so that a signal ends it.
void execute(Engine& engine, const Gemm& gemm, const PlanOptions& options, Interrupt& interrupt) {
  if (work_of(gemm) < long_product) return engine.gemm(gemm, options);
  Job job = engine.start(gemm, options);
  // The first slices are short, since a program that has not been timed yet may be far slower than expected.
  std::chrono::milliseconds budget(5);
  while (!job.done()) {
    job.advance(budget);
    budget = std::min(2 * budget, std::chrono::milliseconds(longest_budget));
    const Fence fence = job.fence();
    while (!fence.wait(longest_budget)) interrupt.check();
    interrupt.check();
  }
}

std::int64_t inner_rows(const Strided& array, Op op) {
  return op == Op::none ? array.rows() : array.columns();
}
std::int64_t inner_columns(const Strided& array, Op op) {
  return op == Op::none ? array.columns() : array.rows();
}

/// As NumPy's matmul: a vector is a row of A, or a column of B, and its dimension is left out of the result.
Sizes shape_of_result(Strided& a, Strided& b, const Terms& terms) {
  for (const Strided* operand : {&a, &b})
    if (operand->dimensions() == 0) throw std::invalid_argument("matmul: an operand is a scalar, which has no matrix product");
  const bool row = a.dimensions() == 1, column = b.dimensions() == 1;
  if (row) a = at_least_2d(a);
  if (column) {
    b.shape.push_back(1);
    b.strides.push_back(0);
  }
  const std::int64_t m = inner_rows(a, terms.op_a), k = inner_columns(a, terms.op_a), inner = inner_rows(b, terms.op_b),
                     n = inner_columns(b, terms.op_b);
  if (k != inner)
    throw std::invalid_argument("matmul: A is " + text(a.shape) + " and B is " + text(b.shape) + ": the inner sizes " +
                                std::to_string(k) + " and " + std::to_string(inner) + " differ");
  Sizes shape = broadcast(batch_of(a), batch_of(b));
  if (!row) shape.push_back(m);
  if (!column) shape.push_back(n);
  return shape;
}

/// The result with the dimensions that vectors have left out.
Strided as_matrices(Strided c, bool row, bool column) {
  if (row) {
    c.shape.insert(c.shape.end() - (column ? 0 : 1), 1);
    c.strides.insert(c.strides.end() - (column ? 0 : 1), 0);
  }
  if (column) {
    c.shape.push_back(1);
    c.strides.push_back(0);
  }
  return c;
}

/// The array, or where op and ld cannot say how it lies, a copy.
Array expressible(const Array& array, const Strided& matrices) {
  if (matrix_lines(matrices)) return {array.storage, matrices};
  return copied({array.storage, matrices});
}

Type type_of_c(Type type, std::optional<Type> wanted) {
  if (!wanted) return is_type_of_c(type, type) ? type : accumulator(type);
  if (!is_type_of_c(type, *wanted))
    throw py::type_error("matmul: a product of " + std::string(info(type).numpy) + " is summed in " +
                         std::string(info(accumulator(type)).numpy) + ", and an array on the device is not converted to " +
                         std::string(info(*wanted).numpy));
  return *wanted;
}

void check_type_of_extra(const char* name, Type given, Type type) {
  if (given != type)
    throw py::type_error(std::string("gemm: ") + name + " is " + std::string(info(given).numpy) + " and C is " +
                         std::string(info(type).numpy));
}

bool bias_is_for_rows(const Strided& bias, std::int64_t m, std::int64_t n) {
  const Strided matrix = at_least_2d(bias);
  if (matrix.dimensions() == 2 && matrix.rows() == 1 && matrix.columns() == n) return false;
  if (matrix.dimensions() == 2 && matrix.columns() == 1 && matrix.rows() == m) return true;
  throw std::invalid_argument("gemm: the bias is " + text(bias.shape) + " and C is " + std::to_string(m) + "x" +
                              std::to_string(n) + ": a bias is (" + std::to_string(n) + ",), one for each column, or (" +
                              std::to_string(m) + ", 1), one for each row");
}

}  // namespace

Scalar scalar(std::complex<double> value, Type type) {
  if (is_complex(type) || value.imag() != 0) return Scalar(value);
  return Scalar(value.real());
}

Array multiply(const DeviceProduct& product, const Terms& terms, std::optional<Type> c_type) {
  const std::shared_ptr<Service>& service = product.a.storage->service;
  for (const Array* other : {&product.b, product.out ? &*product.out : nullptr, product.bias ? &*product.bias : nullptr,
                             product.residual ? &*product.residual : nullptr})
    if (other && other->storage->service != service)
      throw std::invalid_argument("matmul: the arrays belong to different engines");
  Strided a = product.a.lies, b = product.b.lies;
  if (a.type != b.type)
    throw py::type_error("matmul: A is " + std::string(info(a.type).numpy) + " and B is " + std::string(info(b.type).numpy) +
                         ": arrays on the device are not converted");
  const bool row = a.dimensions() == 1, column = b.dimensions() == 1;
  const Sizes shape = shape_of_result(a, b, terms);
  const Type type = type_of_c(a.type, product.out ? std::optional(product.out->lies.type) : c_type);
  if (product.out && product.out->lies.shape != shape)
    throw std::invalid_argument("matmul: the product is " + text(shape) + " and out is " + text(product.out->lies.shape));

  const bool is_direct = product.out && matrix_lines(as_matrices(product.out->lies, row, column));
  if (product.out && !is_direct && terms.beta != 0.0)
    throw std::invalid_argument("gemm: C has gaps between all elements, or its strides are negative");
  const Array array_a = expressible(product.a, a), array_b = expressible(product.b, b);
  const Strided lies_c = as_matrices(is_direct ? product.out->lies : dense(type, shape), row, column);
  std::optional<Array> array_d, array_bias;
  if (product.residual) {
    const Strided& d = product.residual->lies;
    if (d.shape != shape) throw std::invalid_argument("gemm: C is " + text(shape) + " and D is " + text(d.shape));
    check_type_of_extra("D", d.type, type);
    array_d = expressible(*product.residual, as_matrices(d, row, column));
  }
  const bool bias_for_rows = product.bias && bias_is_for_rows(product.bias->lies, lies_c.rows(), lies_c.columns());
  if (product.bias) {
    check_type_of_extra("the bias", product.bias->lies.type, type);
    array_bias = is_dense(product.bias->lies) ? *product.bias : copied(*product.bias);
  }
  const auto placed = [](const Array& array) { return Placed{where(array), array.lies}; };
  const Placed at_a = placed(array_a), at_b = placed(array_b);
  const auto at_d = array_d ? std::optional(placed(*array_d)) : std::nullopt;
  const auto at_bias = array_bias ? std::optional(placed(*array_bias)) : std::nullopt;
  Placed at_c{is_direct ? where(*product.out) : Where{}, lies_c};
  NewMatrix made(service);
  service->run("matmul", [&](Engine& engine, Interrupt& interrupt) {
    if (!is_direct)
      at_c.where.matrix = &made.make(engine, lies_c.columns() > 0 ? lies_c.size() / lies_c.columns() : 0, lies_c.columns(), type);
    if (lies_c.size() == 0) return;
    BuiltGemm built(at_a, at_b, at_c, terms, at_d);
    if (at_bias) built.add_bias(*at_bias, bias_for_rows);
    execute(engine, built.gemm, terms.options, interrupt);
  });
  if (is_direct) return *product.out;
  const Array c{made.take(), dense(type, shape)};
  if (!product.out) return c;
  assign(*product.out, download(c));
  return *product.out;
}

namespace {

/// A NumPy array on its way to the device, or from there.
struct HostOperand {
  py::array array;
  Stacked lines;
  bool copied = false;  ///< since no ld says how it lies
  void* data = nullptr;

  const Strided& on_device() const { return lines.packed; }
  Type type() const { return lines.packed.type; }
  std::int64_t bytes() const { return lines.lines * lines.width * element_bytes(type()); }
  /// A matrix on the device that has room for all of it.
  DeviceMatrix room(Engine& engine) const { return DeviceMatrix(engine, lines.lines, lines.width, type()); }
  DeviceMatrix carry(Engine& engine) const {
    DeviceMatrix matrix = room(engine);
    engine.upload(data, lines.ld, matrix.view());
    return matrix;
  }
};

bool has_whole_strides(const py::array& array, Type type) {
  return std::all_of(array.strides(), array.strides() + array.ndim(),
                     [&](py::ssize_t stride) { return stride % element_bytes(type) == 0; });
}

HostOperand host_operand(const py::array& given) {
  const Type type = type_of_object(given.dtype());
  HostOperand operand{given, {}, false, nullptr};
  auto lines = has_whole_strides(given, type) ? stacked(strided(given, type)) : std::nullopt;
  if (!lines) {
    operand.array = py::module_::import("numpy").attr("array")(given, py::arg("order") = "C");
    operand.copied = true;
    lines = stacked(strided(operand.array, type));
  }
  operand.lines = *lines;
  operand.data = const_cast<void*>(operand.array.data());
  return operand;
}

}  // namespace

void multiply(const std::shared_ptr<Service>& service, const HostProduct& product, const Terms& terms) {
  const HostOperand a = host_operand(product.a), b = host_operand(product.b), c = host_operand(product.c);
  std::optional<HostOperand> bias, residual;
  if (product.bias) bias = host_operand(*product.bias);
  if (product.residual) residual = host_operand(*product.residual);
  const bool for_rows =
      bias && bias_is_for_rows(strided(bias->array, bias->type()), c.on_device().rows(), c.on_device().columns());
  if (c.on_device().size() == 0) return;
  service->run("matmul", [&](Engine& engine, Interrupt& interrupt) {
    const DeviceMatrix on_a = a.carry(engine), on_b = b.carry(engine);
    interrupt.check();
    const DeviceMatrix on_c = terms.beta != 0.0 ? c.carry(engine) : c.room(engine);
    std::optional<DeviceMatrix> on_bias, on_d;
    if (residual) on_d = residual->carry(engine);
    BuiltGemm built({{&on_a}, a.on_device()}, {{&on_b}, b.on_device()}, {{&on_c}, c.on_device()}, terms,
                    residual ? std::optional(Placed{{&*on_d}, residual->on_device()}) : std::nullopt);
    if (bias) {
      on_bias = bias->carry(engine);
      built.add_bias({{&*on_bias}, bias->on_device()}, for_rows);
    }
    execute(engine, built.gemm, terms.options, interrupt);
    interrupt.check();
    engine.download(on_c.view(), c.data, c.lines.ld);
  });
  if (c.copied) py::module_::import("numpy").attr("copyto")(product.c, c.array);
}

namespace {

std::string how_it_lies(const std::string& name, const py::array& given) {
  const HostOperand operand = host_operand(given);
  std::string line = name + ": " + text(operand.on_device().shape) + " " + std::string(info(operand.type()).numpy);
  if (operand.copied)
    return line + ", copied on the host first: neither op nor ld says its strides of " +
           text(Sizes(given.strides(), given.strides() + given.ndim())) + " bytes\n";
  const MatrixLines lines = *matrix_lines(operand.on_device());
  return line + ", no copy on the host: " + (lines.layout == Layout::row_major ? "row-major" : "column-major") + ", ld " +
         std::to_string(operand.lines.ld) + "\n";
}

}  // namespace

std::string explain(const std::shared_ptr<Service>& service, const HostProduct& product, const Terms& terms) {
  std::string lines = how_it_lies("A", product.a) + how_it_lies("B", product.b) + how_it_lies("C", product.c);
  const HostOperand a = host_operand(product.a), b = host_operand(product.b), c = host_operand(product.c);
  BuiltGemm built({{nullptr, 1}, a.on_device()}, {{nullptr, 2}, b.on_device()}, {{nullptr, 3}, c.on_device()}, terms);
  service->run("explain", [&](Engine& engine, Interrupt&) {
    Explanation why;
    const Plan plan = engine.plan(Engine::problem(built.gemm), terms.options, &why);
    const PlanSize planned = size(plan);
    lines += "kernel: " + to_string(plan.kernel) + (plan.transposed ? ", of the transposed product" : "") + "; " +
             std::to_string(planned.dispatches) + (planned.dispatches == 1 ? " dispatch" : " dispatches") + ", workspace " +
             std::to_string(plan.workspace.size_bytes) + " bytes\n";
    if (terms.options.precision != Precision::standard)
      lines += "precision: " + std::string(to_string(plan.precision)) +
               (why.precision.empty() ? "" : ", since " + why.precision) + "\n";
    const std::int64_t bytes = a.bytes() + b.bytes() + c.bytes();
    lines += "on the device: " + std::to_string(bytes) + " bytes of " + std::to_string(engine.device_memory_bytes()) + "\n";
  });
  return lines;
}

namespace {

Op op_of(const std::string& text, const char* name) {
  if (text == "N") return Op::none;
  if (text == "T") return Op::transpose;
  if (text == "C") return Op::conjugate_transpose;
  throw std::invalid_argument(std::string("gemm: ") + name + " is '" + text + "' and must be 'N', 'T' or 'C'");
}

Activation activation_of(const py::object& given) {
  if (given.is_none()) return {};
  const auto message = [&] {
    return "gemm: the activation is " + py::repr(given).cast<std::string>() +
           " and must be 'relu', 'gelu_erf', 'gelu_tanh', 'sigmoid', 'tanh', ('leaky_relu', slope) or ('clamp', low, high)";
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
  if (numbers.empty()) {
    if (name == "relu") return Activation::relu();
    if (name == "gelu_erf") return Activation::gelu_erf();
    if (name == "gelu_tanh") return Activation::gelu_tanh();
    if (name == "sigmoid") return Activation::sigmoid();
    if (name == "tanh") return Activation::tanh();
  }
  if (numbers.size() == 1 && name == "leaky_relu") return Activation::leaky_relu(numbers[0]);
  if (numbers.size() == 2 && name == "clamp") return Activation::clamp(numbers[0], numbers[1]);
  throw std::invalid_argument(message());
}

/// Of any type that Python makes a complex number of.
std::complex<double> number_of(const char* name, const py::object& given) {
  const Py_complex value = PyComplex_AsCComplex(given.ptr());
  if (value.real != -1.0 || !PyErr_Occurred()) return {value.real, value.imag};
  if (!PyErr_ExceptionMatches(PyExc_OverflowError)) throw py::error_already_set();
  PyErr_Clear();
  throw std::invalid_argument(std::string("gemm: ") + name + " is larger than any float");
}

}  // namespace

Terms terms_of(const py::object& alpha, const py::object& beta, const std::string& op_a, const std::string& op_b,
               const py::object& activation, const py::object& kernel, std::int64_t split_k, const std::string& precision) {
  Terms terms{number_of("alpha", alpha), number_of("beta", beta),   op_of(op_a, "op_a"),
              op_of(op_b, "op_b"),       activation_of(activation), {}};
  if (!kernel.is_none()) terms.options.kernel = parse_kernel(kernel.cast<std::string>());
  terms.options.split_k = split_k;
  terms.options.precision = parse_precision(precision);
  return terms;
}

}  // namespace glgemm::python
