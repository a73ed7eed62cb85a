// Work on arrays on the device: a product, a convolution or a network, which is run, started as a job, prepared or explained.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <glgemm/convolution.hpp>
#include <glgemm/engine.hpp>
#include <glgemm/gemm.hpp>
#include <glgemm/job.hpp>
#include <glgemm/mlp.hpp>

#include "python/array.hpp"
#include "python/explain.hpp"
#include "python/product.hpp"

namespace glgemm::python {

/// The elements that a call needs.
using KeptElements = std::vector<std::shared_ptr<const Elements>>;

/// Enqueues all slices and waits for them.
void finish(Job& job, Interrupt& interrupt);

/// Enqueues a Gemm, a Convolution or an Mlp. A long one is enqueued slice by slice and waited for, so that a signal can end it.
/// To fill a report, any is waited for.
template <class Value>
void execute(Engine& engine, const Value& value, const PlanOptions& options, Interrupt& interrupt, Report* report);

/// Work that was checked, with each array where kernels read it. It keeps the arrays' elements.
class Work {
 public:
  virtual ~Work() = default;
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  /// Runs it by execute(), and returns the result.
  Array run();
  /// Compiles and checks what run() and start() need. Enqueues nothing.
  void prepare();
  /// What run() would do, in lines of text.
  std::string explain();
  /// A job that runs it; null if the result has no elements. To be called by the service's work, once.
  std::unique_ptr<Job> start(Engine& engine);

  const Terms& terms() const noexcept { return terms_; }
  const std::shared_ptr<Service>& service() const noexcept { return service_; }
  /// Whether kernels write the result where it shall lie. If not, run() copies it there.
  bool is_direct() const noexcept { return is_direct_; }
  /// The caller's array; or a new one, for which run() or start() has made room.
  Array result() const;
  /// For the collector.
  int visit_owners(visitproc visit, void* arg) const;

 protected:
  /// `out` is the caller's array for the result.
  Work(std::shared_ptr<Service> service, const Terms& terms, const std::optional<Array>& out)
      : terms_(terms), service_(std::move(service)), out_(out) {}

  /// Takes what keeps the arrays' buffers of the application out of them: so each is kept once, and shown.
  void take_owners(std::initializer_list<Array*> arrays, std::initializer_list<std::optional<Array>*> others);
  /// The result has this shape. Kernels write it as these matrices: into `written`, which has no owner, or into a new array.
  void set_result(const Sizes& shape, Strided matrices, const std::optional<Array>& written);

 private:
  virtual void execute_on(Engine& engine, const Placed& result, Interrupt& interrupt, Report* report) = 0;
  virtual std::unique_ptr<Job> start_on(Engine& engine, const Placed& result) = 0;
  // The result belongs to no buffer.
  virtual void prepare_on(Engine& engine, const Placed& result) = 0;
  virtual std::string plan_on(Engine& engine, const Placed& result) = 0;
  virtual ExplainedArrays explained() const = 0;

  /// The elements of the result, which are made if need be.
  const Placed& with_room(Engine& engine);
  /// The result as a plan needs it.
  Placed without_room() const;

  const Terms terms_;
  const std::shared_ptr<Service> service_;
  const std::optional<Array> out_;
  std::vector<py::object> owners_{};
  Placed result_{};  ///< without elements until there is room
  Sizes shape_{};
  bool is_direct_ = true;
};

/// The same of a product, a convolution or a network as the library takes it.
template <class Value>
class WorkOn : public Work {
 protected:
  using Work::Work;

 private:
  /// With its result there. It lives as long as this does; called once.
  virtual const Value& build(const Placed& result) = 0;

  void execute_on(Engine& engine, const Placed& result, Interrupt& interrupt, Report* report) final {
    execute(engine, build(result), terms().options, interrupt, report);
  }
  std::unique_ptr<Job> start_on(Engine& engine, const Placed& result) final {
    return std::make_unique<Job>(engine.start(build(result), terms().options));
  }
  void prepare_on(Engine& engine, const Placed& result) final { engine.prepare(build(result), terms().options); }
  std::string plan_on(Engine& engine, const Placed& result) final { return plan_text(engine, build(result), terms().options); }
};

void define_work(py::module_& module);

}  // namespace glgemm::python
