// A thread that runs tasks from a queue, and what signals, cancelled callers and forks mean to it.
//
// All of it is in this header: the Python module includes it too, and a shared library of ours exports none of it.
#pragma once

#ifndef _WIN32
#include <pthread.h>
#include <unistd.h>
#endif

#include <cfenv>
#include <condition_variable>
#include <csignal>
#include <ctime>
#include <deque>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>

#include <glgemm/error.hpp>

namespace glgemm {

/// While it lives, signals wait and this thread is not cancelled. The handler of a signal may leave by siglongjmp(), and locks
/// that are held then stay locked. A thread that is made meanwhile has its signals blocked for good.
class Undisturbed {
 public:
  Undisturbed() noexcept { begin(); }
  ~Undisturbed() { end(); }
  Undisturbed(const Undisturbed&) = delete;
  Undisturbed& operator=(const Undisturbed&) = delete;

  /// Waits with signals and cancellation as they were before. `wait` holds no lock.
  template <class Wait>
  void suspend(const Wait& wait) noexcept(false) {
    end();
    wait();
    begin();
  }

 private:
#ifdef _WIN32
  void begin() noexcept {}
  void end() noexcept {}
#else
  void begin() noexcept {
    ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelling_);
    sigset_t every;
    ::sigfillset(&every);
    ::pthread_sigmask(SIG_SETMASK, &every, &signals_);
  }
  void end() noexcept {
    ::pthread_sigmask(SIG_SETMASK, &signals_, nullptr);
    ::pthread_setcancelstate(cancelling_, nullptr);
  }

  sigset_t signals_;
  int cancelling_;
#endif
};

/// While it lives, what this thread writes raises no signal: a write past the limit of a file's size (SIGXFSZ) or to a pipe that
/// nobody reads (SIGPIPE) fails alone. Such a signal would end the whole application.
class UnsignalledWrites {
 public:
#ifdef _WIN32
  UnsignalledWrites() noexcept {}
  ~UnsignalledWrites() {}
#else
  UnsignalledWrites() noexcept {
    ::sigemptyset(&ours_);
    ::sigpending(&before_);
    for (const int signal : {SIGXFSZ, SIGPIPE})
      if (::sigismember(&before_, signal) == 0) ::sigaddset(&ours_, signal);  // one that waits already is the application's
    ::pthread_sigmask(SIG_BLOCK, &ours_, &before_);
  }
  ~UnsignalledWrites() {
    const timespec at_once{};
    while (::sigtimedwait(&ours_, nullptr, &at_once) > 0) continue;
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
#endif
  UnsignalledWrites(const UnsignalledWrites&) = delete;
  UnsignalledWrites& operator=(const UnsignalledWrites&) = delete;

 private:
#ifndef _WIN32
  sigset_t ours_, before_;
#endif
};

/// Runs tasks in their order on a thread of its own, as a rule one on which a context is current.
///
/// - The queue owns its tasks. A caller that waits for a task may leave by siglongjmp() or be cancelled. Nothing dangles if the
///   task owns what it uses, or refers to what outlives the thread.
/// - The thread blocks all signals, which go to the program's own threads, and has the default floating-point environment.
/// - A child that fork() makes has no such thread, and a lock may stand locked there for ever. post() refuses there, and the
///   destructor frees nothing.
class Thread {
 public:
  /// @throws GlError  no thread can be had
  Thread() {
    const Undisturbed blocked;
    try {
      thread_ = std::make_unique<std::thread>([state = state_] { run(*state); });
    } catch (const std::system_error& error) {
      throw GlError(std::string("no thread for OpenGL: ") + error.what());
    }
  }
  ~Thread() {
    stop();
    if (is_here()) return;
    static_cast<void>(thread_.release());
    state_->kept = state_;
  }
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  /// Whether this process is the one that has the thread, and no child of it.
  bool is_here() const noexcept { return process_ == this_process(); }
  /// Whether it is the thread that calls.
  bool is_current() const noexcept { return thread_->get_id() == std::this_thread::get_id(); }

  /// What the task returns or throws comes out of the future. The task is destroyed before, on the thread. Any thread may call.
  /// `what` is the operation that errors name.
  /// @throws GlError           this process is a child of the one that has the thread
  /// @throws std::logic_error  the thread was stopped
  template <class Task>
  std::future<std::invoke_result_t<Task&>> post(const char* what, Task task) {
    if (!is_here())
      throw GlError(what +
                    std::string(": this process is a fork of one that has used glgemm, and OpenGL drivers do not live through a "
                                "fork: start processes by fork and exec, or before OpenGL is used"));
    auto owned = std::make_shared<Posted<Task>>(std::move(task));
    auto result = owned->promise.get_future();
    {
      Undisturbed undisturbed;
      const std::lock_guard lock(state_->mutex);
      if (state_->is_stopped) throw std::logic_error(what + std::string(": the thread was stopped"));
      state_->tasks.push_back([owned = std::move(owned)] { owned->run(); });
      state_->changed.notify_one();
    }
    return result;
  }

  /// Runs what was posted so far, and ends the thread. Does nothing in a child, and at a second call. Not for the thread itself.
  void stop() noexcept {
    if (!is_here() || !thread_->joinable()) return;
    {
      const std::lock_guard lock(state_->mutex);
      state_->is_stopped = true;
      state_->changed.notify_one();
    }
    thread_->join();
  }

 private:
  template <class Task>
  struct Posted {
    explicit Posted(Task&& given) : task(std::move(given)) {}
    void run() {
      try {
        if constexpr (std::is_void_v<Result>) {
          (*task)();
          task.reset();
          promise.set_value();
        } else {
          Result result = (*task)();
          task.reset();
          promise.set_value(std::move(result));
        }
      } catch (...) {
        task.reset();
        promise.set_exception(std::current_exception());
      }
    }
    using Result = std::invoke_result_t<Task&>;
    std::optional<Task> task;
    std::promise<Result> promise{};
  };

  struct State {
    std::mutex mutex{};
    std::condition_variable changed{};
    std::deque<std::function<void()>> tasks{};
    bool is_stopped = false;
    std::shared_ptr<State> kept{};  ///< itself, so that it is never destroyed
  };

  static int this_process() noexcept {
#ifdef _WIN32
    return 0;  // there is no fork
#else
    return ::getpid();
#endif
  }

  static void run(State& state) {
    std::fesetenv(FE_DFL_ENV);  // a thread inherits its maker's, who may trap what drivers do
    for (;;) {
      std::unique_lock lock(state.mutex);
      state.changed.wait(lock, [&] { return state.is_stopped || !state.tasks.empty(); });
      if (state.tasks.empty()) return;
      const std::function<void()> task = std::move(state.tasks.front());
      state.tasks.pop_front();
      lock.unlock();
      task();
    }
  }

  int process_ = this_process();
  std::shared_ptr<State> state_ = std::make_shared<State>();
  std::unique_ptr<std::thread> thread_;
};

}  // namespace glgemm
