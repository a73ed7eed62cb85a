// A thread, a queue, and how both live through forks and the end of the process.
#include "blas/service.hpp"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cfenv>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include <glgemm/headless.hpp>

#include "blas/next.hpp"

namespace glgemm::blas {
namespace {

struct Job {
  bool needs_doubles = false;
  const std::function<void(Engine&)>* work = nullptr;
  std::optional<Way> way{};  ///< once it is done
};

/// What the thread shares with its callers, and with the process's end.
struct Shared {
  std::mutex mutex;
  std::condition_variable arrived;
  std::condition_variable done;
  std::deque<Job*> queue;
  bool started = false;
  bool busy = false;
  bool ending = false;
  std::optional<DeviceInfo> device;
};

/// Never destroyed: the thread waits on it for as long as the process lives.
Shared& shared() {
  static auto& only = *new Shared;
  return only;
}

/// The process that has the context, 0 before there is one. It is looked at before any lock, which a fork may have left locked.
std::atomic<pid_t> owner = 0;

/// The thread's own: the context, made again after it was lost.
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

/// As the process ends: no product begins, and the one that runs is waited for, since drivers take down what it uses. A driver
/// that hangs must not hang the end.
void end() {
  if (owner.load() != ::getpid()) return;
  Shared& all = shared();
  std::unique_lock lock(all.mutex);
  all.ending = true;
  all.done.wait_for(lock, std::chrono::seconds(10), [&] { return !all.busy; });
}

Way serve(Device& device, const Job& job) {
  if (!device.is_usable()) return Way::no_device;
  Engine* engine = nullptr;
  try {
    engine = &device.engine();
    std::unique_lock lock(shared().mutex);
    if (!std::exchange(shared().device, engine->device())) {
      lock.unlock();
      std::atexit(end);  // after the driver has registered what it does at the end, and so called before
    }
  } catch (const std::exception& error) {
    say_once(std::string("OpenGL can't be used, all products go to the next BLAS: ") + error.what());
    device.give_up();
    return Way::no_device;
  }
  if (job.needs_doubles && !engine->limits().f64) return Way::no_doubles;
  try {
    (*job.work)(*engine);
    return Way::opengl;
  } catch (const DeviceLost& error) {
    say_once(std::string(error.what()) + "; the call goes to the next BLAS");
    device.lose();
  } catch (const std::exception& error) {
    say_once(std::string(error.what()) + "; the call goes to the next BLAS");
  }
  return Way::failed;
}

void loop() {
  std::fesetenv(FE_DFL_ENV);  // a thread inherits its maker's, who may trap what drivers do
  Device device;
  Shared& all = shared();
  std::unique_lock lock(all.mutex);
  for (;;) {
    all.arrived.wait(lock, [&] { return !all.queue.empty(); });
    Job& job = *all.queue.front();
    all.queue.pop_front();
    if (all.ending) {
      job.way = Way::ending;
    } else {
      all.busy = true;
      lock.unlock();
      const Way way = serve(device, job);
      lock.lock();
      all.busy = false;
      job.way = way;
    }
    all.done.notify_all();
  }
}

/// Signals go to the program's own threads.
void start_thread() {
  sigset_t every, before;
  ::sigfillset(&every);
  ::pthread_sigmask(SIG_BLOCK, &every, &before);
  try {
    std::thread(loop).detach();
  } catch (...) {
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace

const char* reason(Way way) noexcept {
  constexpr const char* reasons[ways] = {"OpenGL", "too small to gain", "no doubles", "no device", "conjugate only",
                                         "forked", "process's end",     "error"};
  return reasons[static_cast<int>(way)];
}

Way run(bool needs_doubles, const std::function<void(Engine&)>& work) {
  pid_t process = 0;
  if (!owner.compare_exchange_strong(process, ::getpid()) && process != ::getpid()) return Way::forked;
  Shared& all = shared();
  std::unique_lock lock(all.mutex);
  if (all.ending) return Way::ending;
  if (!all.started) {
    try {
      start_thread();
    } catch (const std::exception& error) {
      say_once(std::string("no thread for OpenGL: ") + error.what());
      return Way::no_device;
    }
    all.started = true;
  }
  Job job{needs_doubles, &work};
  all.queue.push_back(&job);
  all.arrived.notify_one();
  all.done.wait(lock, [&] { return job.way.has_value(); });
  return *job.way;
}

std::optional<DeviceInfo> device() {
  run(false, [](Engine&) {});
  return device_so_far();
}

std::optional<DeviceInfo> device_so_far() {
  if (owner.load() != ::getpid()) return std::nullopt;
  const std::lock_guard lock(shared().mutex);
  return shared().device;
}

}  // namespace glgemm::blas
