// The context's thread, and how it lives through forks and the end of the process.
#include "blas/service.hpp"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <future>
#include <mutex>
#include <utility>

#include <glgemm/headless.hpp>

#include "blas/log.hpp"
#include "blas/next.hpp"

namespace glgemm::blas {
namespace {

/// The process that has the context, 0 before there is one. It is looked at before any lock, which a fork may have left locked.
std::atomic<pid_t> owner = 0;
/// The process ends.
std::atomic<bool> ending = false;

/// Never destroyed: calls may come while the process ends.
Thread& thread() {
  static auto& only = *new Thread;
  return only;
}

/// What the context says of itself, once there is one.
struct Known {
  std::mutex mutex{};
  std::optional<DeviceInfo> device{};
};
Known& known() {
  static auto& only = *new Known;
  return only;
}

/// As the process ends: no product begins, and the one that runs is waited for, since drivers take down what it uses. A driver
/// that hangs must not hang the end.
void end() {
  if (owner.load() != ::getpid()) return;
  ending = true;
  guarded(std::future_status::ready, [] { return thread().post("exit", [] {}).wait_for(std::chrono::seconds(10)); });
}

/// The context and its engine, made again after it was lost. The thread's own.
class Device {
 public:
  /// Throws what stands in the way of a context.
  Engine& engine() {
    if (!engine_) {
      HeadlessOptions robust;
      robust.robust = true;
      try {
        context_.emplace(robust);  // it tells when it is lost
      } catch (const Unsupported&) {
        context_.emplace();
      }
      engine_.emplace(HeadlessContext::get_proc_address);
      // After the driver has registered what it does at the end, and so called before.
      if (const std::lock_guard lock(known().mutex); !std::exchange(known().device, engine_->device())) std::atexit(end);
      // A child that is forked from now on ends without the handlers that were registered before the driver's.
      std::atexit([] {
        if (owner.load() != ::getpid()) tell_log();
      });
    }
    return *engine_;
  }
  /// The context is gone. Another one is made when it is needed, but not for ever.
  void lose() noexcept {
    if (engine_) engine_->abandon();
    engine_.reset();
    context_.reset();
    if (++lost_ == 3) is_usable_ = false;
  }
  void give_up() noexcept { is_usable_ = false; }
  bool is_usable() const noexcept { return is_usable_; }

 private:
  std::optional<HeadlessContext> context_;
  std::optional<Engine> engine_;
  int lost_ = 0;
  bool is_usable_ = true;
};

/// On the thread.
Outcome serve(bool needs_doubles, const std::function<void(Engine&)>& work) {
  static auto& device = *new Device;
  if (ending) return Outcome::ending;
  if (!device.is_usable()) return Outcome::no_device;
  Engine* engine = nullptr;
  try {
    engine = &device.engine();
  } catch (const std::exception& error) {
    say_once("OpenGL can't be used, all products go to the next BLAS: {}", error.what());
    device.give_up();
    return Outcome::no_device;
  }
  if (needs_doubles && !engine->device().f64) return Outcome::no_doubles;
  return guarded(Outcome::failed, [&] {
    try {
      work(*engine);
    } catch (const DeviceLost&) {
      device.lose();
      throw;
    }
    return Outcome::opengl;
  });
}

}  // namespace

const char* reason(Outcome way) noexcept {
  constexpr const char* reasons[ways] = {"OpenGL", "too small to gain", "no doubles", "no device", "conjugate only",
                                         "forked", "process's end",     "error"};
  return reasons[static_cast<int>(way)];
}

Outcome run(Undisturbed& undisturbed, bool needs_doubles, std::function<void(Engine&)> work) {
  pid_t process = 0;
  if (!owner.compare_exchange_strong(process, ::getpid()) && process != ::getpid()) return Outcome::forked;
  if (ending) return Outcome::ending;
  std::future<Outcome> done =
      thread().post("gemm", [needs_doubles, work = std::move(work)] { return serve(needs_doubles, work); });
  undisturbed.suspend([&] { done.wait(); });
  return done.get();
}

std::optional<DeviceInfo> device() {
  Undisturbed undisturbed;
  run(undisturbed, false, [](Engine&) {});
  return device_so_far();
}

std::optional<DeviceInfo> device_so_far() {
  if (owner.load() != ::getpid()) return std::nullopt;
  const std::lock_guard lock(known().mutex);
  return known().device;
}

}  // namespace glgemm::blas
