// What a step of a plan covers.
#pragma once

#include <glgemm/plan.hpp>

namespace glgemm {

/// What a pack step packs of its operand's piece: rows (of B: columns) and steps of k.
struct PackedPart {
  std::int64_t row, rows, k0, k;
};
PackedPart packed_part(const Plan& plan, const Step& step);

}  // namespace glgemm
