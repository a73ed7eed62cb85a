// Contexts without a window: what EGL and WGL each implement, for headless.cpp to choose a device from.
#pragma once

#include <fmt/core.h>

#include <functional>
#include <memory>
#include <vector>

#include <glgemm/headless.hpp>

namespace glgemm::headless {

/// A context, and its surface or window. Destroyed on the thread on which it is current, or where it is current nowhere.
class Context {
 public:
  explicit Context(ContextApi api) : api_(api) {}
  virtual ~Context() = default;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  ContextApi api() const { return api_; }
  /// @throws GlError  it is current on another thread
  virtual void make_current() = 0;
  virtual void release_current() = 0;

 private:
  ContextApi api_;
};

/// A way to a device, and what is known of the device.
struct DevicePath {
  HeadlessDevice device{};
  /// Makes a context, which is not current yet, and shares objects with `share` if that is not null.
  std::function<std::unique_ptr<Context>(ContextApi api, const HeadlessOptions& options, const Context* share)> make{};
};

/// At its end makes current again the context that was current on this thread, unless keep() was called.
class CurrentGuard {
 public:
  CurrentGuard();
  ~CurrentGuard();
  CurrentGuard(const CurrentGuard&) = delete;
  CurrentGuard& operator=(const CurrentGuard&) = delete;
  void keep() { keep_ = true; }

 private:
  struct Current;
  std::unique_ptr<const Current> current_;
  bool keep_ = false;
};

/// All ways, in the order of their indices, in which they are tried.
std::vector<DevicePath> ways();

/// Ways to the devices with these indices for accelerators, each with a display of its own as far as the system has several.
std::vector<DevicePath> ways_apart(const std::vector<std::size_t>& indices, const std::vector<HeadlessDevice>& devices);

/// The context that make(major, minor) gives for the API's newest version that there is.
/// @throws Unsupported  it gives none, with the system's error
template <class Make, class LastError>
auto newest_version(ContextApi api, const Make& make, const LastError& last_error) {
  const bool es = api == ContextApi::es;
  const int newest = es ? 2 : 6, oldest = es ? 1 : 3;
  for (int minor = newest; minor >= oldest; --minor)
    if (const auto context = make(es ? 3 : 4, minor)) return context;
  throw Unsupported(
      fmt::format("no such context of OpenGL {} can be made ({})", es ? "ES 3.1 or 3.2" : "4.3 to 4.6", last_error()));
}

}  // namespace glgemm::headless
