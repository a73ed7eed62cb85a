// Sections of matrices on the host's side, read part by part.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <glgemm/streaming.hpp>

namespace glgemm {

/// Calls f(part, offset) for contiguous parts of a dense section, of at most `max_elements` each: whole lines, or parts of one.
/// The part's first element is element number `offset` of the section.
template <class F>
void for_each_part(const Section& section, Layout layout, std::int64_t max_elements, const F& f) {
  const bool by_rows = layout == Layout::row_major;
  const std::int64_t lines = by_rows ? section.rows : section.columns, width = by_rows ? section.columns : section.rows;
  if (lines == 0 || width == 0) return;
  const std::int64_t lines_each = std::max<std::int64_t>(1, max_elements / width), width_each = std::min(width, max_elements);
  for (std::int64_t line = 0; line < lines; line += lines_each)
    for (std::int64_t at = 0; at < width; at += width_each) {
      const std::int64_t count = std::min(lines_each, lines - line), length = std::min(width_each, width - at);
      f(by_rows ? Section{section.row + line, section.column + at, count, length}
                : Section{section.row + at, section.column + line, length, count},
        line * width + at);
    }
}

/// The section of the stored A or B that has `rows` rows of op(A) (B: columns of op(B)) and k steps of k.
inline Section stored_section(Role role, Op op, std::int64_t row, std::int64_t rows, std::int64_t k0, std::int64_t k) {
  // op(A) is rows x k, op(B) is k x rows.
  return (role == Role::a) == (op == Op::none) ? Section{row, k0, rows, k} : Section{k0, row, k, rows};
}

/// The name that the plan has for an operand of the caller's, and the other way round.
inline Role role_as_run(const Plan& plan, Role role) {
  if (!plan.transposed) return role;
  return role == Role::a ? Role::b : Role::a;
}

/// Reads a section as numbers of the accumulator's type, for which `room` has bytes.
void read_wide(const HostMatrix& matrix, const Section& section, std::byte* room);

/// Converts a C of the accumulator's type, in its place, to the type that C has.
void convert_sums(Type c_type, std::byte* elements, std::int64_t count);

}  // namespace glgemm
