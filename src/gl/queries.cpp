// How far the device is, and when it got there.
#include "gl/queries.hpp"

#include <algorithm>

#include "gl/api.hpp"
#include "gl/state.hpp"

namespace glgemm::gl {

Sync::Sync(const Api& api) : handle_(api.FenceSync(GL_SYNC_GPU_COMMANDS_COMPLETE, 0)) {}

Sync::Status Sync::wait(const Api& api, std::chrono::nanoseconds timeout) const {
  const auto nanoseconds =
      timeout == forever ? GL_TIMEOUT_IGNORED : static_cast<GLuint64>(std::max<std::int64_t>(0, timeout.count()));
  switch (api.ClientWaitSync(static_cast<GLsync>(handle_), GL_SYNC_FLUSH_COMMANDS_BIT, nanoseconds)) {
    case GL_TIMEOUT_EXPIRED:
      return Status::pending;
    case GL_ALREADY_SIGNALED:
    case GL_CONDITION_SATISFIED:
      return Status::passed;
    default:  // of GL_WAIT_FAILED, and where no context is current
      return Status::failed;
  }
}

void Sync::destroy(const Api& api) noexcept {
  api.DeleteSync(static_cast<GLsync>(handle_));
  handle_ = nullptr;
}

void create_queries(const Api& api, std::span<unsigned> queries) {
  api.GenQueries(static_cast<GLsizei>(queries.size()), queries.data());
}

void delete_queries(const Api& api, std::span<unsigned> queries) noexcept {
  api.DeleteQueries(static_cast<GLsizei>(queries.size()), queries.data());
  for (unsigned& query : queries) {
    api.host_times.erase(query);
    query = 0;
  }
}

void record_time(const Api& api, unsigned query) {
  if (api.QueryCounter) return api.QueryCounter(query, GL_TIMESTAMP);
  api.Finish();
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  api.host_times[query] = static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

namespace {

/// 0 if the device's clock has made a jump since it was last asked.
std::optional<std::uint64_t> recorded_time(const Api& api, unsigned query, bool wait) {
  if (!api.QueryCounter) return api.host_times.at(query);
  const StateGuard guard(api, query_buffer_binding);
  guard.unbind_query_buffer();  // the result would go there
  GLuint64 known = GL_TRUE, result = 0;
  if (!wait) api.GetQueryObjectui64v(query, GL_QUERY_RESULT_AVAILABLE, &known);
  if (!known) return {};
  api.GetQueryObjectui64v(query, GL_QUERY_RESULT, &result);
  // OpenGL ES tells, once, that the device's clock has made a jump since it was last asked.
  GLint jumped = GL_FALSE;
  if (api.es) api.GetIntegerv(GL_GPU_DISJOINT_EXT, &jumped);
  return jumped ? 0 : result;
}

}  // namespace

std::optional<std::int64_t> recorded_span(const Api& api, std::span<const unsigned, 2> queries, bool wait) {
  const std::optional<std::uint64_t> end = recorded_time(api, queries[1], wait);
  if (!end) return {};
  const std::uint64_t begin = recorded_time(api, queries[0], true).value();  // which is known before the end
  return begin != 0 && *end > begin ? static_cast<std::int64_t>(*end - begin) : 0;
}

}  // namespace glgemm::gl
