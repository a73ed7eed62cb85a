// How fast the device runs a program, learnt from the slices that it has run, and how large the next slice may be.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "gl/gl.hpp"

namespace glgemm {

inline double seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

/// What is known of a program's speed. Work is counted as in Step::work.
struct Rate {
  /// A slice is at most this many times as large as the largest that was measured. One measurement raises the rate by this at
  /// most.
  static constexpr double growth = 4;

  double per_second = 0;  ///< 0: unknown
  double proven = 0;      ///< the work of the largest slice that was measured

  bool known() const noexcept { return per_second > 0; }
  /// The work of a slice that takes at most `seconds`; while the rate is unknown, `guess` in a second.
  double work(double seconds, double guess) const;
  /// A slice of that much work took `seconds`; at most `expected` was planned for it.
  void learn(double work, double seconds, double expected);
};

/// Measures slices twice: by the host's clock around the calls, which counts on drivers that compute in the call, and by times
/// that the device records, which count on all others. The longer of the two is the slice's.
class SliceClock {
 public:
  void start(const gl::Api& api);
  /// Ends what start() began, and flushes. `rate` learns from it in this call or in a later collect(), and must live until
  /// collect() has waited or the clock is gone. The device does not time a slice while too many are under way.
  /// What the device says that the slice took is then added to `*total` too, where there is one; where it says nothing, what the
  /// rate says, or the host.
  void stop(const gl::Api& api, Rate& rate, double work, double expected, const std::shared_ptr<double>& total = {});
  /// Has the rates learn from the slices that the device has done; with `wait`, waits for all of them.
  void collect(const gl::Api& api, bool wait);
  void destroy(const gl::Api& api) noexcept;

 private:
  using Stamps = std::array<unsigned, 2>;
  struct Timed {
    Stamps stamps;
    Rate* rate;
    double work, host_seconds, expected;
    std::shared_ptr<double> total;
  };
  static constexpr std::size_t max_running = 32;

  std::vector<Stamps> idle_;
  std::optional<Stamps> begun_;
  std::deque<Timed> running_;
  std::chrono::steady_clock::time_point begin_{};
};

}  // namespace glgemm
