// Checks that the programs of a plan compute the right results on this driver, each stage by itself.
#pragma once

#include <optional>
#include <string>

#include "engine/state.hpp"

namespace glgemm {

/// A stage whose program is wrong, and what is wrong, as a sentence.
struct Fault {
  Stage stage;
  std::string why;
};

/// Runs the plan's programs on a small product, and compares what each stage writes: the panels, the sums of the parts of k, and
/// every byte of C. Waits for the GPU. Leaves bindings changed.
/// @returns  the first stage that is wrong; none if all are right
std::optional<Fault> self_check(Engine::State& state, const Plan& plan);

}  // namespace glgemm
