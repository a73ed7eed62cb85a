// Tells when the device is done.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include <glgemm/fence.hpp>

#include "python/pybind.hpp"
#include "python/service.hpp"

namespace glgemm::python {

/// glgemm::Fence, behind all that is enqueued when it is made. Closing the engine ends it.
class Milestone final : public Kept {
 public:
  explicit Milestone(std::shared_ptr<Service> service);
  ~Milestone();
  Milestone(const Milestone&) = delete;
  Milestone& operator=(const Milestone&) = delete;

  bool poll();
  /// Waits for at most so many seconds; for ever with None.
  bool wait(const py::object& timeout);
  void free() override { service_->discard(std::move(fence_)); }

 private:
  /// Calls `work` where the engine works.
  void run(const char* what, const std::function<void(const Fence& fence, Interrupt& interrupt)>& work);

  std::shared_ptr<Service> service_;
  std::unique_ptr<Fence> fence_{};
};

void define_fence(py::module_& module);

}  // namespace glgemm::python
