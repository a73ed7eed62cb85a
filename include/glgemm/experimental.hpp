// Options for tests, and for tools that try kernels. Nothing here is promised: any version may change or drop it.
//
// EngineOptions and PlanOptions hold these by a pointer (Opaque). What is added here changes neither the size of those structs
// nor what an application compiles that does not include this header.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <glgemm/inspect.hpp>
#include <glgemm/limits.hpp>
#include <glgemm/tuning.hpp>
#include <glgemm/unpromised.hpp>

namespace glgemm {

/// What tests and tools set, as in make_plan(problem, limits, {.experimental = ExperimentalPlanOptions{.runs = 1}}).
struct ExperimentalPlanOptions {
  /// The most columns and rows of workgroups of one dispatch. 0: 64 x 64 for `tiled` and `naive`, for the other kernels as many
  /// as a dispatch may have.
  std::int64_t slice_columns = 0;
  std::int64_t slice_rows = 0;
  /// Whether C^T = op(B)^T op(A)^T runs in place of C = op(A) op(B). By default as suits the kernel.
  std::optional<bool> transposed{};
  /// How often the product is going to run. The cost model divides the time to compile by it.
  double runs = 1000;
  /// The planner uses these limits instead of the device's. Lower ones cut a product into smaller pieces.
  std::optional<Limits> limits{};
  /// What a tuner found on this device. If an entry's problem is near enough, its kernel is taken before any that the cost model
  /// prefers. If it is empty, an engine goes by its own table unless `untuned`.
  std::vector<TunedChoice> tuning{};
  bool untuned = false;
  /// Programs that must not run, besides an engine's own, see struck_off(). If a program is struck off whose precision is
  /// not the standard one, ProgramKey::sealed takes its place.
  std::vector<StruckOff> struck_off{};
  /// A fixed place in the workspace for B's panels, if they fit there. By default they lie behind A's panels.
  std::optional<Window> panels_b{};
  friend bool operator==(const ExperimentalPlanOptions&, const ExperimentalPlanOptions&) = default;
};

struct ExperimentalEngineOptions {
  /// Gets the source of every program before the driver does, and returns the source that is compiled instead. The workgroup's
  /// size, the uniforms and the buffers must stay as they are.
  std::function<std::string(const ProgramKey& key, std::string source)> rewrite_source{};
  /// Before its first use, each program runs a small product of integers, and every byte of the result is compared; drivers do
  /// miscompile. Where Precision promises bits, products of other numbers are compared to the bit: the promise rests on what the
  /// driver makes of `precise`. A program that fails is struck off (see struck_off()), and another form of it
  /// (ProgramKey::sealed) or another kernel is taken. The check waits for the GPU: a few milliseconds, and some tens of them
  /// where bits are promised. prepare() does it ahead, and the program cache remembers it.
  bool self_check = true;
  /// The largest buffer that a DeviceMatrix makes; a larger matrix lies in bands. By default the largest that the driver gives.
  std::optional<std::int64_t> max_buffer_bytes{};
  /// Changes what the engine found of the device, so that it runs what a lesser device would. What this adds to the device's
  /// abilities is not checked.
  std::function<void(Limits& limits)> adjust_limits{};
};

}  // namespace glgemm
