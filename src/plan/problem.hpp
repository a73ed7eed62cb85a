// The operands of a problem by their roles, and which limits a device can have.
#pragma once

#include <cstddef>
#include <span>

#include <glgemm/inspect.hpp>

namespace glgemm {

/// The one of the four that belongs to the role.
template <class T>
const T& of_role(Role role, const T& a, const T& b, const T& c, const T& d) noexcept {
  const T* const all[] = {&a, &b, &c, &d};
  return *all[static_cast<std::size_t>(role)];
}
inline char letter(Role role) noexcept {
  return "ABCD"[static_cast<std::size_t>(role)];
}

/// A, B and C; and D where the problem has one.
std::span<const Role> roles(const Problem& problem) noexcept;
inline const Operand& operand(const Problem& problem, Role role) noexcept {
  return of_role(role, problem.a, problem.b, problem.c, problem.d);
}
/// The quantisation of A or of B, whichever is quantised.
inline const Quantization& quantization(const Problem& problem) noexcept {
  return problem.a.format.quantization ? problem.a.format.quantization : problem.b.format.quantization;
}
/// Whether op swaps rows and columns; C and D have no op.
bool is_transposed(const Problem& problem, Role role) noexcept;

/// @throws std::invalid_argument  a limit is out of its range; the message names it, with the numbers
void validate(const Limits& limits);

}  // namespace glgemm
