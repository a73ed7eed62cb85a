#include "python/job.hpp"

#include <chrono>
#include <cmath>
#include <stdexcept>

#include <fmt/core.h>

#include "python/values.hpp"

namespace glgemm::python {

std::unique_ptr<StartedWork> StartedWork::start(std::shared_ptr<Work> work) {
  if (!work->is_direct())
    throw std::invalid_argument(work->terms().who +
                                ": the product cannot be written where C lies, and a job makes no copy of it");
  auto running = std::make_shared<Running>(std::move(work));
  running->service->run(running->work->terms().who.c_str(),
                        [&](Engine& engine, Interrupt&) { running->job = running->work->start(engine); });
  return std::unique_ptr<StartedWork>(new StartedWork(std::move(running)));
}

StartedWork::StartedWork(std::shared_ptr<Running> running)
    : service_(running->service), running_(std::move(running)), c_(running_->work->result()) {
  if (running_->job) {
    kernel_ = running_->job->kernel();
    look(*running_->job);
    if (done_) running_->work.reset();
  } else {
    done_ = true;
    progress_ = 1;
    running_.reset();
  }
  service_->keep(*this);
}

StartedWork::~StartedWork() {
  service_->let_go(*this);
}

int StartedWork::visit_owners(const StartedWork& started, visitproc visit, void* arg) {
  Py_VISIT(started.c_.owner.ptr());
  const bool is_alone = started.running_.use_count() == 1 && started.running_->work.use_count() == 1;
  return is_alone ? started.running_->work->visit_owners(visit, arg) : 0;
}

void StartedWork::look(const Job& job) noexcept {
  done_ = job.done();
  progress_ = job.progress();
  const std::lock_guard lock(report_mutex_);
  report_ = job.report();
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
  if (done_ && running) running->work.reset();
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
  run("Job.result", [](Job& job, Interrupt& interrupt) {
    finish(job, interrupt);
    job.advance(std::chrono::nanoseconds(1));  // hears how long the device took
  });
  if (done_) return c_;
  PyErr_SetString(py::module_::import("concurrent.futures").attr("CancelledError").ptr(), "Job.result: the job was cancelled");
  throw py::error_already_set();
}

py::dict StartedWork::report() const {
  const JobReport report = [this] {
    const std::lock_guard lock(report_mutex_);  // not while Python works: its collector may wait for the engine
    return report_;
  }();
  py::dict result;
  result["advances"] = report.advances;
  result["slices"] = report.slices;
  result["dispatches"] = report.dispatches;
  result["device_time"] = std::chrono::duration<double>(report.device_time).count();
  result["rate"] = report.rate;
  return result;
}

void define_job(py::module_& module) {
  py::class_<StartedWork>(
      module, "Job", shows_kept<StartedWork, StartedWork::visit_owners>(),
      R"(A product, convolution or network on the device that is enqueued piece by piece: an application gives it a part of each frame.

Made by Engine.start(), start_convolve() and start_mlp(). The arrays' elements must stay as they are until it is done; it keeps
them so long, even if they are freed. Other products and jobs may run in between. It is used where its engine may be used. Closing
the engine ends it, and so does letting go of it.)")
      .def("advance", &StartedWork::advance, py::arg("budget"),
           R"(Enqueues what takes the device about so many seconds, and returns done().

Does not wait for the device, but where the driver itself computes in the call. Enqueues nothing as long as the device has not
done what the last call but one enqueued, so that work does not pile up, nor after cancel(). Programs that have not been timed yet
begin with less. What may take long, such as compiling, was done when the job was made.)")
      .def("done", &StartedWork::done,
           "Whether all is enqueued: what is enqueued from now on sees C. Engine.finish() waits for the device.")
      .def_property_readonly("progress", &StartedWork::progress, "The share of the work that is enqueued, from 0 to 1.")
      .def_property_readonly("kernel", &StartedWork::kernel,
                             "The kernel that runs, as kernel= takes it; of a convolution or a network the first one.")
      .def("report", &StartedWork::report,
           R"(A dict.

advances     the calls of advance() that enqueued something
slices, dispatches
             what was enqueued
device_time  the seconds that the device took for it, as far as advance() and result() have heard; once the device is done, one
             more call adds the rest
rate         how many multiply-adds (elements, where it packs or adds up parts of k) the program that runs next does in a second;
             0 where that is not known)")
      .def("cancel", &StartedWork::cancel,
           "Nothing more is enqueued. Unless it is done, C is then written in part, and result() raises CancelledError.")
      .def("result", &StartedWork::result,
           "Enqueues what is left, as gemm() does, and returns the result, an Array. Where nothing is left, it does not wait.");
}

}  // namespace glgemm::python
