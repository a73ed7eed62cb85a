// Forks, where the system is POSIX: see fork.hpp.
#include <fmt/core.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <new>

#include <glgemm/error.hpp>

#include "base/fork.hpp"
#include "base/system.hpp"

namespace glgemm {
namespace {

std::atomic<bool> forked = false;
/// The process that called watch_forks() first.
std::atomic<pid_t> watched = 0;

#ifdef __GLIBC__
void leave_child(int status, void*) {
  if (!is_forked()) return;
  std::fflush(nullptr);
  ::_exit(status);
}
#endif

}  // namespace

void watch_forks() {
  pid_t none = 0;
  if (watched.compare_exchange_strong(none, ::getpid())) {
    if (::pthread_atfork(nullptr, nullptr, [] { forked = true; }) != 0) throw std::bad_alloc();
#ifdef __GLIBC__
    keep_loaded(&watched);  // glibc calls leave_child() even if dlclose() has unloaded this library
#endif
  }
#ifdef __GLIBC__
  ::on_exit(leave_child, nullptr);  // handlers are called in the opposite order, so that this one is called before the driver's
#endif
}

bool is_forked() noexcept {
  return forked.load(std::memory_order_relaxed);
}

void check_not_forked(const char* what) {
  if (is_forked())
    throw GlError(fmt::format(
        "{}: this process is a fork of one that has used glgemm (process {}), and OpenGL drivers do not live through a fork: "
        "start processes by fork and exec, or before OpenGL is used",
        what, watched.load()));
}

}  // namespace glgemm
