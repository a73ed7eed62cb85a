// What glgemm-view does: a product that runs in each frame, or a large one that runs across many; its times, and the controls.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <glgemm/glgemm.hpp>
#include <glgemm/job.hpp>

#include "view/canvas.hpp"
#include "view/product.hpp"

namespace glgemm::tools {

inline constexpr std::int64_t largest_n = 4096, largest_large_n = 16384;
inline constexpr std::chrono::nanoseconds min_budget = std::chrono::microseconds(125), max_budget = std::chrono::seconds(1);

using Milliseconds = std::chrono::duration<double, std::milli>;

inline double milliseconds(std::chrono::duration<double> time) {
  return 1e3 * time.count();
}

/// The last values of something that is measured in each frame.
class History {
 public:
  void add(double value) { values_[count_++ % values_.size()] = static_cast<float>(value); }
  void clear() { count_ = 0; }
  /// The oldest first.
  std::vector<float> in_order() const {
    std::vector<float> result;
    for (std::size_t i = count_ < values_.size() ? 0 : count_ - values_.size(); i < count_; ++i)
      result.push_back(values_[i % values_.size()]);
    return result;
  }

 private:
  std::array<float, 120> values_{};
  std::size_t count_ = 0;
};

/// The kernel's times, each read some frames after it was taken, so that nothing waits for the GPU.
class KernelTimes {
 public:
  explicit KernelTimes(Engine& engine) {
    for (auto& watch : watches_) watch = std::make_unique<Stopwatch>(engine);
  }
  void start() {
    if (started_ - read_ == watches_.size()) read();
    watch(started_).start();
  }
  void stop() { watch(started_++).stop(); }
  /// Reads those that were taken and not read yet; waits.
  void finish() {
    while (read_ < started_) read();
  }
  /// Forgets all.
  void clear() {
    started_ = read_ = 0;
    history_.clear();
    reset();
  }
  /// In milliseconds.
  const History& history() const { return history_; }
  /// Begins a new mean.
  void reset() {
    sum_ = {};
    count_ = 0;
  }
  std::optional<std::chrono::duration<double>> mean() const {
    if (count_ == 0 || sum_.count() <= 0) return {};
    return sum_ / count_;
  }

 private:
  Stopwatch& watch(std::size_t i) { return *watches_[i % watches_.size()]; }
  void read() {
    const std::chrono::duration<double> time = watch(read_++).elapsed();
    history_.add(milliseconds(time));
    sum_ += time;
    ++count_;
  }

  std::array<std::unique_ptr<Stopwatch>, 4> watches_;
  std::size_t started_ = 0, read_ = 0;
  std::chrono::duration<double> sum_{};
  int count_ = 0;
  History history_;
};

/// In the context that is current.
class Viewer {
 public:
  /// `large_n`: the size that the key for large products changes to.
  Viewer(GetProcAddress get_proc_address, const Settings& settings, std::int64_t large_n, std::chrono::nanoseconds budget);
  ~Viewer();
  Viewer(const Viewer&) = delete;
  Viewer& operator=(const Viewer&) = delete;

  /// A new A, and C = A B. Enqueues; of a large product, what the budget allows, and a new A when C is complete.
  void compute(std::uint32_t phase);

  /// From now on a large product goes on by a slice for each call of this; what is not computed yet is not shown. A product that
  /// is none becomes one of its size.
  void step();
  bool stepping() const { return stepping_; }
  void end_stepping();

  /// Measures the error of a C that is complete and belongs to the present A. Waits.
  void measure_errors();
  /// As they were measured last.
  const std::optional<Errors>& errors() const { return errors_; }

  /// Draws C into the current framebuffer, and what comes on top. Enqueues.
  void draw(int width, int height) { canvas_->draw(*product_, heading(), width, height); }
  /// The picture of a window of this size, which none need be. Waits.
  Picture screenshot(int width, int height) {
    return take_picture(width, height, [&] { draw(width, height); });
  }
  void set_on_top(std::function<void()> draw, int reserved) { canvas_->set_on_top(std::move(draw), reserved); }

  // The controls.

  /// Another product. A kernel that cannot run it gives way to the planner's choice; what cannot be shown at all is said, and the
  /// present one stays.
  void change(Settings settings);
  /// Doubles or halves the size; of a large product, the budget.
  void resize(bool bigger);
  void change_largeness();
  void set_budget(std::chrono::nanoseconds budget);
  void next_type();
  /// The planner's choice comes after the last kernel of the table.
  void next_kernel();
  /// Those of the table that can run the product.
  std::vector<Kernel> possible_kernels() const;

  const Settings& settings() const { return product_->settings; }
  std::chrono::nanoseconds budget() const { return budget_; }
  double progress() const { return progress_; }
  std::string progress_text() const;
  /// The device and the plan, a line each.
  std::vector<std::string> description() const;
  History& frame_times() { return frame_times_; }
  KernelTimes& times() { return *times_; }
  /// How many large products were computed to their end.
  std::int64_t completed() const { return completed_; }
  /// What is shown, and how fast; the mean of `frame` is the caller's.
  std::string figures(std::chrono::duration<double> frame) const;

 private:
  std::string heading() const;
  void advance_large(std::uint32_t phase, bool one_slice);

  Engine engine_;
  std::int64_t large_n_;  ///< the size that the key for large products changes to, or back to
  std::chrono::nanoseconds budget_;
  double progress_ = 0;
  std::int64_t completed_ = 0;
  std::int64_t slices_ = 0;  ///< of the large product that runs, or ran last
  bool stepping_ = false;
  std::int64_t steps_ = 0;  ///< slices that were asked for and did not run yet
  bool complete_ = false;   ///< C is the product of the present A
  std::optional<Errors> errors_;
  History frame_times_;  ///< in milliseconds
  std::unique_ptr<KernelTimes> times_;
  std::unique_ptr<Product> product_;
  std::optional<Job> job_;
  std::unique_ptr<Canvas> canvas_;
};

}  // namespace glgemm::tools
