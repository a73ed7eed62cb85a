// What the driver's compiler says while programs are made, by GL_KHR_debug.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gl/context.hpp"

namespace glgemm::gl {

/// Collects what the compiler says while this lives, from whichever thread the driver says it.
///
/// Then the application's callback, its user pointer and both switches of debug output are put back. Which messages are enabled
/// cannot be asked for, but a debug group saves it: where the context's stack of groups is full, nothing is collected, and on
/// Wine neither. No callback hears of the group. Messages that are not of the compiler go to the application's callback at the
/// end, on this thread; where it has none they are lost.
class CompilerMessages {
 public:
  explicit CompilerMessages(const Api& api);
  ~CompilerMessages();
  CompilerMessages(const CompilerMessages&) = delete;
  CompilerMessages& operator=(const CompilerMessages&) = delete;

  /// What was said so far. Waits until the device has done what was enqueued, since compilers may work in other threads until the
  /// program first runs; not for ever.
  std::vector<std::string> take() const;

 private:
  const Api& api_;
  std::optional<DebugGroup> group_;
  std::uintptr_t number_ = 0;  ///< 0: nothing is collected
  void *callback_ = nullptr, *user_ = nullptr;
  bool output_ = false, synchronous_ = false;
};

}  // namespace glgemm::gl
