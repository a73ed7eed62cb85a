// Measures time on the device.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include <glgemm/stopwatch.hpp>

#include "python/pybind.hpp"
#include "python/service.hpp"

namespace glgemm::python {

/// glgemm::Stopwatch, in seconds. Closing the engine ends it.
class Timer final : public Kept {
 public:
  explicit Timer(std::shared_ptr<Service> service);
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  void start();
  void stop();
  double elapsed();
  std::optional<double> poll();
  void free() override { service_->discard(std::move(watch_)); }

 private:
  enum class State { made, started, stopped };

  /// Calls `work` where the engine works.
  void run(const char* what, const std::function<void(Stopwatch& watch, Interrupt& interrupt)>& work);
  /// @throws std::invalid_argument  stop() was not called since start()
  void check_stopped(const char* what) const;

  std::shared_ptr<Service> service_;
  std::unique_ptr<Stopwatch> watch_{};
  State state_ = State::made;
};

void define_stopwatch(py::module_& module);

}  // namespace glgemm::python
