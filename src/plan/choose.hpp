// Choosing a kernel among those whose programs may run.
#pragma once

#include <span>

#include <glgemm/experimental.hpp>

namespace glgemm {

/// What the library itself asks of a plan: for a job, say, or for a window of a stream. It goes before what tests and tools set.
struct PlanConstraints {
  bool by_shaders = false;           ///< not by a vendor's library, which takes products whole
  std::optional<bool> transposed{};  ///< as in ExperimentalPlanOptions
  std::optional<Window> panels_b{};  ///< likewise
  friend bool operator==(const PlanConstraints&, const PlanConstraints&) = default;
};

/// What the planner goes by, besides the problem and the caller's options.
struct PlannerInputs {
  /// With what tests and tools set in the options. An engine adds what it knows.
  PlannerInputs(const Limits& device, const PlanOptions& options, const PlanConstraints& constraints = {});

  Limits limits;
  std::span<const TunedChoice> tuning;  ///< a table that outlives this
  std::vector<StruckOff> struck_off;
  /// Why the plan must not have a program; empty if it may. Null: it may have each.
  std::function<std::string(const ProgramKey& program)> why_not{};
  bool by_shaders = false;  ///< as in PlanConstraints
  std::optional<bool> transposed;
  std::optional<Window> panels_b;
};

/// The limits within which a product is planned: the device's, unless a test sets others.
inline const Limits& limits_for(const PlanOptions& options, const Limits& device) {
  return options.experimental->limits ? *options.experimental->limits : device;
}

/// make_plan() by what an engine or a stream gives.
/// @throws  as make_plan(); Unsupported if no kernel has programs that the inputs do not refuse
Plan make_plan(const Problem& problem, const PlannerInputs& inputs, const PlanOptions& options, Explanation* why = nullptr);

}  // namespace glgemm
