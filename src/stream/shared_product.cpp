// A streamed product that engines share: pieces of C from one queue.
#include "stream/shared_product.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <new>
#include <stdexcept>
#include <utility>

#include "base/rounding.hpp"
#include "plan/cost_model.hpp"
#include "stream/stream_plan.hpp"

namespace glgemm {
namespace {

/// The product has ended: a function of the caller's threw, called by this worker or by another. The exception is kept.
struct Stopped {};

/// The part of its share of what is left that a worker gets: what then remains evens out where the rates were wrong.
constexpr double part_measured = 0.75, part_unmeasured = 0.25;
/// No worker whose rate is not measured gets more than it is expected to compute in this time.
constexpr double seconds_unmeasured = 0.1;

double size(const Section& piece) {
  return static_cast<double>(piece.rows) * static_cast<double>(piece.columns);
}

/// @throws std::invalid_argument  a matrix lacks a function that the product needs
void check_functions(const HostGemm& product) {
  const auto needs = [](bool has, const char* name, const char* verb) {
    if (!has) throw std::invalid_argument(fmt::format("multiply: {} has no function to {} it", name, verb));
  };
  const bool reads = product.alpha.value != 0.0;
  const auto is_read = [&](const HostMatrix& matrix) {
    return matrix.quantization ? static_cast<bool>(matrix.read_codes) : static_cast<bool>(matrix.read);
  };
  const HostEpilogue& epilogue = product.epilogue;
  needs(!reads || is_read(product.a), "A", "read");
  needs(!reads || is_read(product.b), "B", "read");
  needs(product.beta.value == 0.0 || product.c.read, "C", "read");
  needs(static_cast<bool>(product.c.write), "C", "write");
  needs(!epilogue.residual || epilogue.residual->read, "D", "read");
  needs(epilogue.bias.kind() == Bias::none || epilogue.bias.values().read, "the bias", "read");
}

}  // namespace

SharedProduct::SharedProduct(const HostGemm& product, const StreamOptions& options, std::chrono::nanoseconds min_piece,
                             std::span<Worker> workers)
    : problem_(problem_of(product)),
      product_(with_calls(product)),
      options_(options),
      memory_limit_(options.memory_limit_bytes),
      min_seconds_(seconds(min_piece)),
      products_(static_cast<double>(std::max<std::int64_t>(1, problem_.k))),
      workers_(workers),
      on_cpu_(std::ranges::count_if(workers, [](const Worker& one) { return limits_of(*one.engine).cpu; })) {
  check_functions(product);
  if (options.memory_limit_bytes > 0)
    options_.memory_limit_bytes = std::max<std::int64_t>(1, options.memory_limit_bytes / static_cast<std::int64_t>(workers.size()));
}

void SharedProduct::run(const OnEach& on_each) {
  on_each([this](Worker& one) { plan(one); });
  begin();
  on_each([this](Worker& one) { work(one); });
  if (error_) std::rethrow_exception(error_);
}

// ---- Plans

void SharedProduct::plan(Worker& one) noexcept {
  try {
    std::int64_t limit = options_.device_memory_limit_bytes;
    // Engines that compute on the CPU share the main memory.
    if (limit == 0 && options_.memory_limit_bytes == 0 && limits_of(*one.engine).cpu && on_cpu_ > 1)
      limit = one.engine->device_memory_bytes() / on_cpu_;
    try {
      plan_within(one, limit);
    } catch (const DeviceLost& lost) {
      renew_engine(one, lost);
      plan_within(one, limit);
    }
    report_plan(one);
  } catch (const MemoryTooSmall& error) {
    const StreamMemory limits{error.limits.device, error.limits.both > 0 ? memory_limit_ : 0};  // and not one's share
    const StreamMemory least{error.least.device, error.least.both * std::ssize(workers_)};
    one.failure = std::make_exception_ptr(MemoryTooSmall(limits, least));
  } catch (...) {
    one.failure = std::current_exception();
  }
}

void SharedProduct::report_plan(const Worker& one) {
  one.report->kernel = to_string(one.plan.window.kernel);
  const StreamPlan& plan = one.plan;
  StreamReport& report = *one.report;
  report.piece_m = plan.piece_m;
  report.piece_n = plan.piece_n;
  report.piece_k = plan.piece_k;
  report.device_bytes = plan.device_bytes;
  report.host_bytes = plan.host_bytes;
  report.planned_bytes = plan.moved_bytes;
  report.bound_bytes = plan.bound_bytes;
}

void SharedProduct::plan_within(Worker& one, std::int64_t device_limit) {
  StreamOptions options = options_;
  options.device_memory_limit_bytes = one.device_limit = device_limit;
  one.plan = Streamer::ready_plan(*one.engine, problem_, options);
  const std::lock_guard lock(mutex_);
  if (queue_) queue_->narrow(across(one.plan));
}

void SharedProduct::begin() {
  for (Worker& one : workers_) {
    one.works = !one.failure;
    working_ += one.works;
  }
  if (working_ == 0) std::rethrow_exception(workers_.front().failure);
  if (problem_.m == 0 || problem_.n == 0) return;
  // Where one piece would do for an engine, the longer side is cut: each engine then needs all of the smaller operand only.
  const StreamPlan& first = std::ranges::find(workers_, true, &Worker::works)->plan;
  by_columns_ = first.pieces() > 1 ? first.by_columns : problem_.n <= problem_.m;
  std::int64_t panel = by_columns_ ? problem_.n : problem_.m;
  for (Worker& one : workers_) {
    if (!one.works) continue;
    panel = std::min(panel, across(one.plan));
    if (one.rate.measured) continue;
    const Plan& window = one.plan.window;
    const double expected = expected_seconds(window, options_.plan, limits_of(*one.engine));
    one.rate.value = static_cast<double>(window.problem.m) * static_cast<double>(window.problem.n) *
                     static_cast<double>(std::max<std::int64_t>(1, window.problem.k)) / std::max(1e-6, expected);
  }
  max_length_ = by_columns_ ? problem_.m : problem_.n;
  if (working_ > 1) max_length_ = static_cast<std::int64_t>(part_measured / working_ * static_cast<double>(max_length_)) + 1;
  queue_.emplace(problem_.m, problem_.n, std::max<std::int64_t>(1, panel), by_columns_, options_.done);
  done_ = elements() - static_cast<double>(queue_->left());
}

std::int64_t SharedProduct::block_lines(const StreamPlan& plan) const {
  const Block block = block_of(plan.window.kernel);
  return by_columns_ != plan.window.transposed ? block.rows : block.columns;
}

void SharedProduct::fit(Worker& one) noexcept try {
  if (along(one.plan) <= max_length_) return;
  StreamOptions options = options_;
  options.plan.kernel = one.plan.window.kernel;
  options.device_memory_limit_bytes = one.plan.device_bytes;
  Problem piece = problem_;
  (by_columns_ ? piece.m : piece.n) = std::min(along(one.plan), round_up(max_length_, block_lines(one.plan)));
  (by_columns_ ? piece.n : piece.m) = across(one.plan);
  StreamPlan fitting = Streamer::ready_plan(*one.engine, piece, options);
  if (across(fitting) < across(one.plan)) return;
  fitting.problem = one.plan.problem;
  fitting.moved_bytes = one.plan.moved_bytes;
  fitting.bound_bytes = one.plan.bound_bytes;
  one.plan = std::move(fitting);
  report_plan(one);
} catch (const std::exception&) {  // larger pieces do as well; what is wrong with the engine will show at its next piece
}

// ---- Pieces

void SharedProduct::work(Worker& one) noexcept {
  if (!one.works || !queue_) return;
  try {
    compute_pieces(one);
  } catch (...) {  // the queue itself ran out of memory
    stop(std::current_exception());
  }
}

void SharedProduct::compute_pieces(Worker& one) {
  std::optional<Streamer> streamer;
  std::optional<std::int64_t> panel;
  fit(one);
  while (const std::optional<Section> piece = take(one, panel)) {
    panel = by_columns_ ? piece->column : piece->row;
    std::exception_ptr error;
    try {
      if (!streamer) streamer.emplace(*one.engine, product_, one.plan, options_, *one.report);
      const auto begin = Clock::now();
      compute(*piece, *streamer);
      const double took = seconds(Clock::now() - begin);
      one.losses = 0;
      one.elements += piece->rows * piece->columns;
      if (options_.piece_done) {
        const std::lock_guard lock(callbacks_);
        call([&] { options_.piece_done(*piece); });
      }
      finish(one, *piece, took);
      continue;
    } catch (...) {
      error = std::current_exception();
    }
    give_back(*piece);
    try {
      // The piece cannot be computed again from a C that is partly overwritten.
      if (streamer && streamer->wrote() && reads_c(product_)) end(error);
      streamer.reset();
      recover(one, error);
      continue;
    } catch (const Stopped&) {
    } catch (...) {
      one.failure = std::current_exception();
    }
    break;
  }
  const std::lock_guard lock(mutex_);
  one.works = false;
  --working_;
}

void SharedProduct::recover(Worker& one, const std::exception_ptr& error) {
  const std::int64_t bytes = one.plan.device_bytes;
  try {
    std::rethrow_exception(error);
  } catch (const DeviceLost& lost) {
    renew_engine(one, lost);
    plan_within(one, one.device_limit);  // an equal plan, unless it is another device
    fit(one);
    return;
  } catch (const OutOfMemory&) {
  } catch (const std::bad_alloc&) {
  }
  try {
    plan_within(one, std::max<std::int64_t>(1, bytes / 2));
  } catch (const std::invalid_argument&) {  // no piece is that small
    std::rethrow_exception(error);
  }
  ++one.report->out_of_memory;
}

void SharedProduct::renew_engine(Worker& one, const DeviceLost& lost) {
  constexpr int max_losses = 3;  // at the same piece
  if (!one.new_engine || ++one.losses > max_losses) throw lost;
  ++one.report->contexts_lost;
  one.engine = &one.new_engine(lost);
}

void SharedProduct::compute(const Section& piece, Streamer& streamer) {
  double counted = 0;
  try {
    streamer.run(piece, [&](double share) {
      {
        const std::lock_guard lock(mutex_);
        if (ended_) throw Stopped();
      }
      const double done = share * size(piece);
      add_done(done - std::exchange(counted, done));
      if (options_.progress) tell();
    });
  } catch (...) {
    add_done(-counted);
    throw;
  }
}

double SharedProduct::add_done(double more) {
  const std::lock_guard lock(mutex_);
  return done_ += more;
}

void SharedProduct::tell() {
  const auto complete = [this](double done) { return done > elements() * (1 - 1e-9); };  // sums of shares are rounded
  const bool last = complete(add_done(0));
  // Skips this call if another thread reports; only the last one waits.
  std::unique_lock lock(callbacks_, std::try_to_lock);
  if (!lock && !last) return;
  if (!lock) lock.lock();
  const double done = add_done(0), share = complete(done) ? 1 : done / elements();
  if (share == told_) return;  // another thread has told it
  told_ = share;
  call([&] { options_.progress(share); });
}

// ---- The queue

std::int64_t SharedProduct::length(const Worker& one) const {
  const std::int64_t max_length = along(one.plan);
  if (working_ == 1) return max_length;
  double rates = 0;
  for (const Worker& each : workers_)
    if (each.works) rates += each.rate.value;
  const Rate& rate = one.rate;
  double wanted = rate.value / rates * static_cast<double>(queue_->left()) * (rate.measured ? part_measured : part_unmeasured);
  if (!rate.measured) wanted = std::min(wanted, rate.value * seconds_unmeasured / products_);
  wanted = std::max(wanted, rate.value * min_seconds_ / products_);
  // Whole blocks of workgroups.
  const std::int64_t step = block_lines(one.plan);
  const double lines = wanted / static_cast<double>(std::max<std::int64_t>(1, queue_->panel()));
  if (lines >= static_cast<double>(max_length)) return max_length;
  return std::min(max_length, (static_cast<std::int64_t>(lines) / step + 1) * step);
}

std::optional<Section> SharedProduct::take(Worker& one, std::optional<std::int64_t> panel) {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (ended_) return {};
    if (queue_->left() > 0) {
      ++in_flight_;
      return queue_->take(length(one), panel);
    }
    if (in_flight_ == 0) return {};
    // A piece that another worker computes may come back.
    const Timer timer(one.waiting_time);
    changed_.wait(lock);
  }
}

void SharedProduct::finish(Worker& one, const Section& piece, double took) {
  const std::lock_guard lock(mutex_);
  Rate& rate = one.rate;
  rate.work = rate.work / 2 + size(piece) * products_;
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

// ---- The caller's functions

template <class F>
void SharedProduct::call(const F& function) {
  try {
    function();
  } catch (...) {
    end(std::current_exception());
  }
}

void SharedProduct::stop(const std::exception_ptr& error) {
  const std::lock_guard lock(mutex_);
  if (!error_) error_ = error;
  ended_ = true;
  changed_.notify_all();
}

void SharedProduct::end(const std::exception_ptr& error) {
  stop(error);
  throw Stopped();
}

HostGemm SharedProduct::with_calls(HostGemm product) {
  const auto wrap = [this](auto& function) {
    if (function)
      function = [this, own = function](const Section& section, const auto& place) { call([&] { own(section, place); }); };
  };
  const auto wrapped = [&](HostMatrix matrix) {
    wrap(matrix.read);
    wrap(matrix.read_codes);
    wrap(matrix.write);
    return matrix;
  };
  for (HostMatrix* matrix : {&product.a, &product.b, &product.c}) *matrix = wrapped(*matrix);
  HostEpilogue& epilogue = product.epilogue;
  if (epilogue.residual) epilogue.residual = wrapped(*epilogue.residual);
  if (epilogue.bias.kind() == Bias::for_each_row) epilogue.bias = HostBias::for_each_row(wrapped(epilogue.bias.values()));
  if (epilogue.bias.kind() == Bias::for_each_column) epilogue.bias = HostBias::for_each_column(wrapped(epilogue.bias.values()));
  return product;
}

// ---- One engine

void multiply(Engine& engine, const HostGemm& product, const StreamOptions& options, StreamReport* report) {
  StreamReport own;
  StreamReport& result = report ? *report : own;
  result = {};
  const Timer timer(result.total_time);
  SharedProduct::Worker worker{.engine = &engine, .report = &result};
  if (options.new_engine) worker.new_engine = [&](const DeviceLost&) -> Engine& { return options.new_engine(); };
  SharedProduct(product, options, {}, {&worker, 1}).run([&](const auto& does) { does(worker); });
  if (worker.failure) std::rethrow_exception(worker.failure);
}

}  // namespace glgemm
