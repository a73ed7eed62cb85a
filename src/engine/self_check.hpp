// Whether the programs of a plan compute the right results on this driver: drivers do miscompile.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/call.hpp"

namespace glgemm {

/// What a check found: a program is wrong, or the programs in `right` are right. A program that no small problem runs is in neither.
struct SelfCheck {
  std::optional<StruckOff> fault{};
  std::vector<ProgramKey> right{};
  std::string why_not_done{};

  bool is_right() const { return !fault && why_not_done.empty(); }
  static SelfCheck of_right(std::vector<ProgramKey> programs) { return {{}, std::move(programs), {}}; }
  static SelfCheck wrong(const ProgramKey& program, std::string why) { return {StruckOff{program, std::move(why)}, {}, {}}; }
  static SelfCheck not_done(std::string why) { return {{}, {}, std::move(why)}; }
};

/// Runs the plan's programs on a small product, and compares what each stage writes: the panels, the sums of the parts of k, and
/// every byte of C. Where the plan promises bits, other products are of numbers that round. Waits for the GPU. Leaves bindings
/// changed. `limits` are those that the plan was made within: a small product within others may run other programs.
SelfCheck self_check(Engine::State& state, const Plan& plan, const Limits& limits);

/// The same of a program that runs several layers of a network.
SelfCheck self_check(Engine::State& state, const ProgramKey& layers, const Limits& limits);

/// The same of the program of a convolution that copies, or that convolves each channel by itself.
SelfCheck self_check(Engine::State& state, const ConvolutionPlan& plan, const Limits& limits);

}  // namespace glgemm
