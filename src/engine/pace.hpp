// How fast the device runs a program, learnt from the slices that it has run, and how large the next slice may be.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <vector>

#include "gl/gl.hpp"

namespace glgemm {

inline double seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

/// What is known of a program's speed. Work is counted as in Step::work.
struct Rate {
  /// A slice is at most so many times as large as the largest that was measured, and one measurement raises the rate by no more.
  static constexpr double growth = 4;

  double per_second = 0;  ///< 0: unknown
  double proven = 0;      ///< the work of the largest slice that was measured

  bool known() const noexcept { return per_second > 0; }
  /// The work of a slice that takes at most `seconds`; while the rate is unknown, `guess` in a second.
  double work(double seconds, double guess) const;
  /// A slice of so much work took so long, and was expected to take `expected` (or, a rest, less).
  void learn(double work, double seconds, double expected);
};

/// Measures slices: by the host's clock around a dispatch, which on drivers that compute in the call tells all, and by pairs of
/// GL_TIMESTAMP queries, read when they are there, which on all others does; the longer of the two counts.
class SliceClock {
 public:
  void start(const gl::Api& api);
  /// Ends what start() began, and flushes. `rate` learns from it, later perhaps, and must live until collect() has waited or the
  /// clock is gone. Where too many slices are under way already, this one is not measured by the device.
  void stop(const gl::Api& api, Rate& rate, double work, double expected);
  /// Has the rates learn from what the device is done with; or waits for all.
  void collect(const gl::Api& api, bool wait);
  void destroy(const gl::Api& api) noexcept;

 private:
  using Stamps = std::array<GLuint, 2>;
  struct Timed {
    Stamps stamps;
    Rate* rate;
    double work, host_seconds, expected;
  };
  static constexpr std::size_t max_running = 32;

  std::vector<Stamps> idle_;
  std::optional<Stamps> begun_;
  std::deque<Timed> running_;
  std::chrono::steady_clock::time_point begin_{};
};

}  // namespace glgemm
