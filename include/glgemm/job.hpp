// A Job is a product that is enqueued piece by piece.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include <glgemm/export.hpp>
#include <glgemm/fence.hpp>
#include <glgemm/reserved.hpp>

namespace glgemm {

class Engine;
struct Plan;  // inspect.hpp

/// What a job has done so far.
struct JobReport {
  std::int64_t advances = 0;  ///< calls of advance that enqueued something
  std::int64_t slices = 0;
  std::int64_t dispatches = 0;
  /// The time that the job's slices took, by the clock of Report::kernel_time, as far as advance() has heard of it: not of those
  /// that still run. Once the job's fence has passed, one more advance() adds the rest.
  std::chrono::nanoseconds device_time{};
  /// How fast the program that runs next is, as far as the engine knows: multiply-adds in a second (elements in a second, where
  /// it packs or reduces). 0: not yet known.
  double rate = 0;
  Reserved reserved{};
};

/// A product that is enqueued in slices, so that an application with a frame to draw can give it so much of each:
///
///     Job job = engine.start({.a = a, .b = b, .c = c});
///     each frame: if (!job.done()) job.advance(std::chrono::milliseconds(4));
///
/// Made by Engine::start(). Made, used and destroyed on a thread on which the engine's context is current (after
/// Engine::abandon() destroyed on any; kernel(), progress(), done(), cancel() and report() need no context). It may outlive the
/// Engine object, not its context, and can then only be destroyed.
class GLGEMM_EXPORT Job {
 public:
  ~Job();
  Job(Job&&) noexcept;
  Job& operator=(Job&&) noexcept;

  /// Enqueues slices that are worth about `budget` of the device's time, flushes after each, and returns done(). Does not wait
  /// for the device, but where the driver itself computes in the call, and where DeviceInfo::device_clock is false: there it
  /// waits for each slice, before and after it.
  ///
  /// A slice is worth at most a fifth of the budget and at most EngineOptions::max_dispatch (or one workgroup, if that takes
  /// longer). Slices are enqueued until the budget is spent: by the device's time that they are expected to take, or by the
  /// host's clock, whichever says more. The expectation is what the engine has measured of each program, in this job or before.
  /// As long as nothing is measured, slices begin small (at most an eighth of what the cost model says) and grow by a factor of 4
  /// at most. A call enqueues nothing while the device still works on what the last advance but one enqueued, so that work does
  /// not pile up on a device that is busy otherwise.
  ///
  /// Saves and restores OpenGL state as Engine::gemm does. After cancel(), or when all is enqueued, it enqueues nothing.
  /// @throws std::invalid_argument  a budget of 0 or less; the engine was released or abandoned
  /// @throws Unsupported            transform feedback is active, or a display list is being compiled
  /// @throws DeviceLost             the context was reset
  bool advance(std::chrono::nanoseconds budget);

  /// Whether the product is completely enqueued: commands that are enqueued from now on see C. A fence tells when the device is
  /// done with it.
  bool done() const noexcept;
  /// The share of the product's work that is enqueued, from 0 to 1; it never falls.
  double progress() const noexcept;
  /// Ends the job: nothing more is enqueued; what was enqueued before still runs. Unless done() already, C is then written in
  /// part: each of its elements is as it was, final, or (where k is cut) a sum over a part of k.
  void cancel() noexcept;
  /// A fence behind everything enqueued so far, by whomever.  @throws std::invalid_argument  the engine was released or abandoned
  Fence fence();
  /// The kernel that runs it, as parse_kernel() reads it; of a convolution or a network the first one, which may be none of those
  /// for products.
  std::string kernel() const;
  JobReport report() const noexcept;

 private:
  friend class Engine;
  friend const Plan* plan_of(const Job& job) noexcept;  // inspect.hpp
  struct State;
  explicit Job(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace glgemm
