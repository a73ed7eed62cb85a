#include "python/work.hpp"

#include <algorithm>
#include <chrono>

#include <fmt/core.h>

#include <glgemm/fence.hpp>
#include <glgemm/inspect.hpp>
#include <glgemm/stopwatch.hpp>

#include "python/job.hpp"
#include "python/values.hpp"

namespace glgemm::python {
namespace {

using namespace std::chrono_literals;

void enqueue(Engine& engine, const Gemm& product, const PlanOptions& options, Report* report) {
  engine.gemm(product, options, report);
}
void enqueue(Engine& engine, const Convolution& convolution, const PlanOptions& options, Report* report) {
  engine.convolve(convolution, options, report);
}
void enqueue(Engine& engine, const Mlp& mlp, const PlanOptions& options, Report* report) {
  engine.run(mlp, options, report);
}

double number(std::int64_t value) {
  return static_cast<double>(value);
}

/// Multiply-adds.
double work_of(const Gemm& product) {
  const std::int64_t inner = product.op_a == Op::none ? product.a.columns : product.a.rows;
  return number(product.c.rows) * number(product.c.columns) * number(inner) * number(product.batch.count);
}

double work_of(const Convolution& convolution) {
  const TensorView& many = convolution.transposed ? convolution.input : convolution.output;
  const TensorView& few = convolution.transposed ? convolution.output : convolution.input;
  double work = number(many.batch) * number(many.channels) * number(few.channels / convolution.groups);
  for (const std::int64_t size : many.size) work *= number(size);
  for (const std::int64_t size : convolution.filters.size) work *= number(size);
  return work;
}

double work_of(const Mlp& mlp) {
  double work = 0;
  for (const MlpLayer& layer : mlp.layers) work += number(layer.weights.rows) * number(layer.weights.columns);
  return work * number(mlp.input.columns);
}

/// Whether a vendor's library takes it, which jobs leave to shaders.
bool is_by_library(const Engine& engine, const Gemm& product, const PlanOptions& options) {
  return engine.device().vendor_library == VendorLibrary::ready &&
         is_library(make_plan(engine, problem_of(product), options).kernel);
}
bool is_by_library(const Engine&, const Convolution&, const PlanOptions&) {
  return false;
}
bool is_by_library(const Engine&, const Mlp&, const PlanOptions&) {
  return false;
}

}  // namespace

void finish(Job& job, Interrupt& interrupt) {
  constexpr auto longest = 200ms;
  // The first slices are short, since a program that has not been timed yet may be far slower than expected.
  std::chrono::milliseconds budget(5);
  while (!job.done()) {
    job.advance(budget);
    budget = std::min(2 * budget, std::chrono::milliseconds(longest));
    const Fence fence = job.fence();
    while (!fence.wait(longest)) interrupt.check();
    interrupt.check();
  }
}

template <class Value>
void execute(Engine& engine, const Value& value, const PlanOptions& options, Interrupt& interrupt, Report* report) {
  constexpr double least_of_long = 1 << 26;
  if (work_of(value) < least_of_long || is_by_library(engine, value, options)) return enqueue(engine, value, options, report);
  Job job = engine.start(value, options);
  if (!report) return finish(job, interrupt);
  Stopwatch watch(engine);
  watch.start();
  finish(job, interrupt);
  watch.stop();
  *report = {.kernel = job.kernel(),
             .precision = planned_precision(engine, value, options),
             .slices = job.report().slices,
             .dispatches = job.report().dispatches,
             .kernel_time = watch.elapsed()};
}
template void execute(Engine&, const Gemm&, const PlanOptions&, Interrupt&, Report*);
template void execute(Engine&, const Convolution&, const PlanOptions&, Interrupt&, Report*);
template void execute(Engine&, const Mlp&, const PlanOptions&, Interrupt&, Report*);

void Work::take_owners(std::initializer_list<Array*> arrays, std::initializer_list<std::optional<Array>*> others) {
  const auto take = [&](Array& array) {
    if (array.owner) owners_.push_back(array.owner.attr("kept"));
    array.owner = {};
  };
  for (Array* const array : arrays) take(*array);
  for (std::optional<Array>* const other : others)
    if (*other) take(**other);
}

int Work::visit_owners(visitproc visit, void* arg) const {
  for (const py::object& owner : owners_) Py_VISIT(owner.ptr());
  if (out_) Py_VISIT(out_->owner.ptr());
  return 0;
}

void Work::set_result(const Sizes& shape, Strided matrices, const std::optional<Array>& written) {
  shape_ = shape;
  result_.layout = std::move(matrices);
  is_direct_ = !out_ || written;
  if (written) result_.elements = elements_of(*written);
}

const Placed& Work::with_room(Engine& engine) {
  const Strided& layout = result_.layout;
  if (!result_.elements)
    result_.elements = new_elements(service_, engine, layout.columns() > 0 ? layout.size() / layout.columns() : 0,
                                    layout.columns(), layout.type);
  return result_;
}

Placed Work::without_room() const {
  return {std::make_shared<const Elements>(service_, nullptr), result_.layout};
}

Array Work::run() {
  Report ran;
  service_->run(terms_.who.c_str(), [&](Engine& engine, Interrupt& interrupt) {
    const Placed& result = with_room(engine);
    if (result.layout.size() > 0) execute_on(engine, result, interrupt, terms_.report ? &ran : nullptr);
  });
  terms_.add(ran);
  if (is_direct()) return result();
  assign(*out_, download(array_of(result_.elements, dense(result_.layout.type, shape_))));
  return *out_;
}

void Work::prepare() {
  if (result_.layout.size() == 0) return;
  service_->run(terms_.who.c_str(), [&](Engine& engine, Interrupt&) { prepare_on(engine, without_room()); });
}

std::string Work::explain() {
  if (result_.layout.size() == 0) return "nothing: the result has no elements\n";
  const ExplainedArrays read = explained();
  const std::int64_t bytes = read.bytes + result_.layout.size() * element_bytes(result_.layout.type);
  std::string plan;
  service_->run(terms_.who.c_str(),
                [&](Engine& engine, Interrupt&) { plan = plan_on(engine, without_room()) + memory_text(engine, bytes); });
  return read.lines + plan;
}

std::unique_ptr<Job> Work::start(Engine& engine) {
  const Placed& result = with_room(engine);
  return result.layout.size() > 0 ? start_on(engine, result) : nullptr;
}

Array Work::result() const {
  return out_ ? *out_ : array_of(result_.elements, dense(result_.layout.type, shape_));
}

void define_work(py::module_& module) {
  py::class_<Told, std::shared_ptr<Told>>(module, "Report",
                                          R"(What ran, and how long it took: what `report=` of a call takes.

matmul(), gemm(), convolve() and mlp() fill it anew, for which they wait for the device. It is empty after a call that has nothing
to do, or that fails. stream() fills it once its product is done, and so when its Future is. Of a streamed product all times
are the host's.

>>> import numpy as np
>>> import glgemm
>>> report, a = glgemm.Report(), np.ones((64, 64), np.float32)
>>> _ = glgemm.matmul(a, a, kernel="tiled:tile=16", report=report)
>>> report.kernel, report.dispatches
('tiled:tile=16', 1)
>>> 0 < report.kernel_time < 1
True)")
      .def(py::init<>())
      .def_readonly("kernel", &Report::kernel,
                    "The kernel that ran, as kernel= takes it; of a convolution or a network the first one.")
      .def_property_readonly(
          "precision", [](const Told& report) { return std::string(to_string(report.precision)); },
          "The precision in which it ran.")
      .def_readonly("slices", &Report::slices,
                    "How many slices it was cut into, so that none takes long; of a streamed product, its windows.")
      .def_readonly("dispatches", &Report::dispatches, "How many dispatches ran; not counted of a streamed product.")
      .def_property_readonly(
          "kernel_time", [](const Told& report) { return seconds_of(report.kernel_time); },
          "Seconds from before the first dispatch to after the last one, by the device's clock where it has one; of a streamed\n"
          "product, the host's seconds of waiting for the device. What transfers take comes on top.")
      .def_readonly("bytes_to_device", &Told::bytes_to_device,
                    "Of a streamed product, the bytes that went to the device; else 0.")
      .def_readonly("bytes_from_device", &Told::bytes_from_device, "Of a streamed product, the bytes that came back; else 0.")
      .def_property_readonly(
          "transfer_time", [](const Told& report) { return seconds_of(report.transfer_time); },
          "Of a streamed product, the host's seconds of reading, copying and writing elements; else 0.")
      .def_property_readonly(
          "total_time", [](const Told& report) { return seconds_of(report.total_time); },
          "Of a streamed product, the host's seconds of all of it; else 0.")
      .def("__repr__", [](const Told& report) {
        return fmt::format("<glgemm.Report of {}, {}, {:.3g} ms>", report.kernel.empty() ? "nothing" : report.kernel,
                           to_string(report.precision), std::chrono::duration<double, std::milli>(report.kernel_time).count());
      });
  py::class_<Work, std::shared_ptr<Work>>(module, "Work")
      .def("run", &Work::run)
      .def("start", &StartedWork::start)
      .def("prepare", &Work::prepare)
      .def("explain", &Work::explain);
}

}  // namespace glgemm::python
