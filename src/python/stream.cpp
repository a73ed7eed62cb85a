#include "python/stream.hpp"

#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include <glgemm/headless.hpp>
#include <glgemm/inspect.hpp>

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

/// The same of codes, which lie in rows along k.
HostMatrix host_matrix_of(const HostCodes& codes, const Check& check) {
  HostMatrix matrix = host_matrix(codes.matrix);
  matrix.read_codes = [check, read = matrix.read_codes](const Section& section, const QuantizedTarget& to) {
    check();
    read(section, to);
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
  if (product.codes_a) gemm.a = host_matrix_of(*product.codes_a, check);
  if (product.codes_b) {
    gemm.b = host_matrix_of(*product.codes_b, check);
    gemm.op_b = Op::transpose;
  }
  gemm.epilogue.activation = terms.activation;
  if (product.residual) gemm.epilogue.residual = host_matrix_of(*product.residual, check, gemm.c.layout);
  if (product.bias) {
    HostMatrix values = host_matrix_of(*product.bias, check, Layout::row_major);
    const bool for_columns = values.rows == 1 && values.columns == gemm.c.columns;
    gemm.epilogue.bias = for_columns ? HostBias::for_each_column(std::move(values)) : HostBias::for_each_row(std::move(values));
  }
  return gemm;
}

StreamOptions options_of(const Terms& terms, const StreamTerms& settings, const Check& check) {
  StreamOptions options;
  options.device_memory_limit_bytes = settings.device_memory_limit_bytes;
  options.memory_limit_bytes = settings.memory_limit_bytes;
  options.plan = terms.options;
  options.progress = [check, progress = settings.progress.is_none() ? nullptr : &settings.progress](double share) {
    check();
    if (!progress) return;
    const py::gil_scoped_acquire gil;
    (*progress)(share);
  };
  return options;
}

}  // namespace

void stream(const std::shared_ptr<Service>& service, const HostProduct& product, const Terms& terms,
            const StreamTerms& settings) {
  Interrupt* now = nullptr;
  const Check check = [&now] { now->check(); };
  const HostGemm gemm = host_gemm_of(product, terms, check);
  const StreamOptions options = options_of(terms, settings, check);
  Report ran;
  StreamReport report;
  service->run("stream", [&](Engine& engine, Interrupt& interrupt) {
    now = &interrupt;
    multiply(engine, gemm, options, &report);
    ran = {.kernel = report.kernel, .slices = report.windows, .kernel_time = report.compute_time};
    if (terms.report) ran.precision = make_stream_plan(engine, gemm, options).window.precision;
  });
  terms.add(ran);
  if (!terms.report) return;
  terms.report->total_time += report.total_time;
  terms.report->bytes_to_device += report.bytes_to_device;
  terms.report->bytes_from_device += report.bytes_from_device;
  terms.report->transfer_time += report.transfer_time;
}

namespace {

/// Several devices, and a thread that does one product after the other with them. See Service for signals and forks.
class Devices {
 public:
  explicit Devices(const std::string& list) {
    check_process("Accelerators");
    thread_ = std::make_unique<Thread>();
    auto making = std::make_unique<Making>();
    const WithoutGil released;
    const auto until_made = std::move(making);  // which goes before the GIL is wanted again
    accelerators_ = std::make_unique<Accelerators>(headless_accelerators(list));
  }
  ~Devices() { end(); }
  Devices(const Devices&) = delete;
  Devices& operator=(const Devices&) = delete;

  void close() {
    if (is_first_process()) check_idle("Accelerators.close");
    end();
  }

  void multiply(const HostProduct& product, const Terms& terms, const StreamTerms& settings) {
    Interrupt* now = nullptr;
    const Check check = [&now] { now->check(); };
    const HostGemm gemm = host_gemm_of(product, terms, check);
    StreamOptions options = options_of(terms, settings, check);
    options.progress = [this, progress = std::move(options.progress)](double share) {
      const Reports reports(this);
      progress(share);
    };
    run("Accelerators.stream", [&](Interrupt& interrupt) {
      now = &interrupt;
      accelerators_->multiply(gemm, options);
    });
  }

  /// @throws GlError  progress waits for the product that calls it
  void check_idle(const char* what) const {
    if (Reports::on_this_thread == this)
      throw GlError(fmt::format("{}: the accelerators are at work: progress cannot use them", what));
  }

  py::list info() {
    std::vector<AcceleratorInfo> all;
    run("Accelerators.info", [&](Interrupt&) { all = accelerators_->info(); });
    py::list result;
    for (const AcceleratorInfo& one : all) {
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
  /// Marks the thread on which the devices call progress: what progress asks of them would wait for itself.
  struct Reports {
    explicit Reports(const Devices* devices) { on_this_thread = devices; }
    ~Reports() { on_this_thread = nullptr; }
    static thread_local const Devices* on_this_thread;
  };

  void run(const char* what, const std::function<void(Interrupt&)>& work) {
    check_process(what);
    check_idle(what);
    if (is_closed_) throw std::invalid_argument(fmt::format("{}: the accelerators are closed", what));
    run_on(*thread_, what, work);
  }

  void end() {
    is_closed_ = true;
    if (!is_first_process()) return static_cast<void>(accelerators_.release());  // never destroyed in a child
    const WithoutGil released;
    thread_->stop();
    accelerators_.reset();
  }

  bool is_closed_ = false;
  std::unique_ptr<Accelerators> accelerators_{};
  std::unique_ptr<Thread> thread_{};
};

thread_local const Devices* Devices::Reports::on_this_thread = nullptr;

StreamTerms stream_terms_of(const py::object& device_memory_limit_bytes, const py::object& memory_limit_bytes,
                            const py::object& progress) {
  const auto bytes = [](const char* name, const py::object& given) {
    return value_of<std::int64_t>(fmt::format("stream: {}", name), given, "a number of bytes");
  };
  return {bytes("device_memory_limit_bytes", device_memory_limit_bytes), bytes("memory_limit_bytes", memory_limit_bytes),
          progress};
}

}  // namespace

void define_stream(py::module_& module) {
  py::class_<StreamTerms>(module, "StreamTerms")
      .def(py::init(&stream_terms_of), py::arg("device_memory_limit_bytes") = 0, py::arg("memory_limit_bytes") = 0,
           py::arg("progress") = py::none());
  py::class_<Devices>(module, "Devices")
      .def(py::init<const std::string&>())
      .def("close", &Devices::close)
      .def("check_idle", &Devices::check_idle)
      .def("info", &Devices::info)
      .def("stream", &Devices::multiply);
}

}  // namespace glgemm::python
