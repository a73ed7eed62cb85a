// Counters, and the lines that they become.
#include "blas/log.hpp"

#include <pthread.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>

#include "base/system.hpp"
#include "blas/next.hpp"
#include "blas/threshold.hpp"

namespace glgemm::blas {

namespace {

std::atomic<bool> is_on = false;

}  // namespace

void start_log() {
  static std::once_flag once;
  guarded(0, [] {
    std::call_once(once, [] {
      if (variable("GLGEMM_BLAS_LOG") != "1") return;
      is_on = true;
      watch_all_calls();
      std::atexit(tell_log);
      ::pthread_atfork(nullptr, nullptr, [] {  // a child counts its own calls
        for (Routine* routine = Routine::first_; routine; routine = routine->following_)
          for (std::size_t way = 0; way < ways; ++way) {
            routine->calls_[way] = 0;
            routine->flops_[way] = 0;
          }
      });
    });
    return 0;
  });
}

void tell_log() {
  if (!is_on.exchange(false)) return;
  guarded(0, [] {
    const int process = ::getpid();
    const std::optional<DeviceInfo> device = device_so_far();
    say("pid {}: OpenGL: {}; next BLAS: {}", process, device ? device->renderer + ", " + device->version : "not used",
        next_file());
    for (std::size_t i = 0; i < blas_types.size(); ++i)
      say("pid {}: type {}: to OpenGL: {}", process, "sdcz"[i], threshold_text(blas_types[i]));
    for (const Routine* routine = Routine::first_; routine; routine = routine->following_)
      if (const std::string text = routine->text(); !text.empty()) say("pid {}: {}: {}", process, routine->name(), text);
    return 0;
  });
}

void Routine::count(Outcome way, double flops) noexcept {
  const auto index = static_cast<std::size_t>(way);
  calls_[index].fetch_add(1, std::memory_order_relaxed);
  double sum = flops_[index];
  while (!flops_[index].compare_exchange_weak(sum, sum + flops)) {
  }
  if (is_listed_.exchange(true)) return;
  following_ = first_.load();
  while (!first_.compare_exchange_weak(following_, this)) {
  }
}

std::string Routine::text() const {
  std::string line;
  for (std::size_t way = 0; way < ways; ++way)
    if (calls_[way] != 0)
      line += fmt::format("{}{}{}: {} calls, {:.3g} flops", line.empty() ? "" : "; ",
                          static_cast<Outcome>(way) == Outcome::opengl ? "" : "next BLAS, ", reason(static_cast<Outcome>(way)),
                          calls_[way].load(), flops_[way].load());
  return line;
}

}  // namespace glgemm::blas
