// How far the device is, and when it got there.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>

#include "gl/context.hpp"

namespace glgemm::gl {

/// A point of the command stream. The device passes it when all that was enqueued before it is done.
class Sync {
 public:
  enum class Status { passed, pending, failed };
  static constexpr auto forever = std::chrono::nanoseconds::max();

  /// No point.
  Sync() = default;
  /// The end of what is enqueued so far.
  explicit Sync(const Api& api);
  explicit operator bool() const noexcept { return handle_ != nullptr; }

  /// Waits until the device has passed the point, or the time is over. Has the device begin what was enqueued.
  Status wait(const Api& api, std::chrono::nanoseconds timeout = forever) const;
  /// Leaves no point.
  void destroy(const Api& api) noexcept;

 private:
  void* handle_ = nullptr;
};

/// Makes query objects for record_time().
void create_queries(const Api& api, std::span<unsigned> queries);
void delete_queries(const Api& api, std::span<unsigned> queries) noexcept;
/// Has the device record the time when it gets here. Where OpenGL ES has no timer (EXT_disjoint_timer_query), waits until the
/// device is here and records the host's time.
void record_time(const Api& api, unsigned query);
/// The nanoseconds between two recorded times. Waits for them, or else gives none where the device is not there yet. 0 if the
/// device's clock made a jump meanwhile.
std::optional<std::int64_t> recorded_span(const Api& api, std::span<const unsigned, 2> queries, bool wait);

}  // namespace glgemm::gl
