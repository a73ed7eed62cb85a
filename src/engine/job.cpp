// A product that an application enqueues in slices, a budget at a time.
#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <glgemm/job.hpp>

#include "engine/convolve.hpp"
#include "engine/execute.hpp"
#include "engine/library.hpp"
#include "engine/state.hpp"

namespace glgemm {
namespace {

using Clock = std::chrono::steady_clock;

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
  template <class T>
  static void keep(std::list<std::vector<T>>& where, std::span<const T>& span) {
    if (!span.empty()) span = where.emplace_back(span.begin(), span.end());
  }
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
  std::optional<ConvolutionSteps> convolution{};  ///< whose product `call` is
  Call call{};
  Cursor cursor{};
  std::array<gl::Sync, 2> advances{};  ///< behind the last advance but one and the last one
  double work_all = 0, work_done = 0;
  bool done = false, cancelled = false;
  JobReport report{};

  State(std::shared_ptr<Engine::State> of, const Gemm& what) : engine(std::move(of)), product(what) {}
  /// Of a convolution, whose tables are the library's own.
  explicit State(std::shared_ptr<Engine::State> of) : State(std::move(of), Gemm{}) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (engine->is_gone()) return;
    const gl::Api& api = engine->api;
    work.destroy(api);
    for (gl::Sync& advance : advances) advance.destroy(api);
  }

  gl::Bindings bindings() const { return convolution ? convolution->call().prepared->bindings : call.prepared->bindings; }
  const Plan& plan() const {
    static const Plan nothing;
    if (call.prepared) return call.prepared->plan;
    const auto& shapes = convolution->call().prepared->shapes;
    return shapes.empty() ? nothing : shapes.front().products.front().prepared->plan;
  }
  bool at_end() const {
    if (!call.prepared) return true;  // a convolution that has not begun
    Cursor here = cursor;
    return !next_slice(call.prepared->plan, here, 0);
  }
  /// Goes on to the convolution's next product if this one is at its end. Returns false if there is none.
  bool has_more() {
    while (at_end()) {
      std::optional<Call> next = convolution ? convolution->next(*engine) : std::nullopt;
      if (!next) return false;
      call = std::move(*next);
      cursor = {};
    }
    return true;
  }
  /// Enqueues slices until the budget is spent.
  void enqueue(std::chrono::nanoseconds budget, Clock::time_point begin);
};

void Job::State::enqueue(std::chrono::nanoseconds budget, Clock::time_point begin) {
  const double all = seconds(budget), slice_seconds = seconds(std::min(budget / 5, engine->options.max_dispatch));
  std::optional<Enqueuer> enqueuer;
  double expected = 0;
  for (bool first = true; !done; first = false) {
    const double left = all - std::max(expected, seconds(Clock::now() - begin));
    if (!first && left < slice_seconds / 2) return;
    if (at_end()) enqueuer.reset();  // it is one product's
    done = !has_more();
    if (done) return;
    if (!enqueuer) enqueuer.emplace(*engine, call);
    const Enqueuer::Timed timed = enqueuer->run_timed(cursor, std::min(slice_seconds, std::max(left, slice_seconds / 2)));
    engine->clock.collect(engine->api, false);
    expected += timed.seconds;
    work_done += timed.step->work;
    ++report.slices;
    ++report.dispatches;
    done = at_end() && (!convolution || convolution->at_end());
  }
}

Job Engine::start(const Gemm& product, const PlanOptions& options) {
  state_->check_usable("start");
  auto job = std::make_unique<Job::State>(state_, product);
  const Gemm& own = job->product.get();
  std::optional<gl::StateGuard> guard;
  job->call = glgemm::prepare(*state_, "start", own, uncut(*state_, options), job->work, guard);
  for (const double work : job->call.prepared->work) job->work_all += work;
  Enqueuer(*state_, job->call).upload_items();
  job->done = job->at_end();
  return Job(std::move(job));
}

Job Engine::start(const Convolution& convolution, const PlanOptions& options) {
  state_->check_usable("start");
  auto job = std::make_unique<Job::State>(state_);
  std::optional<gl::StateGuard> guard;
  job->convolution.emplace(glgemm::prepare(*state_, "start", convolution, uncut(*state_, options), job->work, guard));
  job->work_all = job->convolution->call().prepared->work;
  job->done = job->convolution->at_end();
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
  if (job.done || job.cancelled) return job.done;
  job.engine->clock.collect(api, false);
  if (job.advances[0] && job.advances[0].wait(api, std::chrono::nanoseconds(0)) == gl::Sync::Status::pending) return false;

  std::optional<gl::StateGuard> guard;
  job.engine->save_bindings("Job::advance", guard, job.bindings());
  job.enqueue(budget, begin);
  ++job.report.advances;
  job.advances[0].destroy(api);
  job.advances = {job.advances[1], gl::Sync(api)};
  return job.done;
}

bool Job::done() const noexcept {
  return state_->done;
}

double Job::progress() const noexcept {
  if (state_->done) return 1;
  return state_->work_all > 0 ? std::min(1.0, state_->work_done / state_->work_all) : 0;
}

void Job::cancel() noexcept {
  state_->cancelled = true;
}

Fence Job::fence() {
  state_->engine->check_usable("Job::fence");
  return Fence(std::make_unique<Fence::State>(Fence::State{state_->engine, gl::Sync(state_->engine->api)}));
}

const Plan& Job::plan() const noexcept {
  return state_->plan();
}

JobReport Job::report() const noexcept {
  JobReport result = state_->report;
  const State& job = *state_;
  Cursor here = job.cursor;
  if (!job.call.prepared) return result;
  const std::optional<Step> next = next_slice(plan(), here, 0);
  if (next && !job.engine->released) result.rate = job.call.prepared->rates[static_cast<std::size_t>(next->stage)]->per_second;
  return result;
}

}  // namespace glgemm
