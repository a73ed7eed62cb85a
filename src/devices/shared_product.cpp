// A product on several accelerators: pieces of C from one queue.
#include <array>
#include <new>
#include <stdexcept>

#include "devices/accelerators.hpp"
#include "kernels/kernels.hpp"
#include "plan/cost_model.hpp"
#include "stream/piece_queue.hpp"
#include "stream/streaming.hpp"

namespace glgemm {
namespace {

/// The product has ended: a function of the caller's threw, on this accelerator or on another. The exception is kept.
struct Ended {};

/// A product that several accelerators share.
class SharedProduct {
 public:
  SharedProduct(const HostGemm& product, const StreamOptions& options, std::chrono::nanoseconds min_piece,
                const std::vector<std::unique_ptr<Accelerator>>& all)
      : problem_(problem(product)),
        product_(product),
        options_(options),
        min_seconds_(seconds(min_piece)),
        products_(static_cast<double>(std::max<std::int64_t>(1, problem_.k))),
        rates_(all.size()) {
    check_functions(product);
    product_ = with_calls(product, [this](const auto& f) { callers(f); });
    std::size_t usable = 0, software = 0;
    for (const auto& one : all) {
      usable += one->engine ? 1U : 0U;
      software += one->engine && one->engine->limits().cpu ? 1U : 0U;
    }
    options_.new_engine = {};
    options_.memory_limit =
        options.memory_limit == 0 ? 0 : std::max<std::int64_t>(1, options.memory_limit / static_cast<std::int64_t>(usable));
    software_ = static_cast<std::int64_t>(software);
  }

  /// Decides how an accelerator streams, on its thread.
  void plan(Accelerator& one, StreamReport& report) {
    StreamOptions options = options_;
    // Accelerators that compute on the CPU share the main memory.
    if (options.device_memory_limit == 0 && options.memory_limit == 0 && one.engine->limits().cpu && software_ > 1)
      options.device_memory_limit = one.engine->device_memory_bytes() / software_;
    report.plan = Streamer::ready_plan(*one.engine, problem_, options);
  }

  /// Begins, when the accelerators with the indices `planned` have plans.
  void begin(const std::vector<std::unique_ptr<Accelerator>>& all, const std::vector<AcceleratorReport>& reports,
             const std::vector<int>& planned) {
    const StreamPlan& first = reports[static_cast<std::size_t>(planned.front())].stream.plan;
    // Where it makes no difference to one accelerator, the longer side is cut: each accelerator then needs all of the smaller
    // operand only.
    by_columns_ = first.pieces() > 1 ? first.by_columns : problem_.n <= problem_.m;
    std::int64_t panel = by_columns_ ? problem_.n : problem_.m;
    for (const int i : planned) {
      const auto index = static_cast<std::size_t>(i);
      const StreamPlan& plan = reports[index].stream.plan;
      panel = std::min(panel, across(plan));
      Rate& rate = rates_[index];
      const auto known = all[index]->rates.find(problem_.type);
      rate.measured = known != all[index]->rates.end();
      const double work = static_cast<double>(plan.window.problem.m) * static_cast<double>(plan.window.problem.n) *
                          static_cast<double>(std::max<std::int64_t>(1, plan.window.problem.k));
      rate.value =
          rate.measured ? known->second : work / std::max(1e-6, modelled_seconds(all[index]->engine->limits(), plan.window));
      ++working_;
    }
    max_length_ = by_columns_ ? problem_.m : problem_.n;
    if (working_ > 1) max_length_ = static_cast<std::int64_t>(part / working_ * static_cast<double>(max_length_)) + 1;
    queue_.emplace(problem_.m, problem_.n, std::max<std::int64_t>(1, panel), by_columns_, options_.done);
    done_ = elements() - static_cast<double>(queue_->left());
  }

  /// Computes pieces until none is left, on the accelerator's thread.
  void work(Accelerator& one, int index, AcceleratorReport& report) noexcept {
    try {
      work_on(one, static_cast<std::size_t>(index), report);
    } catch (...) {  // the queue itself ran out of memory
      const std::lock_guard lock(mutex_);
      error_ = std::current_exception();
      ended_ = true;
      changed_.notify_all();
    }
  }

  /// @throws  the exception that ended the product
  void rethrow_end() const {
    if (error_) std::rethrow_exception(error_);
  }
  bool complete() const { return queue_->left() == 0; }

 private:
  /// Multiply-adds in a second.
  struct Rate {
    double value = 0;  ///< 0: it takes no part
    bool measured = false;
    double work = 0, time = 0;  ///< of the last pieces; older ones count less
  };

  /// Seconds that the cost model expects a window of a whole piece to take.
  double modelled_seconds(const Limits& limits, const Plan& window) const {
    return expected_seconds(window, options_.plan.limits.value_or(limits), options_.plan.runs);
  }
  std::int64_t across(const StreamPlan& plan) const { return by_columns_ ? plan.piece_n : plan.piece_m; }
  std::int64_t along(const StreamPlan& plan) const { return by_columns_ ? plan.piece_m : plan.piece_n; }
  double elements() const { return static_cast<double>(problem_.m) * static_cast<double>(problem_.n); }
  /// The part of its share that an accelerator gets at a time.
  static constexpr double part = 0.75;
  static double elements(const Section& piece) { return static_cast<double>(piece.rows) * static_cast<double>(piece.columns); }

  template <class F>
  void callers(const F& f) {
    try {
      f();
    } catch (...) {
      end(std::current_exception());
    }
  }
  /// Ends the product with that exception.
  [[noreturn]] void end(const std::exception_ptr& error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = error;
    ended_ = true;
    changed_.notify_all();
    throw Ended();
  }

  std::optional<Section> take(std::size_t index, const StreamPlan& plan, std::optional<std::int64_t> panel,
                              AcceleratorReport& report);
  std::int64_t length(const Rate& rate, const StreamPlan& plan) const;
  /// Makes the plan's pieces, and with them the accelerator's buffers, no larger than what it can get.
  void fit(Accelerator& one, StreamPlan& plan);
  void finished(std::size_t index, const Section& piece, double took);
  void give_back(const Section& piece);
  void leave(std::size_t index);
  void work_on(Accelerator& one, std::size_t i, AcceleratorReport& report);
  void compute(const Section& piece, Streamer& streamer);
  /// Does what can be done after a piece has failed, so that the accelerator can go on.
  /// @throws  why it cannot
  void recover(Accelerator& one, AcceleratorReport& report, const std::exception_ptr& error, std::optional<Streamer>& streamer);

  const Problem problem_;
  HostGemm product_;
  StreamOptions options_;
  const double min_seconds_;
  const double products_;  ///< for each element of C
  std::int64_t software_ = 0;
  bool by_columns_ = true;

  std::mutex mutex_;  ///< of what follows
  std::condition_variable changed_;
  std::optional<PieceQueue> queue_;
  std::vector<Rate> rates_;
  int working_ = 0;
  std::int64_t max_length_ = 0;  ///< of a piece
  int in_flight_ = 0;            ///< pieces
  bool ended_ = false;
  std::exception_ptr error_;  ///< with which it ended
  double done_ = 0;           ///< elements

  std::mutex callbacks_;  ///< of the options' functions
  double told_ = 0;       ///< the share that `progress` was called with
};

std::int64_t SharedProduct::length(const Rate& rate, const StreamPlan& plan) const {
  const std::int64_t max_length = along(plan);
  if (working_ == 1) return max_length;
  double rates = 0;
  for (const Rate& each : rates_) rates += each.value;
  // It gets only a part of its share of what is left: the rest evens out what the rates did not foresee.
  constexpr double part_unmeasured = 0.25, seconds_unmeasured = 0.1;
  double wanted = rate.value / rates * static_cast<double>(queue_->left()) * (rate.measured ? part : part_unmeasured);
  if (!rate.measured) wanted = std::min(wanted, rate.value * seconds_unmeasured / products_);
  wanted = std::max(wanted, rate.value * min_seconds_ / products_);
  // Whole tiles of the kernel.
  Tile block = tile(plan.window.kernel);
  if (plan.window.transposed) std::swap(block.rows, block.columns);
  const std::int64_t step = by_columns_ ? block.rows : block.columns;
  const double lines = wanted / static_cast<double>(std::max<std::int64_t>(1, queue_->panel()));
  if (lines >= static_cast<double>(max_length)) return max_length;
  return std::min(max_length, (static_cast<std::int64_t>(lines) / step + 1) * step);
}

void SharedProduct::fit(Accelerator& one, StreamPlan& plan) {
  if (along(plan) <= max_length_) return;
  StreamOptions options = options_;
  options.plan.kernel = plan.window.kernel;
  options.device_memory_limit = plan.device_bytes;
  Tile block = tile(plan.window.kernel);
  if (plan.window.transposed) std::swap(block.rows, block.columns);
  const std::int64_t step = by_columns_ ? block.rows : block.columns;
  Problem piece = problem_;
  (by_columns_ ? piece.m : piece.n) = std::min(along(plan), round_up(max_length_, step));
  (by_columns_ ? piece.n : piece.m) = across(plan);
  StreamPlan fitting = Streamer::ready_plan(*one.engine, piece, options);
  if (across(fitting) < across(plan)) return;
  fitting.problem = plan.problem;
  fitting.moved_bytes = plan.moved_bytes;
  fitting.bound_bytes = plan.bound_bytes;
  plan = std::move(fitting);
}

std::optional<Section> SharedProduct::take(std::size_t index, const StreamPlan& plan, std::optional<std::int64_t> panel,
                                           AcceleratorReport& report) {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (ended_) return {};
    if (queue_->left() > 0) {
      ++in_flight_;
      return queue_->take(length(rates_[index], plan), panel);
    }
    if (in_flight_ == 0) return {};
    // A piece that another accelerator works on may come back.
    const auto begin = Clock::now();
    changed_.wait(lock);
    report.waiting_time += Clock::now() - begin;
  }
}

void SharedProduct::finished(std::size_t index, const Section& piece, double took) {
  const std::lock_guard lock(mutex_);
  Rate& rate = rates_[index];
  rate.work = rate.work / 2 + elements(piece) * products_;
  rate.time = rate.time / 2 + std::max(1e-9, took);
  rate.value = rate.work / rate.time;
  rate.measured = true;
  --in_flight_;
  changed_.notify_all();
}

void SharedProduct::give_back(const Section& piece) {
  const std::lock_guard lock(mutex_);
  queue_->give_back(piece);
  --in_flight_;
  changed_.notify_all();
}

void SharedProduct::leave(std::size_t index) {
  const std::lock_guard lock(mutex_);
  rates_[index].value = 0;
  --working_;
}

void SharedProduct::compute(const Section& piece, Streamer& streamer) {
  const double all = elements(piece);
  double counted = 0;
  const auto count = [&](double share) {
    const auto done = [&](double more) {
      const std::lock_guard lock(mutex_);
      return done_ += more;
    };
    const double now = done(share * all - std::exchange(counted, share * all));
    if (!options_.progress || share == 0) return;
    // While a call from another thread is under way, this one is left out; only the last call of all waits.
    std::unique_lock lock(callbacks_, std::try_to_lock);
    const auto complete = [this](double x) { return x > elements() * (1 - 1e-9); };  // sums of shares are rounded
    if (!lock && !complete(now)) return;
    if (!lock) lock.lock();
    const double latest = done(0), told = complete(latest) ? 1 : latest / elements();
    if (told <= told_) return;  // another thread has told it
    told_ = told;
    callers([&] { options_.progress(told); });
  };
  try {
    streamer.run(piece, [&](double share) {
      {
        const std::lock_guard lock(mutex_);
        if (ended_) throw Ended();
      }
      count(share);
    });
  } catch (...) {
    count(0);
    throw;
  }
}

void SharedProduct::recover(Accelerator& one, AcceleratorReport& report, const std::exception_ptr& error,
                            std::optional<Streamer>& streamer) {
  const auto smaller = [&] {
    streamer.reset();
    StreamOptions options = options_;
    options.device_memory_limit = std::max<std::int64_t>(1, report.stream.plan.device_bytes / 2);
    try {
      report.stream.plan = Streamer::ready_plan(*one.engine, problem_, options);
    } catch (const std::invalid_argument&) {
      return false;  // too small for any piece
    }
    ++report.stream.out_of_memory;
    const std::lock_guard lock(mutex_);
    queue_->narrow(across(report.stream.plan));
    return true;
  };
  try {
    std::rethrow_exception(error);
  } catch (const DeviceLost& lost) {
    one.engine->abandon();
    streamer.reset();
    one.fail(lost.what());
    if (report.stream.contexts_lost++ > 0) throw;
    one.start();
    const StreamPlan before = report.stream.plan;
    StreamOptions options = options_;
    options.device_memory_limit = before.device_bytes;
    report.stream.plan = Streamer::ready_plan(*one.engine, problem_, options);
    one.failure.clear();
    const std::lock_guard lock(mutex_);
    queue_->narrow(across(report.stream.plan));
  } catch (const OutOfMemory&) {
    if (!smaller()) throw;
  } catch (const std::bad_alloc&) {
    if (!smaller()) throw;
  }
}

void SharedProduct::work_on(Accelerator& one, std::size_t i, AcceleratorReport& report) {
  std::optional<Streamer> streamer;
  std::optional<std::int64_t> panel;
  try {
    fit(one, report.stream.plan);
  } catch (const std::exception&) {  // larger pieces do as well; what is wrong with the accelerator will show at its first piece
  }
  while (const std::optional<Section> piece = take(i, report.stream.plan, panel, report)) {
    panel = by_columns_ ? piece->column : piece->row;
    std::exception_ptr error;
    try {
      if (!streamer) streamer.emplace(*one.engine, product_, report.stream.plan, options_, report.stream);
      const auto begin = Clock::now();
      compute(*piece, *streamer);
      const double took = seconds(Clock::now() - begin);
      report.elements += piece->rows * piece->columns;
      if (options_.piece_done) {
        const std::lock_guard lock(callbacks_);
        callers([&] { options_.piece_done(*piece); });
      }
      finished(i, *piece, took);
      continue;
    } catch (...) {
      error = std::current_exception();
    }
    give_back(*piece);
    try {
      // The piece cannot be computed again from a C that is partly overwritten.
      if (streamer && streamer->wrote() && reads_c(product_)) end(error);
      recover(one, report, error, streamer);
      continue;
    } catch (const Ended&) {
    } catch (const std::exception& reason) {
      report.failure = reason.what();
    } catch (...) {
      report.failure = unnamed;
    }
    break;
  }
  if (one.engine) {
    report.rate = rates_[i].measured ? rates_[i].value : 0;
    if (rates_[i].time > 0) one.rates[problem_.type] = one.rate = report.rate;
  }
  leave(i);
}

}  // namespace

void Accelerators::multiply(const HostGemm& product, const StreamOptions& options, AcceleratorsReport* report) {
  const auto begin = Clock::now();
  AcceleratorsReport own;
  AcceleratorsReport& result = report ? *report : own;
  result = {};
  if (state_->usable() == 0) throw GlError("multiply: no accelerator is left: " + state_->failures());
  SharedProduct shared(product, options, state_->options.min_piece, state_->list);
  std::vector<int> planned;
  for (const auto& one : state_->list) {
    if (one->engine) planned.push_back(static_cast<int>(result.accelerators.size()));
    AcceleratorReport& its = result.accelerators.emplace_back();
    its.name = one->source.name;
    its.failure = one->failure;
  }

  // All make their plans before the first begins, because the panels depend on all plans.
  std::exception_ptr first_error;
  std::vector<std::future<void>> tasks;
  const auto for_planned = [&](const auto& f) {
    tasks.clear();
    for (const int i : planned) {
      Accelerator& one = *state_->list[static_cast<std::size_t>(i)];
      tasks.push_back(
          one.thread->post([f, &one, i, &its = result.accelerators[static_cast<std::size_t>(i)]] { f(one, i, its); }));
    }
  };
  for_planned([&](Accelerator& one, int, AcceleratorReport& its) {
    try {
      shared.plan(one, its.stream);
    } catch (const DeviceLost& error) {
      one.fail(error.what());
      its.failure = error.what();
      one.start();
      shared.plan(one, its.stream);
      one.failure.clear();
      its.failure.clear();
      ++its.stream.contexts_lost;
    }
  });
  std::vector<int> working;
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    AcceleratorReport& its = result.accelerators[static_cast<std::size_t>(planned[t])];
    try {
      tasks[t].get();
      working.push_back(planned[t]);
    } catch (const std::exception& error) {
      if (!first_error) first_error = std::current_exception();
      its.failure = error.what();
    } catch (...) {
      if (!first_error) first_error = std::current_exception();
      its.failure = unnamed;
    }
  }
  planned = working;
  if (planned.empty()) std::rethrow_exception(first_error);
  const Problem problem = glgemm::problem(product);
  if (problem.m > 0 && problem.n > 0) {
    shared.begin(state_->list, result.accelerators, planned);
    for_planned([&](Accelerator& one, int i, AcceleratorReport& its) { shared.work(one, i, its); });
    for (std::future<void>& task : tasks) task.get();
  }
  result.total_time = Clock::now() - begin;
  for (AcceleratorReport& its : result.accelerators) its.stream.total_time = result.total_time;
  shared.rethrow_end();
  if (problem.m == 0 || problem.n == 0 || shared.complete()) return;
  std::string reasons;
  for (std::size_t i = 0; i < result.accelerators.size(); ++i)
    reasons += (reasons.empty() ? "" : "; ") + state_->list[i]->label + ": " + result.accelerators[i].failure;
  throw GlError("multiply: every accelerator failed: " + reasons);
}

}  // namespace glgemm
