// Products, convolutions and networks of arrays that are enqueued piece by piece.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "python/convolve.hpp"
#include "python/mlp.hpp"
#include "python/placed.hpp"

namespace glgemm::python {

/// glgemm::Job on arrays, whose elements it keeps until all is enqueued. Closing the engine ends it.
class StartedWork final : public Kept {
 public:
  /// @throws as multiply(), and std::invalid_argument  the product cannot be written where `out` lies
  static std::unique_ptr<StartedWork> start(DeviceProduct product, const Terms& terms, std::optional<Type> c_type);
  /// @throws as convolve()
  static std::unique_ptr<StartedWork> start(DeviceConvolution arrays, const ConvolutionTerms& how, const Terms& terms,
                                            std::optional<Type> type);
  /// @throws as run() of an engine
  static std::unique_ptr<StartedWork> start(DeviceMlp arrays, const Terms& terms, Type type);
  ~StartedWork();
  StartedWork(const StartedWork&) = delete;
  StartedWork& operator=(const StartedWork&) = delete;

  /// Enqueues what takes the device about so many seconds, and returns done().
  bool advance(const py::object& budget);
  bool done() const noexcept { return done_; }
  double progress() const noexcept { return progress_; }
  void cancel() noexcept { running_.reset(); }
  /// Enqueues what is left, as multiply() does, and returns C.
  Array result();
  /// For the collector, of what the job keeps. What a call uses on another thread is not shown: it is kept by that, too.
  static int visit_owners(const StartedWork& work, visitproc visit, void* arg);
  void free() override { running_.reset(); }

 private:
  struct Running {
    explicit Running(std::shared_ptr<Service> shared_service) : service(std::move(shared_service)) {}
    ~Running() { service->discard(std::move(job)); }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

    std::shared_ptr<Service> service;
    std::vector<py::object> owners{};  ///< of the arrays, which have none then: so each is kept once, and shown
    std::shared_ptr<const void> kept;  ///< the arrays
    std::unique_ptr<Job> job{};        ///< null if C has no elements
  };

  StartedWork(std::shared_ptr<Running> running, Array c);
  /// Starts what is placed; `out` is the caller's array for its result.
  template <class Placed>
  static std::unique_ptr<StartedWork> start(std::shared_ptr<Running> running, const std::shared_ptr<Placed>& placed,
                                            const Terms& terms, const std::optional<Array>& out);
  /// Calls `work` with the job, if it goes on, where the engine works.
  void run(const char* what, const std::function<void(Job& job, Interrupt& interrupt)>& work);
  /// Sees how far the job is.
  void look(const Job& job) noexcept;

  std::shared_ptr<Service> service_;
  std::shared_ptr<Running> running_;  ///< null when all is enqueued, or nothing more will be
  Array c_;
  /// What the job says of itself. The engine's thread may be changing the job.
  std::atomic<bool> done_ = false;
  std::atomic<double> progress_ = 0;
};

void define_job(py::module_& module);

}  // namespace glgemm::python
