// The order in which `glgemm tune` tries candidates. No OpenGL: what a try is, the caller says.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <glgemm/kernel.hpp>

namespace glgemm::tools {

/// A kernel, and PlanOptions::split_k.
struct Candidate {
  Kernel kernel;
  std::int64_t split_k = 0;
  friend auto operator<=>(const Candidate&, const Candidate&) = default;
};

/// "register:tile_m=12,..., split_k=4".
std::string to_string(const Candidate& candidate);

/// Milliseconds of runs in turn. Only the candidate's, if it is far slower than the best one or if there is no best one.
struct Race {
  std::vector<double> candidate{};
  std::vector<double> best{};
  /// What the driver says of the candidate's program as JSON, "{}" if nothing.
  std::string statistics = "{}";
  /// Which of its programs the driver reports to spill, with the numbers; there was no race then. Empty: none.
  std::string spills{};
  /// GFLOP/s of the control kernel before and after, of each time; nothing where a CPU computes. See ClockControl.
  std::vector<double> control{};
  int again = 0;  ///< how often the clock had moved meanwhile, so that it was raced again
};

/// Whether a race's candidate beats the best: its median is less by more than the spread, half the distance of the quartiles of
/// either, and by more than 1 %.
bool wins(const Race& race);

struct SearchOptions {
  bool exhaustive = false;
  std::uint64_t seed = 1;
  /// At most so many are tried, unless `exhaustive`. A space that has no more is tried whole.
  std::int64_t candidates = 200;
  /// The search ends when so many in a row have not won, beyond those that it begins with.
  std::int64_t patience = 20;
  /// Begin with so many of the space's first, beside those that the caller names.
  std::int64_t starts = 8;
};

/// Those of the space that differ from one in a single parameter, by one step among the values that the space has for it, or in
/// the split alone; in the space's order.
std::vector<Candidate> neighbours(const std::vector<Candidate>& space, const Candidate& of);

/// Tries candidates of the space, each once: first the elements of `first` that are in it, then the space's own first, then
/// neighbours of the best, in the space's order, and where none is left others in that order, every fourth at random; until one
/// of the limits is reached. The space is in the order of what is expected of its candidates, the fastest first. Equal seeds give
/// equal orders as long as tries end alike.
///
/// `attempt` says whether its candidate is the best so far; it also gets those that come next if that is not so. Returns how many
/// were tried.
std::int64_t search(const std::vector<Candidate>& space, const std::vector<Candidate>& first, const SearchOptions& options,
                    const std::function<bool(const Candidate&, std::span<const Candidate> coming)>& attempt);

}  // namespace glgemm::tools
