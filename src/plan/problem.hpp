// The operands of a problem by their roles.
#pragma once

#include <span>

#include <glgemm/plan.hpp>

namespace glgemm {

/// A, B and C; and D where the problem has one.
std::span<const Role> roles(const Problem& problem) noexcept;
const Operand& operand(const Problem& problem, Role role) noexcept;
/// Whether op swaps rows and columns; C and D have no op.
bool is_transposed(const Problem& problem, Role role) noexcept;

}  // namespace glgemm
