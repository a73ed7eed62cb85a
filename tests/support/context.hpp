// The context and the engine that all tests on a device share.
#pragma once

#include <glgemm/engine.hpp>
#include <glgemm/headless.hpp>

namespace glgemm::test {

/// The shared context, current on this thread. The first call makes it; where no context can be had, that ends the program: with
/// 77, a skip, or with 1 if the variable CI is set. For the main thread.
HeadlessContext& context();

/// The engine in it, with it current.
Engine& engine();

}  // namespace glgemm::test
