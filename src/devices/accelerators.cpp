// Accelerators from their start to their end.
#include "devices/accelerators.hpp"

#include <fmt/core.h>

#include <stdexcept>

#include <glgemm/experimental.hpp>

#include "stream/shared_product.hpp"

namespace glgemm {
namespace {

/// What an exception says, for reports.
std::string reason_of(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an exception that is no std::exception";
  }
}

}  // namespace

Accelerators::Accelerators(std::vector<AcceleratorSource> sources, AcceleratorsOptions options)
    : state_(std::make_shared<State>(std::move(options))) {
  if (sources.empty()) throw std::invalid_argument("Accelerators: there are no sources");
  EngineOptions shared = state_->options.engine;
  // They are called on all threads; the state outlives those.
  if (shared.log)
    shared.log = [state = state_.get(), log = shared.log](std::string_view message) {
      const std::lock_guard lock(state->callbacks);
      log(message);
    };
  if (const auto rewrite = shared.experimental->rewrite_source)
    shared.experimental.edit().rewrite_source = [state = state_.get(), rewrite](const ProgramKey& key, std::string source) {
      const std::lock_guard lock(state->callbacks);
      return rewrite(key, std::move(source));
    };
  for (AcceleratorSource& source : sources) {
    const std::string label = fmt::format("accelerator {} ({})", state_->list.size(), source.name);
    if (!source.get_proc_address || !source.make_current)
      throw std::invalid_argument("Accelerators: " + label + " lacks get_proc_address or make_current");
    state_->list.push_back(std::make_unique<Accelerator>(Accelerator{std::move(source), shared, label}));
  }
  std::vector<std::future<void>> starts;
  for (const auto& one : state_->list) {
    one->thread = std::make_unique<Thread>();
    starts.push_back(one->thread->post("Accelerators", [&accelerator = *one] {
      try {
        accelerator.start();
      } catch (...) {
        accelerator.stop();
        accelerator.failure = reason_of(std::current_exception());
      }
    }));
  }
  for (std::future<void>& start : starts) start.get();
  if (state_->usable() == 0) throw Unsupported("no accelerator can be used: " + state_->failures());
}

Accelerators::~Accelerators() = default;
Accelerators::Accelerators(Accelerators&&) noexcept = default;
Accelerators& Accelerators::operator=(Accelerators&&) noexcept = default;

int Accelerators::size() const noexcept {
  return static_cast<int>(state_->list.size());
}
int Accelerators::usable() const {
  return static_cast<int>(state_->usable());
}

std::vector<AcceleratorInfo> Accelerators::info() const {
  std::vector<AcceleratorInfo> all;
  for (const auto& one : state_->list)
    all.push_back({one->source.name, one->source.software, one->device, one->failure, one->rate});
  return all;
}

void Accelerators::multiply(const HostGemm& product, const StreamOptions& options, AcceleratorsReport* report) {
  const auto begin = Clock::now();
  AcceleratorsReport own;
  AcceleratorsReport& result = report ? *report : own;
  result = {};
  if (state_->usable() == 0) throw GlError("multiply: no accelerator is left: " + state_->failures());
  const Type type = product.a.type;
  result.accelerators.resize(state_->list.size());
  std::vector<SharedProduct::Worker> workers;
  std::vector<std::pair<Accelerator*, AcceleratorReport*>> of_workers;  // in the workers' order
  for (std::size_t i = 0; i < state_->list.size(); ++i) {
    Accelerator& one = *state_->list[i];
    AcceleratorReport& report_of_one = result.accelerators[i];
    report_of_one.name = one.source.name;
    report_of_one.failure = one.failure;
    if (!one.engine) continue;
    of_workers.emplace_back(&one, &report_of_one);
    const auto restart = [&one, &stream = report_of_one.stream](const DeviceLost& lost) -> Engine& {
      one.fail(lost.what());
      if (stream.contexts_lost > 1) throw lost;
      one.start();
      one.failure.clear();
      return *one.engine;
    };
    workers.push_back({.engine = &*one.engine, .report = &report_of_one.stream, .new_engine = restart});
    if (const auto known = one.rates.find(type); known != one.rates.end())
      workers.back().rate = {.value = known->second, .measured = true};
  }

  SharedProduct shared(product, options, state_->options.min_piece, workers);
  std::exception_ptr ended;
  try {
    shared.run([&](const auto& does) {
      std::vector<std::future<void>> ends;
      for (std::size_t i = 0; i < workers.size(); ++i)
        ends.push_back(of_workers[i].first->thread->post("multiply", [&does, &worker = workers[i]] { does(worker); }));
      for (std::future<void>& one : ends) one.get();
    });
  } catch (...) {
    ended = std::current_exception();
  }
  result.total_time = Clock::now() - begin;
  for (std::size_t i = 0; i < workers.size(); ++i) {
    const SharedProduct::Worker& worker = workers[i];
    const auto& [one, report_of_one] = of_workers[i];
    report_of_one->elements = worker.elements;
    report_of_one->waiting_time = worker.waiting_time;
    report_of_one->rate = worker.rate.measured ? worker.rate.value : 0;
    if (worker.failure) report_of_one->failure = reason_of(worker.failure);
    if (one->engine && worker.rate.time > 0) one->rates[type] = one->rate = report_of_one->rate;
  }
  std::string reasons;
  for (std::size_t i = 0; i < result.accelerators.size(); ++i) {
    result.accelerators[i].stream.total_time = result.total_time;
    reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", state_->list[i]->label, result.accelerators[i].failure);
  }
  if (ended) std::rethrow_exception(ended);
  if (!shared.complete()) throw GlError("multiply: every accelerator failed: " + reasons);
}

}  // namespace glgemm
