// What the caller of a product may decide about how it runs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <glgemm/kernel.hpp>
#include <glgemm/limits.hpp>
#include <glgemm/problem.hpp>

namespace glgemm {

/// What a tuner found to be the fastest way of a product on a device, see tuning.hpp.
struct TunedChoice {
  Problem problem;
  Kernel kernel;
  std::int64_t split_k = 0;  ///< as PlanOptions::split_k
  double gflops = 0;
};

/// What the caller (or a tuner) decides; everything else the planner does.
struct PlanOptions {
  /// Run this kernel or fail with its `why_not`.
  std::optional<Kernel> kernel{};
  /// The most workgroups of one dispatch: columns and rows of the grid. 0: the paper's 64 x 64 for `tiled`, `naive` and `small`,
  /// and for the others what a dispatch may have.
  std::int64_t slice_columns = 0;
  std::int64_t slice_rows = 0;
  /// The most bytes of workspace that the plan may need; pieces are made small enough for it.
  std::int64_t workspace_bytes = std::int64_t{256} << 20;
  /// The parts into which k is cut, each summed apart and all added up in a reduction, where the kernel can do that. 0: the
  /// planner's choice, 1: none.
  std::int64_t split_k = 0;
  /// Whether C^T = op(B)^T op(A)^T is run in place of C = op(A) op(B). By default as suits the kernel.
  std::optional<bool> transposed{};
  /// How often the product is going to run, as the cost model reckons with compile times.
  double runs = 1000;
  /// Plan within these limits rather than the device's: tighter ones, for a product that is to be cut into smaller pieces.
  std::optional<Limits> limits{};
  /// What a tuner found on this device. Where an entry's problem is near enough, its kernel is taken before any that the cost
  /// model prefers. An engine fills it from its own table unless `untuned`.
  std::span<const TunedChoice> tuning{};
  bool untuned = false;
  /// Programs that must not run: an engine fills it with those that failed their self-check.
  std::span<const ProgramKey> struck_off{};
};

}  // namespace glgemm
