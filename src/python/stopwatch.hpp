// Measures time on the device.
#pragma once

#include <memory>
#include <optional>

#include <glgemm/stopwatch.hpp>

#include "python/pybind.hpp"
#include "python/service.hpp"

namespace glgemm::python {

/// glgemm::Stopwatch, in seconds. Closing the engine ends it.
class Timer final : public KeptObject<Stopwatch> {
 public:
  explicit Timer(std::shared_ptr<Service> service);

  void start();
  void stop();
  double elapsed();
  std::optional<double> poll();

 private:
  enum class State { made, started, stopped };

  /// @throws std::invalid_argument  stop() was not called since start()
  void check_stopped(const char* what) const;

  State state_ = State::made;
};

void define_stopwatch(py::module_& module);

}  // namespace glgemm::python
