// The measuring part of `glgemm bench`: what is multiplied, how long kernels and peers take for it, and whether they are right.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <glgemm/engine.hpp>
#include <glgemm/streaming.hpp>
#include <glgemm/verify.hpp>

#include "bench/bench.hpp"
#include "bench/samples.hpp"
#include "peers/peers.hpp"
#include "product/product.hpp"

namespace glgemm::tools {

struct Baseline {
  double ms = 0;  ///< for the whole product
  std::int64_t rows_measured = 0;
};

/// A run as a Job with a budget for each call of advance.
struct BudgetRun {
  std::int64_t calls = 0;        ///< calls of advance that enqueued something
  std::int64_t calls_known = 0;  ///< calls after the device's rate was known
  std::int64_t late = 0;         ///< calls among calls_known that took over twice the budget
  double max_ms = 0;             ///< the longest call among calls_known
  double total_ms = 0;           ///< from the first call until C is there
};

/// What was found out about a kernel or a peer on one shape. Times are in milliseconds, one for each run that counts.
struct Measurement {
  std::string requested;            ///< "auto", "tiled:tile=8", or the peer's name
  std::string ran;                  ///< "tiled 8x8", or the peer's name
  std::optional<Kernel> kernel;     ///< none: a peer
  Report report;                    ///< a kernel's last run
  std::vector<double> gpu_times;    ///< the GPU's; empty for a peer
  std::vector<double> call_times;   ///< the host's, from the call until C is there
  std::vector<double> total_times;  ///< the host's, with the copies to and from the device; empty for a peer
  std::string clock_note;           ///< why the GPU's times are not used; empty if they are
  std::optional<BudgetRun> budget;
  ProductCheck check;
  double check_ms = 0;  ///< what the check took

  /// The times that count: the GPU's where they are used, else the host's.
  const std::vector<double>& times() const { return gpu_times.empty() || !clock_note.empty() ? call_times : gpu_times; }
};

/// Who takes part on a shape.
struct Entrants {
  std::span<const RequestedKernel> kernels;
  std::span<PeerClient> peers;
  bool full_check = true;
  std::function<double()> control{};                    ///< of the clock, see at_steady_clock(); none where a CPU computes
  std::function<void(const std::string& name)> begins;  ///< called before an entrant is measured, or finished
  std::function<void()> checked;                        ///< called when an entrant's C has been checked
  std::function<bool()> late{};                         ///< whether entrants that have not begun are left out, but for the first
};

/// A random product.
class Trial {
 public:
  /// @throws std::invalid_argument  its matrices do not fit into memory
  Trial(const Shape& shape, const BenchOptions& options);
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  /// The serial loop's time: of the whole product, or, where that would exceed `seconds`, extrapolated from a band of its rows.
  Baseline serial(double seconds) const;
  /// Each entrant warms up and its result is checked. Then all run in turn, once in each round, until each has run as often as
  /// the options say, so that what disturbs the machine for a while disturbs all of them. The results are in the entrants' order,
  /// kernels first; the last ones are missing where it was late.
  /// @param rates  gets the control's
  std::vector<Measurement> measure(Engine& engine, const Entrants& entrants, const BenchOptions& options,
                                   std::vector<double>& rates);
  /// The product on the host's matrices, with C as it is before; for multiply(). Valid until the next call.
  HostGemm host_product();
  /// Checks the C of the last host_product() or run().
  Check check_host(bool full) const;
  /// Enqueues the product on matrices that are on the device; with a report waits for it.
  std::function<void(Report* report)> on_device(Engine& engine, const PlanOptions& options) const;
  /// The product from host to host; its C is what check_host() then checks.
  Report run(Engine& engine, const PlanOptions& options);
  /// The seconds that the transfers of a streamed product take alone. They move the bytes that the report counts, up and down, in
  /// sections of the plan's size, through DeviceMatrix.
  double transfer_seconds(Engine& engine, const StreamReport& streamed) const;

 private:
  struct Entrant;
  Entrant kernel_entrant(Engine& engine, const RequestedKernel& requested, const DeviceFactor& a, const DeviceFactor& b,
                         const DeviceMatrix& c) const;
  Entrant peer_entrant(PeerClient& peer) const;
  void warm_up(Entrant& x, const Entrants& who, const BenchOptions& options);
  static void run_in_turn(std::vector<Entrant>& entrants, const BenchOptions& options);
  void finish(Entrant& x, const Entrants& who, const BenchOptions& options, double budget_ms) const;
  ProductCheck first_check(const Entrant& x, const Entrants& who) const;
  ProductCheck check_of(const Entrant& x, const AnyMatrix& c, const Entrants& who) const;
  AnyMatrix poisoned_c() const;

  HostProduct product_;
  PeerProblem peer_problem_;
  AnyMatrix c_;
};

/// What the planner gets for a requested kernel.
PlanOptions plan_options(const RequestedKernel& requested);
/// What a peer gets.
PeerProblem peer_problem(const Shape& shape, const BenchOptions& options);

}  // namespace glgemm::tools
