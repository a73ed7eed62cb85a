#include "python/stream.hpp"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <future>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include <glgemm/headless.hpp>

#include "python/dtype.hpp"

namespace glgemm::python {
namespace {

using Check = std::function<void()>;

/// Sections of a NumPy array with any strides; `check` may end the product.
HostMatrix host_matrix_of(const py::array& array, const Check& check) {
  const Type type = type_of_object(array.dtype());
  HostMatrix matrix{.rows = array.shape(0), .columns = array.shape(1), .type = type};
  auto* data = static_cast<std::byte*>(const_cast<void*>(array.data()));
  const auto element = static_cast<std::size_t>(element_bytes(type));
  const std::int64_t row = array.strides(0), column = array.strides(1);
  // The shorter step is the inner one of both loops, whatever the layout.
  const bool by_rows = std::abs(column) <= std::abs(row);
  matrix.layout = by_rows ? Layout::row_major : Layout::column_major;
  const auto each_line = [=](const Section& section, auto&& line) {
    check();
    const std::int64_t lines = by_rows ? section.rows : section.columns, width = by_rows ? section.columns : section.rows;
    const std::int64_t line_step = by_rows ? row : column, step = by_rows ? column : row;
    std::byte* first = data + section.row * row + section.column * column;
    for (std::int64_t i = 0; i < lines; ++i) line(first + i * line_step, step, i * width, width);
  };
  const bool together = (by_rows ? column : row) == static_cast<std::int64_t>(element);
  matrix.read = [=](const Section& section, void* to) {
    each_line(section, [&](const std::byte* from, std::int64_t step, std::int64_t at, std::int64_t width) {
      auto* target = static_cast<std::byte*>(to) + static_cast<std::size_t>(at) * element;
      if (together) {
        std::memcpy(target, from, static_cast<std::size_t>(width) * element);
      } else {
        for (std::int64_t j = 0; j < width; ++j)
          std::memcpy(target + static_cast<std::size_t>(j) * element, from + j * step, element);
      }
    });
  };
  matrix.write = [=](const Section& section, const void* from) {
    each_line(section, [&](std::byte* target, std::int64_t step, std::int64_t at, std::int64_t width) {
      const auto* source = static_cast<const std::byte*>(from) + static_cast<std::size_t>(at) * element;
      if (together) {
        std::memcpy(target, source, static_cast<std::size_t>(width) * element);
      } else {
        for (std::int64_t j = 0; j < width; ++j)
          std::memcpy(target + j * step, source + static_cast<std::size_t>(j) * element, element);
      }
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
  if (product.residual) {
    gemm.epilogue.residual = host_matrix_of(*product.residual, check);
    if (gemm.epilogue.residual->layout != gemm.c.layout)
      throw std::invalid_argument("stream: the residual and C have different orders of rows and columns in memory");
  }
  if (product.bias) {
    HostMatrix values = host_matrix_of(*product.bias, check);
    values.layout = Layout::row_major;  // of one row or column
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
  explicit Devices(const std::string& list) : process_(::getpid()) {
    check_process("Accelerators");
    const WithoutGil released;
    accelerators_ = new Accelerators(headless_accelerators(list));
    protect_children();
  }
  ~Devices() {
    try {
      close();
    } catch (...) {
    }
  }
  Devices(const Devices&) = delete;
  Devices& operator=(const Devices&) = delete;

  void close() {
    if (!accelerators_ || process_ != ::getpid()) return;
    const WithoutGil released;
    delete std::exchange(accelerators_, nullptr);
  }

  Accelerators& usable(const char* what) const {
    check_process(what);
    if (!accelerators_) throw std::invalid_argument(std::string(what) + ": the accelerators are closed");
    return *accelerators_;
  }

  void multiply(const HostProduct& product, const Terms& terms, const StreamTerms& how) {
    Accelerators& all = usable("Accelerators.stream");
    // Its functions are called on the devices' threads: a signal is looked for on this one.
    std::atomic<bool> ends = false;
    const Check check = [&ends] {
      if (ends) throw Interrupted();
    };
    const HostGemm gemm = host_gemm_of(product, terms, check);
    const StreamOptions options = options_of(terms, how, check);
    std::optional<py::error_already_set> error;
    {
      const WithoutGil released;
      auto done = std::async(std::launch::async, [&] { all.multiply(gemm, options); });
      while (done.wait_for(std::chrono::milliseconds(50)) != std::future_status::ready)
        if (!error && has_signal(error)) ends = true;
      try {
        done.get();
        return;
      } catch (const Interrupted&) {
      }
    }
    throw py::error_already_set(std::move(*error));
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
  pid_t process_;
  Accelerators* accelerators_ = nullptr;  ///< never destroyed in a child process
};

}  // namespace

void define_stream(py::module_& module) {
  py::class_<Devices>(module, "Devices")
      .def(py::init<const std::string&>())
      .def("close", &Devices::close)
      .def("info", &Devices::info)
      .def("stream", [](Devices& devices, const HostProduct& product, const Terms& terms, std::int64_t device_memory_limit,
                        std::int64_t memory_limit, bool checksums, const py::object& progress) {
        devices.multiply(product, terms, {device_memory_limit, memory_limit, checksums, progress});
      });
}

}  // namespace glgemm::python
