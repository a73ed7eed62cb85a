// A loader whose OpenGL functions count their calls.
#pragma once

#include <cstdint>
#include <glgemm/engine.hpp>
#include <limits>
#include <map>
#include <string>

#include "support/context.hpp"

namespace glgemm::test {

/// For Engine: HeadlessContext's functions behind wrappers. All engines of the program that use it count together, on any thread.
void (*counting_loader(const char* name))();

/// An engine of a test's own in the context that is current, with counting_loader. It is released at its end.
Engine counting_engine(const EngineOptions& options = engine_options());

/// How often each function was called.
using CallCounts = std::map<std::string, std::int64_t>;
/// Those since reset_calls(), without functions that were not called. A function that the wrappers' list does not have does
/// nothing but count, with " (unknown)" behind its name.
CallCounts calls();
/// For messages: a line each.
std::string text(const CallCounts& calls);
void reset_calls();
/// The calls of all functions together.
std::int64_t all_calls();

/// Buffers of more bytes are refused from now on, with GL_OUT_OF_MEMORY, which only engines that use the loader hear of. The
/// driver is not asked: one that gives any size would read as much from where the data are.
void limit_buffers(std::int64_t bytes);

/// Whether the device seems to have done nothing yet, to those who ask without waiting.
void pretend_busy(bool is);

/// What glGetGraphicsResetStatus says from now on; GL_NO_ERROR (0): what the driver does.
void pretend_reset(unsigned status);

constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
/// After so many more calls the context is lost, in the way that GL_KHR_robustness describes: functions do nothing, give 0 or
/// null and write nothing; glGetGraphicsResetStatus tells it once, as a driver does that has recovered. `wait` is what
/// glClientWaitSync gives. Until lose_context_after(never).
void lose_context_after(std::int64_t calls, unsigned wait = 0);
/// Whether it has been.
bool context_is_lost();

}  // namespace glgemm::test
