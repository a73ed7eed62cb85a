// Wrappers made from the lists of the functions that glgemm calls.
#include "support/counting_loader.hpp"

#include <fmt/core.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "support/functions.hpp"

namespace glgemm::test {
namespace {

#define FUNCTIONS(X) GLGEMM_NEEDED_FUNCTIONS(X) GLGEMM_OPTIONAL_FUNCTIONS(X)
#define INDEX(name, ...) at_##name,
enum Index : std::size_t { FUNCTIONS(INDEX) known_functions };
#undef INDEX

constexpr std::size_t max_unknown = 2000;
std::array<std::atomic<std::int64_t>, known_functions + max_unknown> counts;
std::atomic<std::int64_t> max_bytes = std::numeric_limits<std::int64_t>::max();
std::atomic<GLenum> status = GL_NO_ERROR;
std::atomic<bool> busy = false;
std::atomic<bool> out_of_memory = false;  ///< an error that a refused buffer has left
std::atomic<std::int64_t> calls_left = never;
std::atomic<bool> told_of_loss = false;
std::atomic<int> open_groups = 0;  ///< debug groups that were pushed and not popped
std::atomic<GLenum> wait_of_lost = 0;
std::mutex unknown_mutex;
std::vector<std::string> unknown_names;

/// What a function gives in a context that is lost.
template <Index I, class R, class... Arguments>
R as_lost([[maybe_unused]] Arguments... arguments) {
  if constexpr (I == at_GetGraphicsResetStatus || I == at_GetGraphicsResetStatusARB) {
    return told_of_loss.exchange(true) ? GLenum{GL_NO_ERROR} : GLenum{GL_GUILTY_CONTEXT_RESET};
  } else if constexpr (I == at_GetError) {
    return GL_CONTEXT_LOST;
  } else if constexpr (I == at_ClientWaitSync) {
    return wait_of_lost.load();
  } else {
    if constexpr (I == at_GetQueryObjectui64v) {
      const auto is_available = [](GLuint, GLenum what, GLuint64* value) {
        if (what == GL_QUERY_RESULT_AVAILABLE) *value = GL_TRUE;
      };
      is_available(arguments...);
    }
    return R();
  }
}

template <Index I, class F>
struct Counted;

template <Index I, class R, class... Arguments>
struct Counted<I, R (*)(Arguments...)> {
  static inline std::atomic<R (*)(Arguments...)> real = nullptr;
  static R call(Arguments... arguments) {
    ++counts[I];
    if (calls_left != never && --calls_left < 0) return as_lost<I, R>(arguments...);
    if constexpr (I == at_PushDebugGroup) ++open_groups;
    if constexpr (I == at_PopDebugGroup) --open_groups;
    if constexpr (I == at_BufferData || I == at_BufferStorage) {
      const auto give = [](auto first, GLsizeiptr size, auto... rest) {
        if (size > max_bytes)
          out_of_memory = true;
        else
          real.load()(first, size, rest...);
      };
      return give(arguments...);
    } else if constexpr (I == at_GetError) {
      return out_of_memory.exchange(false) ? GLenum{GL_OUT_OF_MEMORY} : real.load()(arguments...);
    } else if constexpr (I == at_GetGraphicsResetStatus || I == at_GetGraphicsResetStatusARB) {
      return status != GL_NO_ERROR ? status.load() : real.load()(arguments...);
    } else if constexpr (I == at_ClientWaitSync) {
      const auto wait = [](GLsync sync, GLbitfield flags, GLuint64 timeout) {
        return busy && timeout == 0 ? GLenum{GL_TIMEOUT_EXPIRED} : real.load()(sync, flags, timeout);
      };
      return wait(arguments...);
    } else if constexpr (I == at_GetQueryObjectui64v) {
      const auto get = [](GLuint query, GLenum what, GLuint64* value) {
        real.load()(query, what, value);
        if (busy && what == GL_QUERY_RESULT_AVAILABLE) *value = GL_FALSE;
      };
      return get(arguments...);
    } else {
      return real.load()(arguments...);
    }
  }
};

template <std::size_t I>
void unknown() {
  ++counts[known_functions + I];
}

template <std::size_t... I>
constexpr std::array<void (*)(), sizeof...(I)> unknown_functions(std::index_sequence<I...>) {
  return {unknown<I>...};
}

}  // namespace

void (*counting_loader(const char* name))() {
  const auto found = get_proc_address(name);
  if (!found) return nullptr;
  const std::string_view base = without_extension(name);
#define WRAP(function, ...)                                               \
  if (base == "gl" #function) {                                           \
    using Wrapper = Counted<at_##function, decltype(gl::Api::function)>;  \
    Wrapper::real = reinterpret_cast<decltype(gl::Api::function)>(found); \
    return reinterpret_cast<void (*)()>(&Wrapper::call);                  \
  }
  FUNCTIONS(WRAP)
#undef WRAP
  static constexpr auto functions = unknown_functions(std::make_index_sequence<max_unknown>());
  const std::lock_guard lock(unknown_mutex);
  for (std::size_t i = 0; i < unknown_names.size(); ++i)
    if (unknown_names[i] == name) return functions[i];
  if (unknown_names.size() == max_unknown) return nullptr;
  unknown_names.emplace_back(name);
  return functions[unknown_names.size() - 1];
}

Engine counting_engine(const EngineOptions& options) {
  return engine_here(options, counting_loader);
}

CallCounts calls() {
  CallCounts result;
  const auto add = [&](std::size_t index, const std::string& name) {
    if (counts[index] != 0) result[name] = counts[index];
  };
#define ADD(function, ...) add(at_##function, "gl" #function);
  FUNCTIONS(ADD)
#undef ADD
  const std::lock_guard lock(unknown_mutex);
  for (std::size_t i = 0; i < unknown_names.size(); ++i) add(known_functions + i, unknown_names[i] + " (unknown)");
  return result;
}

void reset_calls() {
  for (auto& count : counts) count = 0;
}

std::int64_t all_calls() {
  std::int64_t all = 0;
  for (const auto& count : counts) all += count;
  return all;
}

void limit_buffers(std::int64_t bytes) {
  max_bytes = bytes;
}

std::string text(const CallCounts& calls) {
  std::string result;
  for (const auto& [name, count] : calls) result += fmt::format("{} {}\n", name, count);
  return result;
}

void pretend_busy(bool is) {
  busy = is;
}

void pretend_reset(unsigned as) {
  status = as;
}

void lose_context_after(std::int64_t calls, unsigned wait) {
  // Mesa forgets to free the groups of a context that ends.
  for (; calls == never && open_groups > 0; --open_groups) gl_functions().PopDebugGroup();
  told_of_loss = false;
  wait_of_lost = wait;
  calls_left = calls;
}

bool context_is_lost() {
  return calls_left < 0;
}

}  // namespace glgemm::test
