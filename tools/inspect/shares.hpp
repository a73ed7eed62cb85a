// glgemm inspect --accelerators: which accelerator computes which piece.
#pragma once

#include <string>
#include <vector>

#include <glgemm/streaming.hpp>

#include "inspect/plan_picture.hpp"

namespace glgemm::tools {

/// Computes the product of zeros on the accelerators of a list, as headless_accelerators() takes it: twice, since the first time
/// tells how fast each is. Who takes which piece differs from run to run.
/// @throws std::invalid_argument, Unsupported  as headless_accelerators() and Accelerators::multiply; or the problem is a batch
std::vector<Share> shares_of(const Problem& problem, const std::string& list, const StreamOptions& options);

}  // namespace glgemm::tools
