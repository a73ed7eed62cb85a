// Sections of matrices on the host's side, read part by part.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <glgemm/inspect.hpp>
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

/// The section of the stored A or B that has `rows` rows of op(A) (B: columns of op(B)) and k elements along k.
inline Section stored_section(Role role, Op op, std::int64_t row, std::int64_t rows, std::int64_t k0, std::int64_t k) {
  // op(A) is rows x k, op(B) is k x rows.
  return (role == Role::a) == (op == Op::none) ? Section{row, k0, rows, k} : Section{k0, row, k, rows};
}

/// The name that the plan has for an operand of the caller's, and the other way round.
inline Role role_as_run(const Plan& plan, Role role) {
  if (!plan.transposed) return role;
  return role == Role::a ? Role::b : Role::a;
}

/// Where the arrays of a quantised matrix of so many lines lie in one buffer: one after the other, each from a word on.
struct QuantizedLayout {
  QuantizedBytes bytes;
  std::int64_t scales = 0, zeros = 0;  ///< where they begin
  std::int64_t size_bytes = 0;
};
QuantizedLayout quantized_layout(const Quantization& quantization, std::int64_t lines, std::int64_t width);

/// The most elements for for_each_part() of a quantised section whose lines have `width` codes: parts' arrays have at most
/// `max_bytes`, in which there is room for section_codes().
std::int64_t max_codes(const Quantization& quantization, std::int64_t width, std::int64_t max_bytes);

/// Whether an operand's windows lie on the device as the host has them. Elements that are packed go from strips into panels.
/// Codes lie there even so: what a strip's panels need of them may begin and end within blocks.
inline bool has_window(const Plan& plan, Role role) {
  return !plan.packs(role_as_run(plan, role)) || format_of(plan.problem, role_as_run(plan, role)).quantization;
}

/// The bytes of a window of so many rows (B: columns) and elements along k, as it lies on the device.
std::int64_t window_bytes(const Problem& problem, Role role, std::int64_t rows, std::int64_t k);

/// Reads a section as numbers of the accumulator's type, for which `room` has bytes.
void read_wide(const HostMatrix& matrix, const Section& section, std::byte* room);

/// Converts a C of the accumulator's type, in its place, to the type that C has.
void convert_sums(Type c_type, std::byte* elements, std::int64_t count);

}  // namespace glgemm
