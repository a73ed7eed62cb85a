// A streamed product that engines share: pieces of C from one queue. Several accelerators, or a single engine.
#pragma once

#include <condition_variable>
#include <exception>
#include <mutex>
#include <span>

#include "stream/piece_queue.hpp"
#include "stream/streaming.hpp"

namespace glgemm {

/// A product, and the engines that compute it.
class SharedProduct {
 public:
  /// Multiply-adds in a second. Not measured: as the cost model expects.
  struct Rate {
    double value = 0;
    bool measured = false;
    double work = 0, time = 0;  ///< of the last pieces; older ones count less
  };
  /// What an engine does in a product. It belongs to the engine's thread, but for the rate.
  struct Worker {
    Engine* engine = nullptr;
    StreamReport* report = nullptr;
    /// Called when the context was lost: gives an engine in a new one. Without it the worker ends.
    std::function<Engine&(const DeviceLost&)> new_engine{};
    Rate rate{};
    StreamPlan plan{};              ///< the plan by which it streams now
    std::int64_t device_limit = 0;  ///< with which that was planned, as StreamOptions has it
    std::int64_t elements = 0;
    std::chrono::nanoseconds waiting_time{};  ///< while others had the last pieces
    std::exception_ptr failure{};             ///< why it gave up
    int losses = 0;                           ///< of contexts, since it computed a piece
    bool works = false;
  };
  /// Calls a function for each worker, on the thread on which its context is current, and waits for all.
  using OnEach = std::function<void(const std::function<void(Worker&)>&)>;

  /// `workers` outlive it. No piece is made smaller, to share the work evenly, than what a worker computes in `min_piece`.
  /// @throws std::invalid_argument  shapes or types disagree, or a matrix lacks a function that the product needs
  SharedProduct(const HostGemm& product, const StreamOptions& options, std::chrono::nanoseconds min_piece,
                std::span<Worker> workers);

  /// Computes the product.
  /// @throws  what a function of the caller's threw; or, if no worker has a plan, why the first has none
  void run(const OnEach& on_each);

  /// Whether all of C is computed. If it is not when run() has returned, every worker has a failure.
  bool complete() const { return !queue_ || queue_->left() == 0; }

 private:
  /// Decides how a worker streams.
  void plan(Worker& one) noexcept;
  /// Begins, when all workers have a plan or a failure.
  void begin();
  /// Computes pieces until none is left.
  void work(Worker& one) noexcept;

  /// The loop of work().
  /// @throws  the memory for the queue could not be had
  void compute_pieces(Worker& one);
  void compute(const Section& piece, Streamer& streamer);
  /// Does what can be done after a piece has failed, so that the worker can go on.
  /// @throws  why it cannot
  void recover(Worker& one, const std::exception_ptr& error);
  void renew_engine(Worker& one, const DeviceLost& lost);
  static void report_plan(const Worker& one);
  /// Plans anew with so much memory on the device.  @throws MemoryTooSmall  it is too small for any piece
  void plan_within(Worker& one, std::int64_t device_limit);
  /// Makes the plan's pieces, and with them the engine's buffers, no larger than what the worker can get.
  void fit(Worker& one) noexcept;

  std::optional<Section> take(Worker& one, std::optional<std::int64_t> panel);
  /// How long the worker's next piece may be.
  std::int64_t length(const Worker& one) const;
  void finish(Worker& one, const Section& piece, double took);
  void give_back(const Section& piece);
  /// Counts elements as done, and returns how many are.
  double add_done(double more);
  /// Calls the caller's `progress`.
  void tell();

  /// Calls a function of the caller's. What it throws ends the product, whatever its type: an OutOfMemory of the caller's is none
  /// of the driver's.
  template <class F>
  void call(const F& function);
  /// Ends the product with that exception, for all workers.
  void stop(const std::exception_ptr& error);
  /// Ends it, and the piece that this worker computes.
  [[noreturn]] void end(const std::exception_ptr& error);
  /// The product with its functions called by call().
  HostGemm with_calls(HostGemm product);

  std::int64_t across(const StreamPlan& plan) const { return by_columns_ ? plan.piece_n : plan.piece_m; }
  std::int64_t along(const StreamPlan& plan) const { return by_columns_ ? plan.piece_m : plan.piece_n; }
  /// The lines of a workgroup's block along a panel.
  std::int64_t block_lines(const StreamPlan& plan) const;
  double elements() const { return static_cast<double>(problem_.m) * static_cast<double>(problem_.n); }

  const Problem problem_;
  const HostGemm product_;
  StreamOptions options_;
  const std::int64_t memory_limit_;  ///< of all workers together
  const double min_seconds_;
  const double products_;  ///< for each element of C
  const std::span<Worker> workers_;
  std::int64_t on_cpu_ = 0;  ///< workers
  bool by_columns_ = true;

  std::mutex mutex_;  ///< of what follows, and the workers' rates
  std::condition_variable changed_;
  std::optional<PieceQueue> queue_;
  int working_ = 0;
  std::int64_t max_length_ = 0;  ///< of a piece
  int in_flight_ = 0;            ///< pieces
  bool ended_ = false;
  std::exception_ptr error_;  ///< with which it ended
  double done_ = 0;           ///< elements

  std::mutex callbacks_;  ///< of the options' functions
  double told_ = 0;       ///< the share that `progress` was called with
};

}  // namespace glgemm
