// What a plan of a stream is made of: the windows of its pieces; and why there is none.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <tuple>

#include <glgemm/streaming.hpp>

#include "plan/choose.hpp"

namespace glgemm {

/// Bytes that buffers may have together: those on the device, and those there and on the host.
struct StreamMemory {
  std::int64_t device = 0, both = 0;
};

/// No piece fits the limits. Those that are too small are not 0, and neither is the least of each.
class MemoryTooSmall : public std::invalid_argument {
 public:
  MemoryTooSmall(const StreamMemory& too_small, const StreamMemory& needed);

  StreamMemory limits, least;
};

/// How a window is planned: m rows and n columns of C, and k elements along k. `last`: it is the last one of its piece.
std::tuple<Problem, PlanOptions, PlanConstraints> window_problem(const StreamPlan& plan, const PlanOptions& options,
                                                                 std::int64_t m, std::int64_t n, std::int64_t k, bool last);

/// make_stream_plan() by what an engine gives.
StreamPlan make_stream_plan(const Problem& problem, PlannerInputs inputs, std::int64_t device_memory,
                            const StreamOptions& options);

}  // namespace glgemm
