// A product that an application enqueues in slices, a budget at a time.
#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <glgemm/job.hpp>

#include "engine/execute.hpp"
#include "engine/execute_convolution.hpp"
#include "engine/execute_mlp.hpp"
#include "engine/execute_product.hpp"
#include "engine/library.hpp"
#include "engine/prepare.hpp"

namespace glgemm {
namespace {

using Clock = std::chrono::steady_clock;

/// Has the span be of a copy.
template <class T>
void keep(std::list<std::vector<T>>& where, std::span<const T>& span) {
  if (!span.empty()) span = where.emplace_back(span.begin(), span.end());
}

/// A copy of a product and of what it points to.
class OwnProduct {
 public:
  explicit OwnProduct(const Gemm& product) : product_(product) {
    Batch& batch = product_.batch;
    for (auto* offsets : {&batch.offsets_a, &batch.offsets_b, &batch.offsets_c, &batch.offsets_d}) keep(offsets_, *offsets);
    for (auto* scalars : {&batch.alphas, &batch.betas}) keep(scalars_, *scalars);
    for (BufferView* view : {&product_.a, &product_.b, &product_.c}) keep(bands_, view->bands);
    if (product_.epilogue.residual) keep(bands_, product_.epilogue.residual->bands);
  }
  OwnProduct(const OwnProduct&) = delete;
  OwnProduct& operator=(const OwnProduct&) = delete;
  const Gemm& get() const { return product_; }

 private:
  Gemm product_;
  std::list<std::vector<std::int64_t>> offsets_;
  std::list<std::vector<Scalar>> scalars_;
  std::list<std::vector<unsigned>> bands_;
};

}  // namespace

struct GLGEMM_HIDDEN Job::State {
  std::shared_ptr<Engine::State> engine;
  OwnProduct product;
  WorkBuffers work{};
  std::unique_ptr<Steps> steps{};
  std::array<gl::Sync, 2> advances{};  ///< behind the last advance but one and the last one
  double work_done = 0;
  bool done = false, cancelled = false;
  JobReport report{};
  std::list<std::vector<unsigned>> bands{};                              ///< of a network's matrices
  std::shared_ptr<double> device_seconds = std::make_shared<double>(0);  ///< the clock may add to it when the job is gone

  /// Without a product: a job of a convolution or a network.
  explicit State(std::shared_ptr<Engine::State> of, const Gemm& what = {}) : engine(std::move(of)), product(what) {
    engine->check_usable("start");
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (!engine->may_delete("a job")) return;
    const gl::Api& api = engine->api;
    work.destroy(api);
    for (gl::Sync& advance : advances) advance.destroy(api);
  }

  template <class Prepare>
  void begin(const Prepare& prepare);
  /// Enqueues slices until the budget is spent.
  void enqueue(std::chrono::nanoseconds budget, Clock::time_point begin);
};

void Job::State::enqueue(std::chrono::nanoseconds budget, Clock::time_point begin) {
  const double all = seconds(budget), slice_seconds = seconds(std::min(budget / 5, engine->options.max_dispatch));
  Enqueuer enqueuer(*engine, *steps);
  double expected = 0;
  for (bool first = true; !done; first = false) {
    const double left = all - std::max(expected, seconds(Clock::now() - begin));
    if (!first && left < slice_seconds / 2) return;
    const Enqueuer::Timed timed = enqueuer.run_timed(std::min(slice_seconds, std::max(left, slice_seconds / 2)), device_seconds);
    done = !timed.step || steps->at_end();
    if (!timed.step) return;
    engine->clock.collect(engine->api, false);
    expected += timed.seconds;
    work_done += timed.step->work;
    ++report.slices;
    ++report.dispatches;
  }
}

/// Takes the steps that `prepare` makes, and does all that need not be done in a frame.
template <class Prepare>
void Job::State::begin(const Prepare& prepare) {
  std::optional<gl::StateGuard> guard;
  steps = prepare(guard);
  run_on_nothing(*engine, *steps);
  const Enqueuer enqueuer(*engine, *steps);
  steps->upload(*engine);
  done = steps->at_end();
}

Job Engine::start(const Gemm& product, const PlanOptions& options) {
  auto job = std::make_unique<Job::State>(state_, product);
  job->begin([&](auto& guard) {
    return std::make_unique<ProductSteps>(
        glgemm::prepare(*state_, "start", job->product.get(), options, by_shaders(*state_), job->work, guard));
  });
  return Job(std::move(job));
}

Job Engine::start(const Convolution& convolution, const PlanOptions& options) {
  auto job = std::make_unique<Job::State>(state_);
  job->begin([&](auto& guard) {
    return std::make_unique<ConvolutionSteps>(glgemm::prepare(*state_, "start", convolution, options, job->work, guard));
  });
  return Job(std::move(job));
}

Job Engine::start(const Mlp& mlp, const PlanOptions& options) {
  auto job = std::make_unique<Job::State>(state_);
  Mlp own = mlp;
  for (MlpLayer& layer : own.layers) keep(job->bands, layer.weights.bands);
  for (BufferView* view : {&own.input, &own.output}) keep(job->bands, view->bands);
  job->begin(
      [&](auto& guard) { return std::make_unique<MlpSteps>(glgemm::prepare(*state_, "start", own, options, job->work, guard)); });
  return Job(std::move(job));
}

Job::Job(std::unique_ptr<State> state) : state_(std::move(state)) {}
Job::~Job() = default;
Job::Job(Job&&) noexcept = default;
Job& Job::operator=(Job&&) noexcept = default;

bool Job::advance(std::chrono::nanoseconds budget) {
  const Clock::time_point begin = Clock::now();
  State& job = *state_;
  if (budget <= std::chrono::nanoseconds(0))
    throw std::invalid_argument(fmt::format("Job::advance: a budget of {} ns", budget.count()));
  job.engine->check_usable("Job::advance");
  const gl::Api& api = job.engine->api;
  gl::check_reset(api);
  job.engine->clock.collect(api, false);
  if (job.done || job.cancelled) return job.done;
  if (job.advances[0] && job.advances[0].wait(api, std::chrono::nanoseconds(0)) == gl::Sync::Status::pending) return false;

  std::optional<gl::StateGuard> guard;
  job.engine->save_bindings("Job::advance", guard, job.steps->bindings());
  job.enqueue(budget, begin);
  ++job.report.advances;
  if (job.done) job.work.destroy(api);  // the device keeps what it still needs
  job.advances[0].destroy(api);
  job.advances = {job.advances[1], gl::Sync(api)};
  return job.done;
}

bool Job::done() const noexcept {
  return state_->done;
}

double Job::progress() const noexcept {
  if (state_->done) return 1;
  const double all = state_->steps->all_work();
  return all > 0 ? std::min(1.0, state_->work_done / all) : 0;
}

void Job::cancel() noexcept {
  state_->cancelled = true;
}

Fence Job::fence() {
  state_->engine->check_usable("Job::fence");
  return Fence(std::make_unique<Fence::State>(Fence::State{state_->engine, gl::Sync(state_->engine->api)}));
}

std::string Job::kernel() const {
  return state_->steps->kernel();
}

const Plan* plan_of(const Job& job) noexcept {
  const auto* const product = dynamic_cast<const ProductSteps*>(job.state_->steps.get());
  return product ? product->plan() : nullptr;
}

JobReport Job::report() const noexcept {
  JobReport result = state_->report;
  result.device_time = std::chrono::nanoseconds(static_cast<std::int64_t>(1e9 * *state_->device_seconds));
  const std::optional<Runnable> next = state_->steps->least();
  if (next && !state_->engine->released) result.rate = next->rate->per_second;
  return result;
}

}  // namespace glgemm
