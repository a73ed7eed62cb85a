// Accelerators from their start to their end.
#include "devices/accelerators.hpp"

#include <stdexcept>

namespace glgemm {

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
  if (shared.rewrite_source)
    shared.rewrite_source = [state = state_.get(), rewrite = shared.rewrite_source](const ProgramKey& key, std::string source) {
      const std::lock_guard lock(state->callbacks);
      return rewrite(key, std::move(source));
    };
  for (AcceleratorSource& source : sources) {
    const std::string label = "accelerator " + std::to_string(state_->list.size()) + " (" + source.name + ")";
    if (!source.get_proc_address || !source.make_current)
      throw std::invalid_argument("Accelerators: " + label + " lacks get_proc_address or make_current");
    state_->list.push_back(std::make_unique<Accelerator>(Accelerator{std::move(source), shared, label}));
  }
  std::vector<std::future<void>> starts;
  for (const auto& one : state_->list) {
    one->thread = std::make_unique<Thread>();
    starts.push_back(one->thread->post([&accelerator = *one] {
      try {
        accelerator.start();
      } catch (const std::exception& error) {
        accelerator.stop();
        accelerator.failure = error.what();
      } catch (...) {
        accelerator.stop();
        accelerator.failure = unnamed;
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

}  // namespace glgemm
