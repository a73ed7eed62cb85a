// The process in which `glgemm tune` runs its candidates, so that a driver that hangs or crashes costs one of them.
//
// The tuner sends a line of JSON over a channel, and the worker answers by a line of JSON: see messages.hpp.
//
// For tests, the worker reads GLGEMM_TUNE_INJECT="hang=KERNEL;crash=KERNEL;wrong=KERNEL;spill=KERNEL;clock=KERNEL", KERNEL as
// to_string() writes it, each as often as wanted: it then hangs when that candidate is measured, or crashes when it is compiled,
// or changes its program so that one element of C is wrong, or says that the driver reports it to spill, or takes the clock for
// half as fast as before that candidate.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <glgemm/engine.hpp>
#include <glgemm/inspect.hpp>
#include <nlohmann/json_fwd.hpp>

#include "product/shapes.hpp"
#include "system/processes.hpp"
#include "tune/search.hpp"

namespace glgemm::tools {

inline constexpr std::string_view given_class = "given";

/// What is tuned.
struct TuneProblem {
  std::string shape_class;  ///< of a built-in problem, else `given_class`
  Shape shape;
  Formats formats{};
  std::int64_t batch = 1;
  bool for_gpus = false;  ///< too large for a CPU
  friend bool operator==(const TuneProblem&, const TuneProblem&) = default;
};
inline Problem problem_of(const TuneProblem& problem) {
  return problem_of(problem.shape, problem.formats, problem.batch);
}
/// "square 1024 f32", "batched 16 f32, batch of 4096".
std::string to_string(const TuneProblem& problem);

/// The worker is gone.
class WorkerLost : public std::runtime_error {
 public:
  WorkerLost(bool hung, const std::string& why) : std::runtime_error(why), hung_(hung) {}
  /// It did not answer in time, and was ended; else it ended by itself.
  bool hung() const noexcept { return hung_; }

 private:
  bool hung_;
};

/// Every legal kernel of kernel_space(), with every split that makes a difference, and the seconds that the cost model expects:
/// the fastest first, and those that take at most `most` times as long.
std::vector<std::pair<double, Candidate>> expected_candidates(const Problem& problem, const Limits& limits, double most);

/// The candidates for a problem.
struct Space {
  std::vector<Candidate> candidates;
  Candidate planned;  ///< what the planner takes with the built-in table
};

struct Verdict {
  bool passed = false;
  std::string summary;
};

class Worker {
 public:
  using Seconds = std::chrono::duration<double>;
  /// Something that it does.
  struct Task {
    std::optional<Candidate> candidate;  ///< that it is about
    Seconds limit;
  };

  /// Starts the process, on the device and with the vendor's library that `glgemm tune` names.  @throws std::runtime_error
  Worker(const std::string& device, const std::string& vendor);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Begun, and not waited for: the worker does this while the tuner does something else.

  void load(const TuneProblem& problem, std::uint64_t seed);
  /// To compile a candidate for the problem that is loaded, so that race() need not.
  void compile(const Candidate& candidate, Seconds limit);

  /// What has begun and is not waited for yet.
  const std::deque<Task>& begun() const noexcept { return begun_; }
  /// Waits for the first of these.
  /// @return its answer
  /// @throws WorkerLost          nothing but the destructor may follow
  /// @throws std::runtime_error  the library throws there
  nlohmann::json await();

  // Waited for, and whatever has begun before. They throw as await().

  DeviceInfo device();
  /// `most`: see expected_candidates().
  Space space(const TuneProblem& problem, double most);
  /// Times a kernel on the problem that was loaded last. `best_ms`: what the best one took before, 0 if there is none.
  Race race(const Candidate& candidate, const Candidate* best, double best_ms, bool thorough, Seconds limit);
  /// Whether a candidate is right: on integers, exactly, with odd sizes near the problem's and a beta, and on the problem itself.
  Verdict check(const Candidate& candidate, Seconds limit);

 private:
  void begin(const nlohmann::json& request, const Task& task);
  nlohmann::json ask(const nlohmann::json& request, const Task& task);

  Child process_;
  std::deque<Task> begun_;
};

/// The worker's side: answers the tuner until the channel is closed. For the hidden verb `tune-worker`.
void serve_tuner(const std::string& device, const std::string& vendor);

}  // namespace glgemm::tools
