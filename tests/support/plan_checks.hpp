// Whether a plan's steps are right, whatever the problem and the limits. The property tests and the fuzzer ask.
#pragma once

#include <cstdint>
#include <glgemm/inspect.hpp>
#include <string>

namespace glgemm::test {

/// Whether a step's windows of operands in bands each lie in one.
bool keeps_to_bands(const Problem& problem, const Step& step);

/// What is wrong with a workspace: each part begins where drivers can bind it, and none reaches into the next. Empty if nothing
/// is.
std::string wrong_workspace(const WorkspaceLayout& layout);

/// What is wrong with the plan and with its steps of about `work` each, where it was made for these limits and options; empty if
/// nothing is:
/// - No limit is passed: of groups, bindings, windows, the workspace and loops.
/// - No window leaves its operand, or straddles bands, or lacks an element that its step reads or writes.
/// - A multiply step reads panels that were packed whole, for this piece; a reduction what was multiplied.
/// - Every element of every item of C is written by one chain of steps, which together sum each step of k once.
/// - A barrier stands between what is written and what reads it, and before what is read is overwritten.
///
/// Looks at `max_steps` at most; what must hold of all steps together is then left out, and also where C is too large to count.
std::string wrong_steps(const Plan& plan, const Limits& limits, const PlanOptions& options, double work,
                        std::int64_t max_steps = INT64_MAX);

}  // namespace glgemm::test
