// Choosing a kernel among those whose programs may run.
#pragma once

#include <functional>
#include <string>

#include <glgemm/inspect.hpp>

namespace glgemm {

/// Why a plan must not have a program; empty if it may. Null: it may have each.
using RefusesProgram = std::function<std::string(const ProgramKey& program)>;

/// make_plan() with only those programs of which `why_not` says nothing.
/// @throws  as make_plan(); Unsupported if no kernel has such programs
Plan make_plan(const Problem& problem, const Limits& limits, const PlanOptions& options, const RefusesProgram& why_not,
               Explanation* why = nullptr);

}  // namespace glgemm
