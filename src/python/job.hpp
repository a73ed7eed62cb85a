// Work that is enqueued piece by piece.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "python/work.hpp"

namespace glgemm::python {

/// glgemm::Job on arrays, whose elements it keeps until all is enqueued. Closing the engine ends it.
class StartedWork final : public Kept {
 public:
  /// @throws as start() of an engine, and std::invalid_argument  the product cannot be written where the caller has its result
  static std::unique_ptr<StartedWork> start(std::shared_ptr<Work> work);
  ~StartedWork();
  StartedWork(const StartedWork&) = delete;
  StartedWork& operator=(const StartedWork&) = delete;

  /// Enqueues what takes the device about so many seconds, and returns done().
  bool advance(const py::object& seconds);
  bool done() const noexcept { return done_; }
  double progress() const noexcept { return progress_; }
  /// As parse_kernel() reads it; empty where there is nothing to do.
  const std::string& kernel() const noexcept { return kernel_; }
  JobReport report() const;
  void cancel() noexcept { running_.reset(); }
  /// Enqueues what is left, as multiply() does, and returns C.
  Array result();
  /// For the collector, of what the job keeps. What a call uses on another thread is not shown: it is kept by that, too.
  static int visit_owners(const StartedWork& started, visitproc visit, void* arg);
  void free() override { running_.reset(); }

 private:
  struct Running {
    explicit Running(std::shared_ptr<Work> shared_work) : service(shared_work->service()), work(std::move(shared_work)) {}
    ~Running() { service->discard(std::move(job)); }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

    std::shared_ptr<Service> service;
    std::shared_ptr<Work> work;  ///< null when all is enqueued: the job then only hears how long the device took
    std::unique_ptr<Job> job{};  ///< null if the result has no elements
  };

  explicit StartedWork(std::shared_ptr<Running> running);
  /// Calls `work` with the job, if it goes on, where the engine works.
  void run(const char* what, const std::function<void(Job& job, Interrupt& interrupt)>& work);
  /// Sees how far the job is.
  void look(const Job& job) noexcept;

  std::shared_ptr<Service> service_;
  std::shared_ptr<Running> running_;  ///< null if there is nothing to do, and after cancel() or free()
  Array c_;
  std::string kernel_{};
  /// What the job says of itself. The engine's thread may be changing the job.
  std::atomic<bool> done_ = false;
  std::atomic<double> progress_ = 0;
  mutable std::mutex report_mutex_{};
  JobReport report_{};
};

void define_job(py::module_& module);

}  // namespace glgemm::python
