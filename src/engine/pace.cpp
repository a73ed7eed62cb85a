// How fast the device runs a program: see pace.hpp.
#include "engine/pace.hpp"

#include <algorithm>

namespace glgemm {
namespace {

/// While a rate is unknown, a slice takes no more than this by the guess.
constexpr double first_seconds = 1e-3;

}  // namespace

double Rate::work(double seconds, double guess) const {
  if (!known()) return guess * std::min(seconds, first_seconds);
  return std::min(per_second * seconds, growth * proven);
}

void Rate::learn(double work, double seconds, double expected) {
  const double measured = work / std::max(seconds, 1e-9);
  // A slice that is too small to keep the whole device busy has a low rate although it ends in time. It says nothing.
  if (known() && measured < per_second && seconds <= expected) return;
  per_second = known() ? std::min(measured, growth * per_second) : measured;
  proven = std::max(proven, work);
}

void SliceClock::start(const gl::Api& api) {
  if (running_.size() < max_running) {
    if (idle_.empty()) {
      Stamps made{};
      gl::create_queries(api, made);
      idle_.push_back(made);
    }
    begun_ = idle_.back();
    idle_.pop_back();
    gl::record_time(api, (*begun_)[0]);
  }
  begin_ = std::chrono::steady_clock::now();
}

void SliceClock::stop(const gl::Api& api, Rate& rate, double work, double expected, const std::shared_ptr<double>& total) {
  if (begun_) gl::record_time(api, (*begun_)[1]);
  gl::flush(api);
  const double host_seconds = seconds(std::chrono::steady_clock::now() - begin_);
  // The host's time alone already shows that the slice was too long.
  if (rate.known() && host_seconds > expected) rate.learn(work, host_seconds, expected);
  if (begun_)
    running_.push_back({*begun_, &rate, work, host_seconds, expected, total});
  else if (total)
    *total += rate.known() ? std::max(host_seconds, work / rate.per_second) : host_seconds;
  begun_.reset();
}

void SliceClock::collect(const gl::Api& api, bool wait) {
  for (; !running_.empty(); running_.pop_front()) {
    const Timed& timed = running_.front();
    const std::optional<std::int64_t> span = gl::recorded_span(api, timed.stamps, wait);
    if (!span) return;
    const double device_seconds = 1e-9 * static_cast<double>(*span);
    const double took = std::max(timed.host_seconds, device_seconds);
    timed.rate->learn(timed.work, took, timed.expected);
    if (timed.total) *timed.total += device_seconds > 0 ? device_seconds : timed.host_seconds;
    idle_.push_back(timed.stamps);
  }
}

void SliceClock::destroy(const gl::Api& api) noexcept {
  if (begun_) gl::delete_queries(api, *begun_);
  for (Stamps& stamps : idle_) gl::delete_queries(api, stamps);
  for (Timed& timed : running_) gl::delete_queries(api, timed.stamps);
  begun_.reset();
  idle_.clear();
  running_.clear();
}

}  // namespace glgemm
