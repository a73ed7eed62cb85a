// Tells when the device is done.
#pragma once

#include <memory>

#include <glgemm/fence.hpp>

#include "python/pybind.hpp"
#include "python/service.hpp"

namespace glgemm::python {

/// glgemm::Fence, behind all that is enqueued when it is made. Closing the engine ends it.
class Milestone final : public KeptObject<Fence> {
 public:
  explicit Milestone(std::shared_ptr<Service> service);

  bool poll();
  /// Waits for at most so many seconds; for ever with None.
  bool wait(const py::object& timeout);
};

void define_fence(py::module_& module);

}  // namespace glgemm::python
