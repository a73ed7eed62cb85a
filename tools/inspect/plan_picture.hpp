// glgemm inspect --image: a plan as a picture.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/roofline.hpp"
#include "inspect/inspect.hpp"

namespace glgemm::tools {

/// The pieces of C that one accelerator has computed.
struct Share {
  std::string name;
  std::vector<Section> pieces{};
  std::int64_t moved_bytes = 0;
};

/// Computes the product of zeros on the accelerators of a list, as headless_accelerators() takes it: twice, since the first time
/// tells how fast each is. Who takes which piece differs from run to run.
/// @throws std::invalid_argument, Unsupported  as headless_accelerators() and Accelerators::multiply; or the problem is a batch
std::vector<Share> shares_of(const Problem& problem, const std::string& list, const StreamOptions& options);

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

/// An SVG file: C cut into pieces, slices, workgroups' blocks and an invocation's elements; k in windows and parts; bytes; the
/// roofline. With two plans, both side by side. `shares`: who computed which piece; may be empty. `roof`: without it the axes
/// have none.
std::string picture_of(std::span<const Planned> plans, const Device& device, const std::optional<Roofline>& roof,
                       const std::vector<Share>& shares);

}  // namespace glgemm::tools
