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
  if (!(seconds > 0 && seconds <= 60))  // more were surely meant as milliseconds
    throw std::invalid_argument(
        fmt::format("Job.advance: the budget is {} and must be a number of seconds above 0 and at most 60", seconds));
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

JobReport StartedWork::report() const {
  const std::lock_guard lock(report_mutex_);
  return report_;
}

void define_job(py::module_& module) {
  py::class_<JobReport>(module, "JobReport",
                        "What a job has enqueued, and how long the device took for it: what Job.report() returns.")
      .def_readonly("advances", &JobReport::advances, "How many steps of advance() and result() enqueued something.")
      .def_readonly("slices", &JobReport::slices, "How many slices are enqueued.")
      .def_readonly("dispatches", &JobReport::dispatches, "How many dispatches are enqueued.")
      .def_property_readonly(
          "device_time", [](const JobReport& report) { return seconds_of(report.device_time); },
          "Seconds that the device took for the slices that it has done, as far as advance() and result() have heard. Once\n"
          "a fence behind the job has passed, one more advance() adds the rest.")
      .def_readonly(
          "rate", &JobReport::rate,
          "How many multiply-adds (elements, where it packs or adds up parts of k) the program that runs next does in a\n"
          "second; 0 where that is not known.")
      .def("__repr__", [](const JobReport& report) {
        return fmt::format("<glgemm.JobReport of {} slices, {:.3g} ms>", report.slices, seconds_of(report.device_time) * 1e3);
      });
  py::class_<StartedWork>(
      module, "Job", shows_kept<StartedWork, StartedWork::visit_owners>(),
      R"(A product, convolution or network on the device that is enqueued piece by piece: an application gives it a part of each frame.

Made by Engine.start(), start_convolve() and start_mlp(). The arrays' elements must stay as they are until it is done; it keeps
them so long, even if they are freed. Other products and jobs may run in between. It is used where its engine may be used. Closing
the engine ends it, and so does letting go of it.)")
      .def("advance", &StartedWork::advance, py::arg("seconds"),
           R"(Enqueues what takes the device about so many seconds, a frame's budget, and returns done(): whether all is enqueued.

Does not wait for the device, but where the driver itself computes in the call. Enqueues nothing as long as the device has not
done what the last call but one enqueued, so that work does not pile up, nor after cancel(). Programs that have not been timed yet
begin with less. What may take long, such as compiling, was done when the job was made. Raises ValueError for 0 and less, and for
more than 60 seconds, and DeviceLost where the context was reset.)")
      .def("done", &StartedWork::done,
           "Whether all is enqueued: what is enqueued from now on sees C. The device may still be at work: Engine.fence() tells.")
      .def_property_readonly("progress", &StartedWork::progress, "The share of the work that is enqueued, from 0 to 1.")
      .def_property_readonly("kernel", &StartedWork::kernel,
                             "The kernel that runs, as kernel= takes it; of a convolution or a network the first one.")
      .def("report", &StartedWork::report,
           "A JobReport: what is enqueued so far, and the device's time for what it has done of that. Does not wait.")
      .def("cancel", &StartedWork::cancel,
           "Nothing more is enqueued. Unless it is done, C is then written in part, and result() raises CancelledError.")
      .def("result", &StartedWork::result,
           "Enqueues what is left, as gemm() does, and returns the result, an Array. Where nothing is left, it does not wait.");
}

}  // namespace glgemm::python
