#include "python/fence.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>

#include <fmt/core.h>

#include "python/values.hpp"

namespace glgemm::python {

using namespace std::chrono_literals;

Milestone::Milestone(std::shared_ptr<Service> service)
    : KeptObject(std::move(service), "fence", [](Engine& engine) { return engine.fence(); }) {}

bool Milestone::poll() {
  bool is_passed = false;
  run("Fence.poll", [&](const Fence& fence, Interrupt&) { is_passed = fence.poll(); });
  return is_passed;
}

bool Milestone::wait(const py::object& timeout) {
  constexpr double for_ever = 1e9;  // seconds: 30 years
  double seconds = for_ever;
  if (!timeout.is_none()) seconds = value_of<double>("Fence.wait: the timeout", timeout, "a number of seconds, or None");
  if (!(seconds >= 0))
    throw std::invalid_argument(fmt::format("Fence.wait: the timeout is {} and must be a number of seconds, 0 or more", seconds));
  const std::chrono::nanoseconds longest(static_cast<std::int64_t>(std::min(seconds, for_ever) * 1e9));
  const auto end = std::chrono::steady_clock::now() + longest;
  bool is_passed = false;
  run("Fence.wait", [&](const Fence& fence, Interrupt& interrupt) {
    for (bool is_last = false; !is_passed && !is_last;) {
      const auto left = std::max<std::chrono::nanoseconds>(end - std::chrono::steady_clock::now(), 0ns);
      is_last = left <= 50ms;
      is_passed = fence.wait(std::min<std::chrono::nanoseconds>(left, 50ms));
      interrupt.check();
    }
  });
  return is_passed;
}

void define_fence(py::module_& module) {
  py::class_<Milestone>(module, "Fence",
                        R"(Tells when the device has done all that was enqueued before it, by whomever.

Made by Engine.fence(), and used where its engine may be used. Closing the engine ends it. Both functions raise DeviceLost where
the context was reset.)")
      .def("poll", &Milestone::poll, "Whether that is done; does not wait for the device. Ask in the next frames, say.")
      .def("wait", &Milestone::wait, py::arg("timeout") = py::none(),
           R"(Waits until it is done, for at most `timeout` seconds; whether it is. None: for as long as it takes.

An engine with a thread of its own does nothing else meanwhile. Raises ValueError for a timeout below 0.)");
}

}  // namespace glgemm::python
