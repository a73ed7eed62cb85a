#include "python/job.hpp"

#include <chrono>
#include <cmath>
#include <initializer_list>
#include <stdexcept>

#include <fmt/core.h>

#include "python/dtype.hpp"
#include "python/values.hpp"

namespace glgemm::python {

namespace {

/// What keeps the arrays' buffers of the application. It is taken out of the arrays.
std::vector<py::object> taken_owners(std::initializer_list<Array*> arrays, std::initializer_list<std::optional<Array>*> others) {
  std::vector<py::object> owners;
  const auto take = [&](Array& array) {
    if (array.owner) owners.push_back(array.owner.attr("kept"));
    array.owner = {};
  };
  for (Array* const array : arrays) take(*array);
  for (std::optional<Array>* const other : others)
    if (*other) take(**other);
  return owners;
}

}  // namespace

std::unique_ptr<StartedWork> StartedWork::start(DeviceProduct product, const Terms& terms, std::optional<Type> c_type) {
  auto running = std::make_shared<Running>(product.a.storage->service);
  const std::optional<Array> out = product.out;
  running->owners = taken_owners({&product.a, &product.b}, {&product.out, &product.bias, &product.residual});
  const auto placed = std::make_shared<PlacedProduct>(product, terms, c_type);
  if (product.out && !placed->is_direct())
    throw std::invalid_argument(terms.who + ": the product cannot be written where C lies, and a job makes no copy of it");
  return start(std::move(running), placed, terms, out);
}

std::unique_ptr<StartedWork> StartedWork::start(DeviceConvolution arrays, const ConvolutionTerms& how, const Terms& terms,
                                                std::optional<Type> type) {
  auto running = std::make_shared<Running>(arrays.x.storage->service);
  const std::optional<Array> out = arrays.out;
  running->owners = taken_owners({&arrays.x, &arrays.w}, {&arrays.out, &arrays.bias, &arrays.residual});
  return start(std::move(running), std::make_shared<PlacedConvolution>(arrays, how, terms, type), terms, out);
}

std::unique_ptr<StartedWork> StartedWork::start(DeviceMlp arrays, const Terms& terms, Type type) {
  auto running = std::make_shared<Running>(arrays.x.storage->service);
  const std::optional<Array> out = arrays.out;
  running->owners = taken_owners({&arrays.x}, {&arrays.out});
  for (DeviceMlp::Layer& layer : arrays.layers)
    for (py::object& owner : taken_owners({&layer.weights}, {&layer.bias})) running->owners.push_back(std::move(owner));
  return start(std::move(running), std::make_shared<PlacedMlp>(arrays, terms, type), terms, out);
}

template <class Placed>
std::unique_ptr<StartedWork> StartedWork::start(std::shared_ptr<Running> running, const std::shared_ptr<Placed>& placed,
                                                const Terms& terms, const std::optional<Array>& out) {
  running->kept = placed;
  running->service->run(terms.who.c_str(), [&](Engine& engine, Interrupt&) {
    if (const auto* const work = placed->build(engine)) running->job = std::make_unique<Job>(engine.start(*work, terms.options));
  });
  return std::unique_ptr<StartedWork>(new StartedWork(std::move(running), out ? *out : placed->result()));
}

StartedWork::StartedWork(std::shared_ptr<Running> running, Array c)
    : service_(running->service), running_(std::move(running)), c_(std::move(c)) {
  if (running_->job) {
    look(*running_->job);
  } else {
    done_ = true;
    progress_ = 1;
  }
  if (done_) running_.reset();
  service_->keep(*this);
}

StartedWork::~StartedWork() {
  service_->let_go(*this);
}

int StartedWork::visit_owners(const StartedWork& work, visitproc visit, void* arg) {
  Py_VISIT(work.c_.owner.ptr());
  if (work.running_.use_count() == 1)
    for (const py::object& owner : work.running_->owners) Py_VISIT(owner.ptr());
  return 0;
}

void StartedWork::look(const Job& job) noexcept {
  done_ = job.done();
  progress_ = job.progress();
}

void StartedWork::run(const char* what, const std::function<void(Job& job, Interrupt& interrupt)>& work) {
  const std::shared_ptr<Running> running = running_;  // another thread may cancel meanwhile
  service_->run(what, [&](Engine&, Interrupt& interrupt) {
    if (!running) return;
    const struct Looking {
      ~Looking() { product.look(job); }  // also where a signal ends the work
      StartedWork& product;
      const Job& job;
    } looking{*this, *running->job};
    work(*running->job, interrupt);
  });
  if (done_) running_.reset();
}

bool StartedWork::advance(const py::object& given) {
  const auto seconds = value_of<double>("Job.advance: the budget", given, "a number of seconds");
  if (!(seconds > 0 && seconds <= 1e9))
    throw std::invalid_argument(fmt::format("Job.advance: the budget is {} and must be a number of seconds above 0", seconds));
  const std::chrono::nanoseconds budget(static_cast<std::int64_t>(std::ceil(seconds * 1e9)));
  run("Job.advance", [&](Job& job, Interrupt&) { job.advance(budget); });
  return done_;
}

Array StartedWork::result() {
  run("Job.result", [](Job& job, Interrupt& interrupt) { finish(job, interrupt); });
  if (done_) return c_;
  PyErr_SetString(py::module_::import("concurrent.futures").attr("CancelledError").ptr(), "Job.result: the job was cancelled");
  throw py::error_already_set();
}

void define_job(py::module_& module) {
  py::class_<StartedWork>(
      module, "Job", shows_kept<StartedWork, StartedWork::visit_owners>(),
      R"(A product, convolution or network on the device that is enqueued piece by piece, so that an application with a frame to draw gives it a part of each.

Made by Engine.start(), start_convolve() and start_mlp(). The arrays' elements must stay as they are until it is done; it keeps them so long, even if they are
freed. Other products and jobs may run in between. It is used where its engine may be used. Closing the engine ends it, and so
does letting go of it.)")
      .def("advance", &StartedWork::advance, py::arg("seconds"),
           R"(Enqueues what takes the device about so many seconds, and returns done().

Does not wait for the device, but where the driver itself computes in the call. Enqueues nothing as long as the device has not
done what the last call but one enqueued, so that work does not pile up, nor after cancel(). Programs that have not been timed yet
begin with less. What may take long, such as compiling, was done when the job was made.)")
      .def("done", &StartedWork::done,
           "Whether all is enqueued: what is enqueued from now on sees C. Engine.finish() waits for the device.")
      .def_property_readonly("progress", &StartedWork::progress, "The share of the work that is enqueued, from 0 to 1.")
      .def("cancel", &StartedWork::cancel,
           "Nothing more is enqueued. Unless it is done, C is then written in part, and result() raises CancelledError.")
      .def("result", &StartedWork::result,
           "Enqueues what is left, as gemm() does, and returns the result, an Array. Where nothing is left, it does not wait.");
  module.def(
      "start",
      [](const Terms& terms, const Array& a, const Array& b, const std::optional<Array>& out, const std::optional<Array>& bias,
         const std::optional<Array>& residual, const py::object& dtype) {
        return StartedWork::start({a, b, out, bias, residual}, terms, optional_type(dtype));
      },
      py::arg("terms"), py::arg("a"), py::arg("b"), py::arg("out"), py::arg("bias"), py::arg("residual"), py::kw_only(),
      py::arg("dtype"));
}

}  // namespace glgemm::python
