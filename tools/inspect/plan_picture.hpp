// glgemm inspect --image: a plan as a picture.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "inspect/inspect.hpp"

namespace glgemm::tools {

/// The elements of C that one invocation of a workgroup computes, as rows and columns of the workgroup's block.
struct InvocationPart {
  std::vector<std::int64_t> rows, columns;
};
/// `across` and `down` are the place of the invocation in the block, from the left and from the top.
/// @throws std::out_of_range  the workgroup has no invocation there
InvocationPart invocation_part(const Plan& plan, std::int64_t across, std::int64_t down);
/// How many invocations a block has in a row and in a column. Invocations that share elements count once.
struct Invocations {
  std::int64_t across = 1, down = 1;
};
Invocations invocations_of_block(const Plan& plan);

/// An SVG file: C cut into pieces, slices, workgroups' blocks and an invocation's elements; k in windows and parts; bytes.
std::string picture_of(const Planned& planned, const Device& device);

}  // namespace glgemm::tools
