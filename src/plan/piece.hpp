// Pieces of a product: how it is cut into them, and what they come to in buffers.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include <glgemm/inspect.hpp>

#include "plan/choose.hpp"

namespace glgemm {

struct Piece {
  std::int64_t m, n, k, batch;
  friend bool operator==(const Piece&, const Piece&) = default;
};

/// One of the sizes of a piece and how far apart its elements lie in an operand.
struct Axis {
  std::int64_t Piece::*size;
  std::int64_t stride;
};
/// The axes of the operand's rows, columns and items.
std::array<Axis, 3> axes(const Problem& problem, Role role);

/// Elements from the first to the last of a piece of an operand, both included; 0 for one without elements.
std::int64_t extent(const Problem& problem, Role role, const Piece& piece);

/// k of a piece as its panels have it, in whole steps of the kernel; k itself without panels.
std::int64_t padded_k(const Kernel& kernel, std::int64_t k);

/// Whether sums go to the workspace for a reduction: see Plan::reduces().
bool needs_reduction(const Problem& problem, const Kernel& kernel, bool items_in_buffer, std::int64_t parts, bool few_buffers,
                     Precision precision) noexcept;

/// The workspace of a piece whose k is summed in that many parts, or whose sums a reduction gets: A's panels, B's panels, sums,
/// one after the other. The only place where that is worked out.
WorkspaceLayout workspace_layout(const Problem& problem, const Kernel& kernel, const Piece& piece, std::int64_t parts,
                                 bool reduces, Precision precision);

/// Fills in all of a plan but its problem, its kernel and its precision: the sizes of a piece, the parts of its k (at most
/// `parts`), the workspace and the largest dispatch. Returns why the product cannot be cut; nothing if it can.
std::string cut(Plan& plan, const PlannerInputs& inputs, const PlanOptions& options, std::int64_t parts);

/// What a pack step packs of its operand's piece: rows (of B: columns) and steps of k.
struct PackedPart {
  std::int64_t row, rows, k0, k;
};
PackedPart packed_part(const Plan& plan, const Step& step);

}  // namespace glgemm
