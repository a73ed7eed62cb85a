// An accelerator: a thread with a context and an engine. What products and matrices on several of them share.
//
// They are threads rather than processes, so that all of them read and write the caller's matrices in place. Drivers that compute
// on the CPU run contexts of one display one after the other: the sources give each context a display of its own.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <glgemm/accelerators.hpp>
#include <glgemm/error.hpp>

#include "base/thread.hpp"
#include "engine/state.hpp"

namespace glgemm {

/// A thread, and a context with an engine on it. While a task runs on the thread, the other members belong to the task.
struct Accelerator {
  AcceleratorSource source;
  EngineOptions options;
  std::string label;  ///< "accelerator 1 (NAME)"
  std::shared_ptr<void> context{};
  std::optional<Engine> engine{};
  DeviceInfo device{};
  std::string failure{};
  int generation = 0;  ///< counts contexts: what was made in an earlier one is gone
  std::map<Type, double> rates{};
  double rate = 0;
  std::unique_ptr<Thread> thread{};

  /// Makes a context and an engine, on the thread.
  void start() {
    context = source.make_current();
    ++generation;
    try {
      engine.emplace(source.get_proc_address, options);
    } catch (...) {
      drop();
      throw;
    }
    device = engine->device();
  }
  /// Forgets the engine and the context, which is lost.
  void drop() noexcept {
    if (engine) engine->abandon();
    engine.reset();
    context.reset();
  }
  void fail(const std::string& reason) noexcept {
    drop();
    failure = reason;
  }
  void stop() noexcept {
    try {
      if (engine) engine->release();
    } catch (const std::exception&) {  // its context is gone, and with it what it had
    }
    drop();
  }
};

/// Throws the exception again with a name in its message, where its type is glgemm's.
[[noreturn]] inline void rethrow(const std::exception_ptr& exception, const std::string& name) {
  const auto text = [&](const std::exception& error) { return name + ": " + error.what(); };
  try {
    std::rethrow_exception(exception);
  } catch (const DeviceLost& error) {
    throw DeviceLost(text(error));
  } catch (const OutOfMemory& error) {
    throw OutOfMemory(text(error), error.bytes());
  } catch (const Unsupported& error) {
    throw Unsupported(text(error));
  } catch (const GlError& error) {
    throw GlError(text(error));
  }
}

struct GLGEMM_HIDDEN Accelerators::State {
  AcceleratorsOptions options;
  std::mutex callbacks;  ///< of EngineOptions
  std::vector<std::unique_ptr<Accelerator>> list;
  std::vector<double> shares;  ///< of the rows of distributed matrices; empty: even
  std::atomic<std::int64_t> bytes_moved = 0;

  explicit State(AcceleratorsOptions given) : options(std::move(given)) {}
  ~State() {
    for (auto& one : list) try {
        if (one->thread) one->thread->post("Accelerators", [&accelerator = *one] { accelerator.stop(); });
      } catch (const std::exception&) {  // in a forked child its context is the parent's; or there is no memory for the task
        static_cast<void>(one.release());
      }
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  Accelerator& at(int index) const { return *list[static_cast<std::size_t>(index)]; }

  std::size_t usable() const {
    return static_cast<std::size_t>(std::ranges::count_if(list, [](const auto& one) { return one->engine.has_value(); }));
  }

  /// The accelerators that failed, each with its reason, for messages.
  std::string failures() const {
    std::string text;
    for (const auto& one : list)
      if (!one->failure.empty()) text += (text.empty() ? "" : "; ") + one->label + ": " + one->failure;
    return text;
  }

  /// Runs f on the threads of those accelerators at the same time, and waits for all. A lost context is dropped. `what`
  /// is the operation that errors name.
  /// @throws  what the first of them threw
  template <class F>
  void on(const char* what, const std::set<int>& which, const F& f) {
    std::vector<std::future<void>> ends;
    for (const int i : which) {
      Accelerator& one = at(i);
      ends.push_back(one.thread->post(what, [&f, &one, i] {
        try {
          f(one, i);
          if (one.engine) one.engine->fence().poll();  // so that the device begins, and a lost context is noticed
        } catch (const DeviceLost& error) {
          one.fail(error.what());
          throw;
        }
      }));
    }
    std::exception_ptr first;
    std::string name;
    auto end = ends.begin();
    for (const int i : which) {
      try {
        (end++)->get();
      } catch (...) {
        if (!first) name = at(i).label;
        if (!first) first = std::current_exception();
      }
    }
    if (first) rethrow(first, name);
  }
};

}  // namespace glgemm
