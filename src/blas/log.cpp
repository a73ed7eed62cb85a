// Counters, and the lines that they become.
#include "blas/log.hpp"

#include <pthread.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "base/system.hpp"
#include "blas/next.hpp"
#include "blas/threshold.hpp"

namespace glgemm::blas {

class Log {
 public:
  static void start() {
    if (variable("GLGEMM_BLAS_LOG") != "1") return;
    is_on_ = true;
    watch_all_calls();
    std::atexit(tell);
    ::pthread_atfork(nullptr, nullptr, forget);
  }

  static void list(Routine& routine) noexcept {
    routine.following_ = first_.load();
    while (!first_.compare_exchange_weak(routine.following_, &routine)) {
    }
  }

  static void tell() {
    if (!is_on_.exchange(false)) return;
    guarded(0, [] {
      const int process = ::getpid();
      const std::optional<DeviceInfo> device = device_so_far();
      say("pid {}: OpenGL: {}; next BLAS: {}", process, device ? device->renderer + ", " + device->version : "not used",
          next_file());
      for (std::size_t i = 0; i < blas_types.size(); ++i)
        say("pid {}: type {}: to OpenGL: {}", process, "sdcz"[i], threshold_text(blas_types[i]));
      for (const Routine* routine = first_; routine; routine = routine->following_)
        if (const std::string text = routine->text(); !text.empty()) say("pid {}: {}: {}", process, routine->name(), text);
      return 0;
    });
  }

 private:
  /// A child counts its own calls.
  static void forget() noexcept {
    for (Routine* routine = first_; routine; routine = routine->following_)
      for (std::size_t way = 0; way < ways; ++way) {
        routine->calls_[way] = 0;
        routine->flops_[way] = 0;
      }
  }

  static inline std::atomic<Routine*> first_ = nullptr;
  static inline std::atomic<bool> is_on_ = false;
};

void Routine::count(Outcome way, double flops) noexcept {
  const auto index = static_cast<std::size_t>(way);
  calls_[index].fetch_add(1, std::memory_order_relaxed);
  double sum = flops_[index];
  while (!flops_[index].compare_exchange_weak(sum, sum + flops)) {
  }
  if (!is_listed_.exchange(true)) Log::list(*this);
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

void start_log() {
  guarded(false, [] {
    static const bool started = (Log::start(), true);
    return started;
  });
}

void tell_log() {
  Log::tell();
}

}  // namespace glgemm::blas
