// Counters, and the lines that they become.
#include "blas/log.hpp"

#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "blas/next.hpp"
#include "blas/threshold.hpp"

namespace glgemm::blas {
namespace {

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

}  // namespace

class Log {
 public:
  static void list(Routine& routine) noexcept {
    routine.following_ = first_.load();
    while (!first_.compare_exchange_weak(routine.following_, &routine)) {
    }
  }

  /// A child counts its own calls.
  static void forget() noexcept {
    for (Routine* routine = first_; routine; routine = routine->following_)
      for (int way = 0; way < ways; ++way) {
        routine->calls_[static_cast<std::size_t>(way)] = 0;
        routine->flops_[static_cast<std::size_t>(way)] = 0;
      }
  }

  static void tell() {
    const std::string process = "pid " + std::to_string(::getpid()) + ": ";
    const std::optional<DeviceInfo> device = device_so_far();
    say(process + "OpenGL: " + (device ? device->renderer + ", " + device->version : "not used") + "; next BLAS: " + next_file());
    for (std::size_t i = 0; i < blas_types.size(); ++i)
      say(process + "type " + "sdcz"[i] + ": to OpenGL: " + threshold_text(blas_types[i]));
    for (const Routine* routine = first_; routine; routine = routine->following_) {
      std::string line;
      for (int way = 0; way < ways; ++way) {
        const auto index = static_cast<std::size_t>(way);
        if (routine->calls_[index] == 0) continue;
        line += (line.empty() ? " " : "; ");
        if (static_cast<Way>(way) != Way::opengl) line += "next BLAS, ";
        line += std::string(reason(static_cast<Way>(way))) + ": " + std::to_string(routine->calls_[index]) + " calls, " +
                number(routine->flops_[index]) + " flops";
      }
      if (!line.empty()) say(process + routine->name() + ':' + line);
    }
  }

 private:
  static inline std::atomic<Routine*> first_ = nullptr;
};

void Routine::count(Way way, double flops) noexcept {
  const auto index = static_cast<std::size_t>(way);
  calls_[index].fetch_add(1, std::memory_order_relaxed);
  double sum = flops_[index];
  while (!flops_[index].compare_exchange_weak(sum, sum + flops)) {
  }
  if (!is_listed_.exchange(true)) Log::list(*this);
}

void start_log() {
  static const bool once = [] {
    const char* text = variable("GLGEMM_BLAS_LOG");
    if (!text || std::string_view(text) != "1") return false;
    watch_all_calls();
    std::atexit(Log::tell);
    ::pthread_atfork(nullptr, nullptr, Log::forget);
    return true;
  }();
  static_cast<void>(once);
}

}  // namespace glgemm::blas
