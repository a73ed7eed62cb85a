// What becomes of OpenGL in a process that fork() made: a driver's threads and locks do not live through a fork.
//
// glgemm::headless calls what is exported here.
#pragma once

#include <glgemm/export.hpp>

namespace glgemm {

/// To be called when this process has a driver, at each engine or context: what the driver has then registered for the end of the
/// process is left out of its children's. From here on, a child knows that it is one, and its exit() writes out the C library's
/// files and ends without further handlers: Mesa's wait for their threads, which the child does not have.
void watch_forks();

/// Whether this process is a child of one that has called watch_forks(), at any distance. Reads one variable.
GLGEMM_EXPORT bool is_forked() noexcept;

/// @throws GlError  this process is such a child
GLGEMM_EXPORT void check_not_forked(const char* what);

}  // namespace glgemm
