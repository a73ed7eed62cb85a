// Cutting a product into pieces.
#pragma once

#include <string>

#include <glgemm/plan.hpp>

namespace glgemm {

/// Fills in all of a plan but its problem, its kernel and its precision: the sizes of a piece, the parts of its k (at most
/// `parts`), the workspace and the largest dispatch. Returns why the product cannot be cut; nothing if it can.
std::string cut(Plan& plan, const Limits& limits, const PlanOptions& options, std::int64_t parts);

}  // namespace glgemm
