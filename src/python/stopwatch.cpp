#include "python/stopwatch.hpp"

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "python/values.hpp"

namespace glgemm::python {

Timer::Timer(std::shared_ptr<Service> service)
    : KeptObject(std::move(service), "stopwatch", [](Engine& engine) { return Stopwatch(engine); }) {}

void Timer::start() {
  run("Stopwatch.start", [](Stopwatch& watch, Interrupt&) { watch.start(); });
  state_ = State::started;
}

void Timer::stop() {
  if (state_ == State::made) throw std::invalid_argument("Stopwatch.stop: it was not started");
  run("Stopwatch.stop", [](Stopwatch& watch, Interrupt&) { watch.stop(); });
  state_ = State::stopped;
}

double Timer::elapsed() {
  std::optional<std::chrono::nanoseconds> time;
  check_stopped("Stopwatch.elapsed");
  run("Stopwatch.elapsed", [&](Stopwatch& watch, Interrupt& interrupt) {
    while (!(time = watch.poll())) {
      interrupt.check();
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  });
  return seconds_of(*time);
}

std::optional<double> Timer::poll() {
  std::optional<std::chrono::nanoseconds> time;
  check_stopped("Stopwatch.poll");
  run("Stopwatch.poll", [&](Stopwatch& watch, Interrupt&) { time = watch.poll(); });
  return time ? std::optional(seconds_of(*time)) : std::nullopt;
}

void Timer::check_stopped(const char* what) const {
  if (state_ != State::stopped) throw std::invalid_argument(std::string(what) + ": it was not stopped since it was started");
}

void define_stopwatch(py::module_& module) {
  py::class_<Timer>(module, "Stopwatch",
                    R"(Measures how many seconds the device takes for what is enqueued meanwhile, by whomever.

Made by Engine.stopwatch(), and used where its engine may be used. `with watch:` is start() and, at the block's end, stop().)")
      .def("start", &Timer::start, "From here on; does not wait. It may be started again.")
      .def("stop", &Timer::stop, "To here; does not wait.")
      .def("elapsed", &Timer::elapsed, "The seconds between start() and stop(). Waits until the device has come to stop().")
      .def("poll", &Timer::poll, "The same if it is known already, else None; does not wait. Ask in the next frames, say.")
      .def("__enter__",
           [](const py::object& self) {
             self.cast<Timer&>().start();
             return self;
           })
      .def("__exit__", [](Timer& self, const py::args&) { self.stop(); });
}

}  // namespace glgemm::python
