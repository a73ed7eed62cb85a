// The extension module glgemm._core: engines, arrays and products. glgemm/*.py make of it what users see.
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include <glgemm/error.hpp>
#include <glgemm/fence.hpp>
#include <glgemm/scope.hpp>
#include <glgemm/version.hpp>

#include "base/text.hpp"
#include "python/array.hpp"
#include "python/convolve.hpp"
#include "python/dtype.hpp"
#include "python/fence.hpp"
#include "python/job.hpp"
#include "python/mlp.hpp"
#include "python/placed.hpp"
#include "python/product.hpp"
#include "python/pybind.hpp"
#include "python/stopwatch.hpp"
#include "python/stream.hpp"
#include "python/weights.hpp"
#include "python/work.hpp"

namespace glgemm::python {
namespace {

/// Lines for developers go to a Python function, which must not fail the product.
std::function<void(std::string_view)> log_to(const py::object& log) {
  if (log.is_none()) return {};
  // Destroyed on any thread.
  const std::shared_ptr<py::object> function(new py::object(log), [](py::object* object) {
    const py::gil_scoped_acquire gil;
    delete object;
  });
  return [function](std::string_view message) noexcept {
    const py::gil_scoped_acquire gil;
    try {
      (*function)(std::string(message));
    } catch (py::error_already_set& error) {
      error.discard_as_unraisable("glgemm's log");
    } catch (...) {  // there is no memory for the line
    }
  };
}

EngineOptions engine_options(const py::object& log, const py::object& program_cache, const py::object& tuning,
                             double max_dispatch, const py::object& vendor, bool debug_groups) {
  EngineOptions options;
  options.log = log_to(log);
  if (!program_cache.is_none()) options.program_cache = path_of("Engine: program_cache", program_cache);
  if (!tuning.is_none()) options.tuning = path_of("Engine: tuning", tuning);
  if (!(max_dispatch > 0 && max_dispatch <= 1e9))
    throw std::invalid_argument(fmt::format("Engine: max_dispatch is {} and must be a number of seconds above 0", max_dispatch));
  options.max_dispatch = std::chrono::nanoseconds(static_cast<std::int64_t>(max_dispatch * 1e9));
  options.check_context = true;
  options.debug_groups = debug_groups;
  if (py::isinstance<py::bool_>(vendor)) {
    if (vendor.cast<bool>()) options.vendor = Vendor::allowed;
  } else {
    options.vendor = Vendor::allowed;
    options.vendor_library = path_of("Engine: vendor", vendor);
  }
  return options;
}

/// The uses of those names; without a name, any use.
Use uses_of(const std::vector<std::string>& names) {
  static constexpr std::pair<const char*, Use> known[] = {
#define GLGEMM_ROW(name, ...) {#name, Use::name},
      GLGEMM_USES(GLGEMM_ROW)
#undef GLGEMM_ROW
  };
  Use result = names.empty() ? Use::anything : Use{};
  for (const std::string& name : names)
    result = result | find_named(known, name, &std::pair<const char*, Use>::first, "use", "uses").second;
  return result;
}

/// What is said of a device, as a dictionary.
py::dict device_dict(const DeviceInfo& device) {
  py::dict result;
  result["vendor"] = device.vendor;
  result["renderer"] = device.renderer;
  result["version"] = device.version;
  result["software"] = device.software;
  result["processor"] = device.processor;
  result["device_clock"] = device.device_clock;
  result["f64"] = device.f64;
  result["storage_block_bytes"] = device.storage_block_bytes;
  result["vendor_library"] = std::string(to_string(device.vendor_library));
  return result;
}

ternaryfunc call_of_all = nullptr;  ///< tp_call of pybind11's metaclass

/// An instance of the class from which pybind11 derives all others would end the process. Python makes one where it copies an
/// object by pickle's protocols 0 and 1, or by object.__reduce__. Other modules may share class and metaclass, and see no
/// difference.
PyObject* call_or_refuse(PyObject* type, PyObject* args, PyObject* named) {
  if (type != py::detail::get_internals().instance_base) return call_of_all(type, args, named);
  PyErr_SetString(PyExc_TypeError, "cannot create 'pybind11_object' instances");
  return nullptr;
}

/// What is in this process alone is neither copied by Python nor made without its constructor.
void refuse_copies(const py::module_& module) {
  PyTypeObject* const metaclass = py::detail::get_internals().default_metaclass;
  if (metaclass->tp_call != &call_or_refuse) call_of_all = std::exchange(metaclass->tp_call, &call_or_refuse);
  auto* const base = reinterpret_cast<PyTypeObject*>(py::detail::get_internals().instance_base);
  for (const auto& [name, value] : module.attr("__dict__").cast<py::dict>()) {
    auto* const type = reinterpret_cast<PyTypeObject*>(value.ptr());
    if (!PyType_Check(value.ptr()) || !PyType_IsSubtype(type, base)) continue;
    if (Py_IS_TYPE(value.attr("__init__").ptr(), &PyWrapperDescr_Type))
      type->tp_new = nullptr;  // pybind11's own: none is defined
    for (const char* const function : {"__reduce__", "__reduce_ex__"})
      py::setattr(value, function,
                  py::cpp_function(
                      [](const py::object& self, const py::args&) -> py::object {
                        const py::object kind = py::type::of(self);
                        throw py::type_error(
                            fmt::format("a {}.{} belongs to this process: it is neither pickled nor copied by the module copy",
                                        kind.attr("__module__").cast<std::string>(), kind.attr("__name__").cast<std::string>()));
                      },
                      py::is_method(value)));
  }
}

/// While it lives, OpenGL's state is saved once.
class SavedState {
 public:
  explicit SavedState(std::shared_ptr<Service> service) : service_(std::move(service)) {}
  /// Puts the state back if a signal has ended enter() or exit().
  ~SavedState() {
    if (scope_) try {
        exit();
      } catch (...) {                                 // the engine is closed or at work, or its context is lost
        new std::optional<Scope>(std::move(scope_));  // never destroyed: this thread's context may be another one
      }
  }
  SavedState(const SavedState&) = delete;
  SavedState& operator=(const SavedState&) = delete;
  void enter() {
    if (scope_) throw std::invalid_argument("scope: it has been entered");
    service_->run("scope", [&](Engine& engine, Interrupt&) { scope_.emplace(engine.scope()); });
  }
  void exit() {
    if (service_->is_abandoned()) return scope_.reset();  // which restores nothing then
    service_->run("scope", [&](Engine&, Interrupt&) { scope_.reset(); });
  }

 private:
  std::shared_ptr<Service> service_;
  std::optional<Scope> scope_{};
};

void define_engine(py::module_& module) {
  py::class_<EngineOptions>(module, "EngineOptions").def(py::init(&engine_options));
  py::class_<Service, std::shared_ptr<Service>>(module, "Service")
      .def_static("headless",
                  [](const std::string& device, const EngineOptions& options) {
                    return std::make_shared<Service>(HeadlessOptions{.device = device}, options);
                  })
      .def_static("current",
                  [](std::uintptr_t get_proc_address, const EngineOptions& options) {
                    return std::make_shared<Service>(
                        get_proc_address ? reinterpret_cast<GetProcAddress>(get_proc_address) : HeadlessContext::get_proc_address,
                        options);
                  })
      .def("close", &Service::close)
      .def("abandon", &Service::abandon)
      .def_property_readonly("closed", &Service::is_closed)
      .def("check_idle", &Service::check_idle)
      .def_property_readonly("has_thread", &Service::has_thread)
      .def_property_readonly("device", [](const Service& service) { return device_dict(service.device()); })
      .def("memory",
           [](Service& service) {
             std::int64_t bytes = 0;
             service.run("memory", [&](Engine& engine, Interrupt&) { bytes = engine.device_memory_bytes(); });
             return bytes;
           })
      .def("barrier",
           [](Service& service, const std::vector<std::string>& names) {
             service.run("barrier", [uses = uses_of(names)](Engine& engine, Interrupt&) { engine.barrier(uses); });
           })
      .def("finish",
           [](Service& service) {
             service.run("finish", [](Engine& engine, Interrupt& interrupt) {
               const Fence fence = engine.fence();
               while (!fence.wait(std::chrono::milliseconds(50))) interrupt.check();
             });
           })
      .def("upload", &upload)
      .def("empty",
           [](const std::shared_ptr<Service>& service, const py::object& shape, const py::object& dtype) {
             return empty(service, type_of_object(dtype), whole_numbers("empty: the shape", shape));
           })
      .def("wrap", &wrap)
      .def("quantized", &upload_quantized)
      .def("wrap_quantized", &wrap_quantized)
      .def("multiply", &multiply)
      .def("fence", [](const std::shared_ptr<Service>& service) { return std::make_unique<Milestone>(service); })
      .def("stopwatch", [](const std::shared_ptr<Service>& service) { return std::make_unique<Timer>(service); })
      .def("stream", &stream)
      .def("_seconds_of_calls",  // what figures.py compares with
           [](Service& service, const Array& a, const Array& b, const Array& c, int calls) {
             const auto view = [](const Array& array) { return array.storage->elements->matrix->view(); };
             const Gemm gemm{.a = view(a), .b = view(b), .c = view(c)};
             double seconds = 0;
             service.run("gemm", [&](Engine& engine, Interrupt&) {
               const auto begin = std::chrono::steady_clock::now();
               for (int i = 0; i < calls; ++i) engine.gemm(gemm);
               seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
             });
             return seconds;
           })
      .def("explain", &explain);
  py::class_<SavedState>(module, "SavedState")
      .def(py::init<std::shared_ptr<Service>>())
      .def("enter", &SavedState::enter)
      .def("exit", &SavedState::exit);
}

void define_errors(py::module_& module) {
  static py::exception<GlError> error(module, "Error", PyExc_RuntimeError);
  static py::exception<Unsupported> unsupported(module, "Unsupported", error.ptr());
  static py::exception<DeviceLost> lost(module, "DeviceLost", error.ptr());
  error.attr("__module__") = "glgemm";
  unsupported.attr("__module__") = "glgemm";
  lost.attr("__module__") = "glgemm";
  error.doc() = "What went wrong in the driver, or between it and glgemm.";
  unsupported.doc() = "This device or its driver cannot do what was asked for; nothing was done.";
  lost.doc() = "The context was reset or lost, and the elements of its arrays are gone: Engine.abandon(), and make a new one.";
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const OutOfMemory& what) {
      PyErr_SetString(PyExc_MemoryError, what.what());
    } catch (const DeviceLost& what) {
      PyErr_SetString(lost.ptr(), what.what());
    } catch (const Unsupported& what) {
      PyErr_SetString(unsupported.ptr(), what.what());
    } catch (const GlError& what) {
      PyErr_SetString(error.ptr(), what.what());
    }
  });
}

/// The formats of quantised matrices, and how many codes a block of each has: 0 or 1 where scales lie apart.
py::dict quantized_formats() {
  py::dict result;
  for (const QuantizedFormatInfo& row : quantized_format_table)
    if (row.name != "none") result[py::str(std::string(row.name))] = row.codes;
  return result;
}

/// A dictionary from each pair of types of A and B that can be multiplied to the types that C may have, the type of the sums
/// last. Types have the names that NumPy and ml_dtypes give them.
py::dict types_of_c() {
  py::dict result;
  const auto name = [](Type type) { return py::str(std::string(info(type).numpy)); };
  for (const Type a : all_types)
    for (const Type b : all_types) {
      if (!can_multiply(a, b)) continue;
      py::list names;
      for (const Type c : a == b ? std::vector{a} : std::vector{a, b})
        if (c != sum_type(a, b) && is_type_of_c(a, b, c)) names.append(name(c));
      names.append(name(sum_type(a, b)));
      result[py::make_tuple(name(a), name(b))] = py::tuple(names);
    }
  return result;
}

}  // namespace

PYBIND11_MODULE(_core, module) {
  module.doc() = "The part of glgemm that is written in C++.";
  module.attr("__version__") = GLGEMM_VERSION_STRING;
  find_main_thread();
  define_errors(module);
  define_terms(module);
  define_array(module);
  define_convolve(module);
  define_engine(module);
  define_fence(module);
  define_job(module);
  define_mlp(module);
  define_product(module);
  define_stopwatch(module);
  define_stream(module);
  define_weights(module);
  define_work(module);
  refuse_copies(module);
  module.def("begin_exit", &begin_exit);
  module.def("is_first_process", &is_first_process);
  module.def("check_process", &check_process);
  module.def("engine_of", [](const Array& a) { return a.storage->service; });
  module.def("dtype_of", [](const std::string& name) {
    for (const Type type : all_types)
      if (info(type).numpy == name) return dtype_of(type);
    throw py::type_error("glgemm has no matrices of " + name);
  });
  module.attr("types_of_c") = types_of_c();
  module.attr("quantized_formats") = quantized_formats();
}

}  // namespace glgemm::python
