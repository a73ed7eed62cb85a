// The extension module glgemm._core: engines, arrays and products. glgemm/*.py make of it what users see.
#include <pybind11/complex.h>
#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include <glgemm/error.hpp>
#include <glgemm/fence.hpp>
#include <glgemm/scope.hpp>
#include <glgemm/version.hpp>

#include "python/array.hpp"
#include "python/dtype.hpp"
#include "python/product.hpp"
#include "python/stream.hpp"

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
  return [function](std::string_view message) {
    const py::gil_scoped_acquire gil;
    try {
      (*function)(std::string(message));
    } catch (py::error_already_set& error) {
      error.discard_as_unraisable("glgemm's log");
    }
  };
}

/// What os.PathLike or a string says.
std::string path_of(const char* name, const py::object& given) {
  try {
    return py::module_::import("os").attr("fsencode")(given).cast<std::string>();
  } catch (const py::error_already_set& error) {
    if (!error.matches(PyExc_TypeError)) throw;
  }
  throw py::type_error(std::string("Engine: ") + name + " is " + py::repr(given).cast<std::string>() + " and must be a path");
}

EngineOptions engine_options(const py::object& log, const py::object& program_cache, const py::object& tuning, bool self_check,
                             double max_dispatch) {
  EngineOptions options;
  options.log = log_to(log);
  if (!program_cache.is_none()) options.program_cache = path_of("program_cache", program_cache);
  if (!tuning.is_none()) options.tuning = path_of("tuning", tuning);
  options.self_check = self_check;
  options.max_dispatch = std::chrono::nanoseconds(static_cast<std::int64_t>(max_dispatch * 1e9));
  options.check_context = true;
  return options;
}

/// What is said of a device, as a dictionary.
py::dict device_dict(const DeviceInfo& device) {
  py::dict result;
  result["vendor"] = device.vendor;
  result["renderer"] = device.renderer;
  result["version"] = device.version;
  result["software"] = device.software;
  result["processor"] = device.processor;
  return result;
}

/// While it lives, OpenGL's state is saved once.
class SavedState {
 public:
  explicit SavedState(std::shared_ptr<Service> service) : service_(std::move(service)) {}
  /// A signal may have ended enter() or exit(): the state is put back all the same, where the context is current.
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
    service_->run("scope", [&](Engine&, Interrupt&) { scope_.reset(); });
  }

 private:
  std::shared_ptr<Service> service_;
  std::optional<Scope> scope_{};
};

Array wrap(const std::shared_ptr<Service>& service, const py::object& buffer, const py::object& given_shape,
           const py::object& dtype, std::int64_t offset, const py::object& given_strides) {
  const Sizes shape = whole_numbers("wrap: the shape", given_shape);
  std::optional<Sizes> strides;
  if (!given_strides.is_none()) strides = whole_numbers("wrap: strides", given_strides);
  const Type type = type_of_object(dtype);
  const std::int64_t bytes = element_bytes(type);
  const auto name = py::hasattr(buffer, "glo") ? buffer.attr("glo").cast<unsigned>() : buffer.cast<unsigned>();
  Strided lies = dense(type, shape);
  if (strides && strides->size() != shape.size())
    throw std::invalid_argument("wrap: " + std::to_string(strides->size()) + " strides for " + std::to_string(shape.size()) +
                                " dimensions");
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] < 0) throw std::invalid_argument("wrap: the shape " + text(shape) + " has a negative size");
    if (!strides) continue;
    if ((*strides)[i] % bytes != 0)
      throw std::invalid_argument("wrap: the stride " + std::to_string((*strides)[i]) + " is no multiple of the element's " +
                                  std::to_string(bytes) + " bytes");
    lies.strides[i] = (*strides)[i] / bytes;
  }
  if (offset < 0 || offset % bytes != 0)
    throw std::invalid_argument("wrap: the offset " + std::to_string(offset) + " is no multiple of the element's " +
                                std::to_string(bytes) + " bytes");
  lies.offset = offset / bytes;
  return {std::make_shared<Storage>(service, name, buffer), lies};
}

void define_engine(py::module_& module) {
  py::class_<Service, std::shared_ptr<Service>>(module, "Service")
      .def_static("headless",
                  [](const std::string& device, const py::object& log, const py::object& program_cache, const py::object& tuning,
                     bool self_check, double max_dispatch) {
                    HeadlessOptions options;
                    options.device = device;
                    return std::make_shared<Service>(options,
                                                     engine_options(log, program_cache, tuning, self_check, max_dispatch));
                  })
      .def_static("current",
                  [](std::uintptr_t get_proc_address, const py::object& log, const py::object& program_cache,
                     const py::object& tuning, bool self_check, double max_dispatch) {
                    const auto function =
                        get_proc_address ? reinterpret_cast<GetProcAddress>(get_proc_address) : HeadlessContext::get_proc_address;
                    return std::make_shared<Service>(function,
                                                     engine_options(log, program_cache, tuning, self_check, max_dispatch));
                  })
      .def("close", &Service::close)
      .def_property_readonly("closed", &Service::is_closed)
      .def_property_readonly("has_thread", &Service::has_thread)
      .def_property_readonly("device", [](const Service& service) { return device_dict(service.device()); })
      .def_property_readonly("doubles", [](const Service& service) { return service.limits().f64; })
      .def("memory",
           [](Service& service) {
             std::int64_t bytes = 0;
             service.run("memory", [&](Engine& engine, Interrupt&) { bytes = engine.device_memory_bytes(); });
             return bytes;
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
      .def("multiply", [](const std::shared_ptr<Service>& service, const HostProduct& product,
                          const Terms& terms) { multiply(service, product, terms); })
      .def("stream",
           [](const std::shared_ptr<Service>& service, const HostProduct& product, const Terms& terms,
              std::int64_t device_memory_limit, std::int64_t memory_limit, bool checksums, const py::object& progress) {
             stream(service, product, terms, {device_memory_limit, memory_limit, checksums, progress});
           })
      .def("_seconds_of_calls",  // what figures.py compares with
           [](Service& service, const Array& a, const Array& b, const Array& c, int calls) {
             const auto view = [](const Array& array) {
               return view_of_lines(where(array), array.lies.type, array.lies.rows(), array.lies.columns(), array.lies.columns(),
                                    0);
             };
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
  for (const py::exception<GlError>* each : {&error}) each->attr("__module__") = "glgemm";
  unsupported.attr("__module__") = "glgemm";
  lost.attr("__module__") = "glgemm";
  error.doc() = "What went wrong in the driver, or between it and glgemm.";
  unsupported.doc() = "This device or its driver cannot do what was asked for; nothing was done.";
  lost.doc() = "The context was reset or lost, and the elements of its arrays are gone: close the engine and make a new one.";
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

std::optional<py::array> optional_array(const py::object& object) {
  return object.is_none() ? std::nullopt : std::optional(object.cast<py::array>());
}
std::optional<Array> optional_device_array(const py::object& object) {
  return object.is_none() ? std::nullopt : std::optional(object.cast<Array>());
}

}  // namespace

PYBIND11_MODULE(_core, module) {
  module.doc() = "The part of glgemm that is written in C++.";
  module.attr("__version__") = GLGEMM_VERSION_STRING;
  find_main_thread();
  define_errors(module);
  py::class_<Terms>(module, "Terms").def(py::init(&terms_of));
  py::class_<HostProduct>(module, "HostProduct")
      .def(py::init(
          [](const py::array& a, const py::array& b, const py::array& c, const py::object& bias, const py::object& residual) {
            return HostProduct{a, b, c, optional_array(bias), optional_array(residual)};
          }));
  define_array(module);
  define_engine(module);
  define_stream(module);
  module.def("multiply", [](const Array& a, const Array& b, const py::object& out, const py::object& bias,
                            const py::object& residual, const Terms& terms, const py::object& dtype) {
    return multiply({a, b, optional_device_array(out), optional_device_array(bias), optional_device_array(residual)}, terms,
                    dtype.is_none() ? std::nullopt : std::optional(type_of_object(dtype)));
  });
  module.def("begin_exit", &begin_exit);
  module.def("engine_of", [](const Array& a) { return a.storage->service; });
  module.def("type_name", [](const py::dtype& dtype) -> py::object {
    const auto type = type_of_dtype(dtype);
    return type ? py::object(py::str(std::string(to_string(*type)))) : py::none();
  });
}

}  // namespace glgemm::python
