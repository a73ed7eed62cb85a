#include "python/stream.hpp"

#include <cstdlib>
#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fmt/core.h>

#include <glgemm/headless.hpp>

#include "python/dtype.hpp"

namespace glgemm::python {
namespace {

using Check = std::function<void()>;

/// Reads and writes sections of a NumPy array with any strides. Packed sections have `layout`, by default the array's own order.
/// `check` is called before each section and may throw to end the product.
HostMatrix host_matrix_of(const py::array& array, const Check& check, std::optional<Layout> layout = {}) {
  const Type type = type_of_object(array.dtype());
  HostMatrix matrix{.rows = array.shape(0), .columns = array.shape(1), .type = type};
  auto* data = static_cast<std::byte*>(const_cast<void*>(array.data()));
  const std::int64_t element = element_bytes(type), row = array.strides(0), column = array.strides(1);
  // The shorter step is the inner one of both loops.
  matrix.layout = layout.value_or(std::abs(column) <= std::abs(row) ? Layout::row_major : Layout::column_major);
  const bool by_rows = matrix.layout == Layout::row_major;
  // Calls copy(part of the array, its place in the packed section, bytes) for each part of the section without gaps.
  const auto each_part = [=](const Section& section, auto&& copy) {
    check();
    const std::int64_t lines = by_rows ? section.rows : section.columns, width = by_rows ? section.columns : section.rows;
    const std::int64_t line_step = by_rows ? row : column, step = by_rows ? column : row;
    const std::int64_t together = step == element ? width : 1;
    std::byte* first = data + section.row * row + section.column * column;
    for (std::int64_t i = 0; i < lines; ++i)
      for (std::int64_t j = 0; j < width; j += together)
        copy(first + i * line_step + j * step, (i * width + j) * element, static_cast<std::size_t>(together * element));
  };
  matrix.read = [=](const Section& section, void* to) {
    each_part(section, [to](const std::byte* part, std::int64_t at, std::size_t bytes) {
      std::memcpy(static_cast<std::byte*>(to) + at, part, bytes);
    });
  };
  matrix.write = [=](const Section& section, const void* from) {
    each_part(section, [from](std::byte* part, std::int64_t at, std::size_t bytes) {
      std::memcpy(part, static_cast<const std::byte*>(from) + at, bytes);
    });
  };
  return matrix;
}

HostGemm host_gemm_of(const HostProduct& product, const Terms& terms, const Check& check) {
  const Type type = type_of_object(product.a.dtype());
  HostGemm gemm{.op_a = terms.op_a,
                .op_b = terms.op_b,
                .alpha = scalar(terms.alpha, type),
                .a = host_matrix_of(product.a, check),
                .b = host_matrix_of(product.b, check),
                .beta = scalar(terms.beta, type),
                .c = host_matrix_of(product.c, check)};
  gemm.epilogue.activation = terms.activation;
  if (product.residual) gemm.epilogue.residual = host_matrix_of(*product.residual, check, gemm.c.layout);
  if (product.bias) {
    HostMatrix values = host_matrix_of(*product.bias, check, Layout::row_major);
    const bool for_columns = values.rows == 1 && values.columns == gemm.c.columns;
    gemm.epilogue.bias = for_columns ? HostBias::for_each_column(std::move(values)) : HostBias::for_each_row(std::move(values));
  }
  return gemm;
}

StreamOptions options_of(const Terms& terms, const StreamTerms& how, const Check& check) {
  StreamOptions options;
  options.device_memory_limit = how.device_memory_limit;
  options.memory_limit = how.memory_limit;
  options.checksums = how.checksums;
  options.plan = terms.options;
  options.progress = [check, progress = how.progress.is_none() ? nullptr : &how.progress](double share) {
    check();
    if (!progress) return;
    const py::gil_scoped_acquire gil;
    (*progress)(share);
  };
  return options;
}

}  // namespace

void stream(const std::shared_ptr<Service>& service, const HostProduct& product, const Terms& terms, const StreamTerms& how) {
  Interrupt* now = nullptr;
  const Check check = [&now] { now->check(); };
  const HostGemm gemm = host_gemm_of(product, terms, check);
  const StreamOptions options = options_of(terms, how, check);
  service->run("stream", [&](Engine& engine, Interrupt& interrupt) {
    now = &interrupt;
    multiply(engine, gemm, options);
  });
}

namespace {

/// Several devices, each with a thread; see Service for signals and forks.
class Devices {
 public:
  explicit Devices(const std::string& list) {
    check_process("Accelerators");
    const WithoutGil released;
    accelerators_ = std::make_unique<Accelerators>(headless_accelerators(list));
  }
  ~Devices() { close(); }
  Devices(const Devices&) = delete;
  Devices& operator=(const Devices&) = delete;

  void close() {
    if (!is_first_process()) return static_cast<void>(accelerators_.release());  // never destroyed in a child
    const WithoutGil released;
    accelerators_.reset();
  }

  Accelerators& usable(const char* what) const {
    check_process(what);
    if (!accelerators_) throw std::invalid_argument(fmt::format("{}: the accelerators are closed", what));
    return *accelerators_;
  }

  void multiply(const HostProduct& product, const Terms& terms, const StreamTerms& how) {
    Accelerators& all = usable("Accelerators.stream");
    // The product's functions are called on the devices' threads: a signal is looked for on this one.
    Interrupt interrupt(false);
    const Check check = [&interrupt] { interrupt.check(); };
    const HostGemm gemm = host_gemm_of(product, terms, check);
    const StreamOptions options = options_of(terms, how, check);
    try {
      const WithoutGil released;
      auto done = std::async(std::launch::async, [&] { all.multiply(gemm, options); });
      wait_with_signals(done, interrupt);
      return done.get();
    } catch (const Interrupted&) {
    }
    throw py::error_already_set(std::move(*interrupt.error));
  }

  py::list info() const {
    py::list result;
    for (const AcceleratorInfo& one : usable("Accelerators.info").info()) {
      py::dict entry;
      entry["name"] = one.name;
      entry["software"] = one.software;
      entry["renderer"] = one.device.renderer;
      entry["failure"] = one.failure;
      entry["rate"] = one.rate;
      result.append(entry);
    }
    return result;
  }

 private:
  std::unique_ptr<Accelerators> accelerators_{};
};

StreamTerms stream_terms_of(const py::object& device_memory_limit, const py::object& memory_limit, bool checksums,
                            const py::object& progress) {
  const auto bytes = [](const char* name, const py::object& given) {
    return value_of<std::int64_t>(fmt::format("stream: {}", name), given, "a number of bytes");
  };
  return {bytes("device_memory_limit", device_memory_limit), bytes("memory_limit", memory_limit), checksums, progress};
}

}  // namespace

void define_stream(py::module_& module) {
  py::class_<StreamTerms>(module, "StreamTerms")
      .def(py::init(&stream_terms_of), py::arg("device_memory_limit") = 0, py::arg("memory_limit") = 0,
           py::arg("checksums") = false, py::arg("progress") = py::none());
  py::class_<Devices>(module, "Devices")
      .def(py::init<const std::string&>())
      .def("close", &Devices::close)
      .def("info", &Devices::info)
      .def("stream", &Devices::multiply);
}

}  // namespace glgemm::python
