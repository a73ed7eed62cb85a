// Products of arrays that are enqueued piece by piece.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>

#include "python/placed.hpp"

namespace glgemm::python {

/// glgemm::Job on arrays, whose elements it keeps until all is enqueued. Closing the engine ends it.
class StartedProduct final : public Kept {
 public:
  /// @throws as multiply(), and std::invalid_argument  the product cannot be written where `out` lies
  static std::unique_ptr<StartedProduct> start(const DeviceProduct& product, const Terms& terms, std::optional<Type> c_type);
  ~StartedProduct();
  StartedProduct(const StartedProduct&) = delete;
  StartedProduct& operator=(const StartedProduct&) = delete;

  /// Enqueues what takes the device about so many seconds, and returns done().
  bool advance(const py::object& budget);
  bool done() const noexcept { return done_; }
  double progress() const noexcept { return progress_; }
  void cancel() noexcept { running_.reset(); }
  /// Enqueues what is left, as multiply() does, and returns C.
  Array result();
  void free() override { running_.reset(); }

 private:
  struct Running {
    Running(const DeviceProduct& of, const Terms& its, std::optional<Type> c_type)
        : service(of.a.storage->service), terms(its), product(of, terms, c_type) {}
    ~Running() { service->discard(std::move(job)); }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

    std::shared_ptr<Service> service;
    Terms terms;
    PlacedProduct product;
    std::unique_ptr<Job> job{};  ///< null if C has no elements
  };

  explicit StartedProduct(std::shared_ptr<Running> running);
  /// Calls `work` with the job, if it goes on, where the engine works.
  void run(const char* what, const std::function<void(Job& job, Interrupt& interrupt)>& work);
  /// Sees how far the job is.
  void look(const Job& job) noexcept;

  std::shared_ptr<Service> service_;
  std::shared_ptr<Running> running_;  ///< null when all is enqueued, or nothing more will be
  Array c_;
  /// Of the job, which the engine's thread may be changing.
  std::atomic<bool> done_ = false;
  std::atomic<double> progress_ = 0;
};

void define_job(py::module_& module);

}  // namespace glgemm::python
