// How fast the device runs a program: see pace.hpp.
#include "engine/pace.hpp"

#include <algorithm>

namespace glgemm {
namespace {

/// As long as a rate is unknown, a slice is worth no more than this by the guess.
constexpr double first_seconds = 1e-3;

}  // namespace

double Rate::work(double seconds, double guess) const {
  if (!known()) return guess * std::min(seconds, first_seconds);
  return std::min(per_second * seconds, growth * proven);
}

void Rate::learn(double work, double seconds, double expected) {
  const double measured = work / std::max(seconds, 1e-9);
  // A rest that kept a part of the device busy only is slower for its size, and yet done in time: it says nothing.
  if (known() && measured < per_second && seconds <= expected) return;
  per_second = known() ? std::min(measured, growth * per_second) : measured;
  proven = std::max(proven, work);
}

void SliceClock::start(const gl::Api& api) {
  if (running_.size() < max_running) {
    if (idle_.empty()) {
      Stamps made{};
      api.GenQueries(2, made.data());
      idle_.push_back(made);
    }
    begun_ = idle_.back();
    idle_.pop_back();
    api.QueryCounter((*begun_)[0], GL_TIMESTAMP);
  }
  begin_ = std::chrono::steady_clock::now();
}

void SliceClock::stop(const gl::Api& api, Rate& rate, double work, double expected) {
  if (begun_) api.QueryCounter((*begun_)[1], GL_TIMESTAMP);
  api.Flush();
  const double host_seconds = seconds(std::chrono::steady_clock::now() - begin_);
  // What took the host too long is known now.
  if (rate.known() && host_seconds > expected) rate.learn(work, host_seconds, expected);
  if (begun_) running_.push_back({*begun_, &rate, work, host_seconds, expected});
  begun_.reset();
}

void SliceClock::collect(const gl::Api& api, bool wait) {
  for (; !running_.empty(); running_.pop_front()) {
    const Timed& timed = running_.front();
    const std::optional<std::uint64_t> end = gl::query_result(api, timed.stamps[1], wait);
    if (!end) return;
    const std::uint64_t begin = gl::query_result(api, timed.stamps[0], true).value();
    const double device_seconds = *end > begin ? 1e-9 * static_cast<double>(*end - begin) : 0;
    timed.rate->learn(timed.work, std::max(timed.host_seconds, device_seconds), timed.expected);
    idle_.push_back(timed.stamps);
  }
}

void SliceClock::destroy(const gl::Api& api) noexcept {
  if (begun_) api.DeleteQueries(2, begun_->data());
  for (const Stamps& stamps : idle_) api.DeleteQueries(2, stamps.data());
  for (const Timed& timed : running_) api.DeleteQueries(2, timed.stamps.data());
  begun_.reset();
  idle_.clear();
  running_.clear();
}

}  // namespace glgemm
