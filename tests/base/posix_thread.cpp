// A thread with a queue: callers that leave it, forks, signals.
#include <doctest/doctest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cfenv>
#include <chrono>
#include <csetjmp>
#include <csignal>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/thread.hpp"

using namespace glgemm;

namespace {

/// A task waits here until the test opens it.
struct Gate {
  std::promise<void> promise{};
  std::shared_future<void> opened{promise.get_future()};
  void open() { promise.set_value(); }
};

/// Runs `check` in a child, which ends with 0 if it is true, within 20 seconds.
template <class Check>
bool holds_in_child(const Check& check) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(check() ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool refuses(Thread& thread) {
  try {
    thread.post("test", [] {});
    return false;
  } catch (const GlError& error) {
    return std::string(error.what()).starts_with("test: this process is a fork of one that has used glgemm");
  }
}

sigjmp_buf after_the_signal;

}  // namespace

TEST_CASE("thread: tasks run in their order, and what they return or throw comes out") {
  std::vector<int> order;
  std::future<void> last;
  {
    Thread thread;
    for (int i = 0; i < 100; ++i) last = thread.post("test", [&order, i] { order.push_back(i); });
    CHECK(thread.post("test", [&] { return thread.is_current(); }).get());
    CHECK(!thread.is_current());
    CHECK(thread.post("test", [] { return std::string("text"); }).get() == "text");
    CHECK_THROWS_WITH_AS(thread.post("test", [] { throw std::out_of_range("outside"); }).get(), "outside", std::out_of_range);
    last = thread.post("test", [&order] { order.push_back(100); });
    thread.stop();
    thread.stop();
    CHECK_THROWS_AS(thread.post("test", [] {}), std::logic_error);
  }
  CHECK(last.wait_for(std::chrono::seconds(0)) == std::future_status::ready);
  REQUIRE(order.size() == 101);
  for (int i = 0; i < 101; ++i) CHECK(order[static_cast<std::size_t>(i)] == i);
}

TEST_CASE("thread: signals and floating-point traps are its maker's alone") {
  sigset_t before, now;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  std::fesetround(FE_DOWNWARD);
  Thread thread;
  CHECK(std::fegetround() == FE_DOWNWARD);
  std::fesetenv(FE_DFL_ENV);
  pthread_sigmask(SIG_SETMASK, nullptr, &now);
  CHECK(sigismember(&now, SIGUSR1) == sigismember(&before, SIGUSR1));
  thread
      .post("test",
            [] {
              sigset_t there;
              pthread_sigmask(SIG_SETMASK, nullptr, &there);
              CHECK(sigismember(&there, SIGUSR1) == 1);
              CHECK(std::fegetround() == FE_TONEAREST);
            })
      .get();
}

TEST_CASE("thread: a caller that leaves by siglongjmp or is cancelled leaves nothing behind that dangles") {
  Thread thread;
  Gate gate;
  const auto value = std::make_shared<int>(7);
  std::atomic<int> seen = 0;
  const auto task = [opened = gate.opened, value, &seen] {
    opened.wait();
    seen += *value;
  };
  std::signal(SIGUSR1, [](int) { siglongjmp(after_the_signal, 1); });
  std::future<void> done;  // out here, for a jump destroys nothing on its way
  if (sigsetjmp(after_the_signal, 1) == 0) {
    Undisturbed undisturbed;
    done = thread.post("test", task);
    undisturbed.suspend([&] {
      raise(SIGUSR1);
      done.wait();
    });
    FAIL("the handler did not leave");
  }
  std::signal(SIGUSR1, SIG_DFL);

  struct Caller {
    Thread& thread;
    const decltype(task)& what;
  } caller{thread, task};
  pthread_t other;
  REQUIRE(pthread_create(
              &other, nullptr,
              [](void* given) -> void* {
                const auto& passed = *static_cast<Caller*>(given);
                const std::future<void> unwaited = passed.thread.post("test", passed.what);
                pthread_cancel(pthread_self());
                pthread_testcancel();
                return nullptr;
              },
              &caller) == 0);
  void* result = nullptr;
  pthread_join(other, &result);
  CHECK(result == PTHREAD_CANCELED);
  CHECK(value.use_count() == 4);  // this one, the test's task, and two that were posted

  gate.open();
  thread.post("test", [] {}).get();
  CHECK(seen == 14);
  CHECK(value.use_count() == 2);
}

TEST_CASE("thread: a signal or a cancellation waits while a call is not to be disturbed") {
  static volatile std::sig_atomic_t handled;
  handled = 0;
  std::signal(SIGUSR1, [](int) { handled = 1; });
  {
    Undisturbed undisturbed;
    raise(SIGUSR1);
    CHECK(handled == 0);
    undisturbed.suspend([&] { CHECK(handled == 1); });
    handled = 0;
    raise(SIGUSR1);
    CHECK(handled == 0);
  }
  CHECK(handled == 1);
  std::signal(SIGUSR1, SIG_DFL);
}

TEST_CASE("thread: a forked child has none, says so, and ends") {
  Gate gate;
  auto* const thread = new Thread;
  const std::future<void> idle = thread->post("test", [] {});
  idle.wait();
  const auto ends = [&] {
    const bool refused = !thread->is_here() && refuses(*thread);
    delete thread;
    return refused;
  };
  CHECK(holds_in_child(ends));
  const std::future<void> busy = thread->post("test", [opened = gate.opened] { opened.wait(); });
  CHECK(holds_in_child(ends));
  CHECK(thread->is_here());
  gate.open();
  delete thread;
}
