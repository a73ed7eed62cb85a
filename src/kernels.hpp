// What can run: what the planner needs to know of a kernel beyond the public functions of plan.hpp.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <glgemm/plan.hpp>

namespace glgemm::kernels {

/// The macros that shape the kernel's source: each an `#ifndef` name of its .comp file.
std::vector<std::pair<std::string, int>> macros(const Kernel& kernel);

/// Why these parameters are none that the kernel can have on any device; empty if they are.
std::string malformed(const Kernel& kernel);

/// The step along k that the kernel takes at a time; windows of k are multiples of it.
std::int64_t k_step(const Kernel& kernel) noexcept;

/// The longest window of k for which an invocation's loops stay within `loop_iterations` (0: no limit), a multiple of k_step;
/// at least one k_step.
std::int64_t longest_k(const Kernel& kernel, std::int64_t loop_iterations) noexcept;

}  // namespace glgemm::kernels
