// What can run: what the planner needs to know of a kernel beyond the public functions of plan.hpp.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <glgemm/plan.hpp>

namespace glgemm::kernels {

/// The macros that shape the program's source: each an `#ifndef` name of its .comp file or of gemm.glsl.
std::vector<std::pair<std::string, int>> macros(const ProgramKey& key);

/// Why these parameters are none that the kernel can have on any device; empty if they are.
std::string malformed(const Kernel& kernel);

/// Why the planner passes over a kernel that could run the problem; empty if it does not.
std::string poor_choice(const Problem& problem, const Kernel& kernel);

/// The number of blocks into which the kernel cuts a C of rows x columns.
std::int64_t blocks(const Kernel& kernel, std::int64_t rows, std::int64_t columns) noexcept;

/// Whether a workgroup takes the blocks of several items, so that all items of a dispatch lie along the grid's x.
bool packs_items(const Kernel& kernel) noexcept;

/// The step along k that the kernel takes at a time; windows of k are multiples of it.
std::int64_t k_step(const Kernel& kernel) noexcept;

/// The longest window of k for which an invocation's loops stay within `loop_iterations` (0: no limit), a multiple of k_step;
/// at least one k_step.
std::int64_t longest_k(const Kernel& kernel, std::int64_t loop_iterations) noexcept;

}  // namespace glgemm::kernels
