// The sizes of a piece, and what they come to in buffers.
#include "plan/piece.hpp"

#include <algorithm>
#include <limits>

#include "base/rounding.hpp"
#include "kernels/kernels.hpp"
#include "plan/problem.hpp"

namespace glgemm {
namespace {

/// The product of counts, or more than any workspace has; a few of those can be added.
std::int64_t bytes_of(std::initializer_list<std::int64_t> counts) {
  return std::min(saturating_product(counts), std::numeric_limits<std::int64_t>::max() / 8);
}

std::int64_t panel_bytes(const Problem& problem, const Kernel& kernel, Role role, const Piece& piece) {
  const std::int64_t width = kernels::panel_width(kernel, role, sum_type(problem));
  if (width == 0) return 0;
  return bytes_of({round_up(role == Role::a ? piece.m : piece.n, width), padded_k(kernel, piece.k),
                   kernels::packed_items(problem, role, piece.batch), element_bytes(sum_type(problem))});
}

}  // namespace

std::array<Axis, 3> axes(const Problem& problem, Role role) {
  const Strides stride = strides(problem, role);
  return {Axis{role == Role::b ? &Piece::k : &Piece::m, stride.row}, Axis{role == Role::a ? &Piece::k : &Piece::n, stride.column},
          Axis{&Piece::batch, stride.item}};
}

std::int64_t extent(const Problem& problem, Role role, const Piece& piece) {
  std::int64_t last = 0;
  for (const Axis& axis : axes(problem, role)) {
    if (piece.*axis.size == 0) return 0;
    last += (piece.*axis.size - 1) * axis.stride;
  }
  const Operand& x = operand(problem, role);
  return last + (x.addressing == Addressing::indexed ? x.largest_offset : 0) + 1;
}

std::int64_t padded_k(const Kernel& kernel, std::int64_t k) {
  if (panels(kernel) == VectorReads::none) return k;
  // Zeros of B alone would not do: what follows A's rows may be NaN.
  const bool both = kernels::panel_width(kernel, Role::a, Type::f32) > 0;
  return round_up(std::max<std::int64_t>(k, 1), both ? kernels::product_family(kernel).k_step(kernel) : 1);
}

bool needs_reduction(const Problem& problem, const Kernel& kernel, bool items_in_buffer, std::int64_t parts, bool few_buffers,
                     Precision precision) noexcept {
  if (is_library(kernel)) return kernels::has_epilogue(problem);
  // What a program has that finishes C itself: A, B, C and these.
  const int apart = kernels::arrays_read_apart(problem, kernel);
  const bool keeps_sums = problem.c.format.type != sum_type(problem);
  const int buffers = 3 + (problem.residual ? 1 : 0) + (problem.bias != Bias::none ? 1 : 0) + (items_in_buffer ? 1 : 0) +
                      (keeps_sums ? 1 : 0) + apart;
  return parts > 1 || precision != Precision::standard || (few_buffers && buffers > kernels::least_buffers(apart));
}

WorkspaceLayout workspace_layout(const Problem& problem, const Kernel& kernel, const Piece& piece, std::int64_t parts,
                                 bool reduces, Precision precision) {
  const Type acc = sum_type(problem);
  const bool rounds = problem.c.format.type != acc && piece.k < problem.k;  // C cannot keep the sums of a window of k
  const std::int64_t a = panel_bytes(problem, kernel, Role::a, piece), b = panel_bytes(problem, kernel, Role::b, piece);
  const std::int64_t sums =
      reduces || rounds ? bytes_of({piece.m, piece.n, piece.batch, parts, kernels::sum_bytes(acc, precision)}) : 0;
  WorkspaceLayout layout;
  layout.panels_a = {0, a};
  layout.panels_b = {kernels::workspace_aligned(a), b};
  layout.sums = {layout.panels_b.offset_bytes + kernels::workspace_aligned(b), sums};
  layout.size_bytes = layout.sums.offset_bytes + sums;
  return layout;
}

}  // namespace glgemm
