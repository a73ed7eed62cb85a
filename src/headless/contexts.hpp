// Contexts without a window: what EGL's side and WGL's give, and how a device is chosen among it.
#pragma once

#include <fmt/core.h>

#include <functional>
#include <memory>
#include <string>
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

/// A way to a device, and what is known of that.
struct DevicePath {
  HeadlessDevice device{};
  /// Makes a context, which is not current yet, and shares objects with `share` if that is not null.
  std::function<std::unique_ptr<Context>(ContextApi api, const HeadlessOptions& options, const Context* share)> make{};
};

/// Makes current again what was current on this thread, unless it is told to keep what is then.
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

/// All ways, in the order in which they are tried, which is that of their indices.
std::vector<DevicePath> ways();

/// Ways for accelerators on the devices with these indices, each apart from the others as far as the system knows them apart.
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
