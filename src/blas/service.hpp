// The thread that has the OpenGL context.
#pragma once

#include <functional>
#include <optional>

#include <glgemm/engine.hpp>

#include "base/thread.hpp"

namespace glgemm::blas {

/// Where a call's work was done, and why.
enum class Outcome {
  opengl,
  small,       ///< the BLAS below, as for the rest: it would not gain
  no_doubles,  ///< the driver has none
  no_device,   ///< no OpenGL context can be had, or it was lost again and again
  conjugate,   ///< an op that glgemm has not
  forked,      ///< the process is a child of the one that has the context
  ending,      ///< the process ends
  failed,      ///< an error on the way
};
inline constexpr int ways = 8;
const char* reason(Outcome way) noexcept;

/// Runs `work` on the thread that has the context, and waits for it. Returns Outcome::opengl if it ran to its end, else why not;
/// then the error was told on stderr, once. Any thread, also several at once: they are served one after the other. The caller may
/// leave while it waits, by a signal's handler: `work` owns what it uses.
///
/// There is one context in a process, made when it is first needed, and one thread that has it, for these reasons. What a calling
/// thread has is left alone: its current context, its floating-point environment, its signals' handlers. Each of a program's many
/// threads would otherwise have buffers and compiled programs of its own, for a device that runs one product at a time anyway.
/// And as the process ends, there is one thread to be waited for.
/// @throws std::exception  there is no memory, or no thread
Outcome run(Undisturbed& undisturbed, bool needs_doubles, std::function<void(Engine&)> work);

/// What the context says of itself, which is made if it isn't there yet; nullopt if it can't be.
std::optional<DeviceInfo> device();
/// What the context says of itself; nullopt if none has been made yet.
std::optional<DeviceInfo> device_so_far();

}  // namespace glgemm::blas
