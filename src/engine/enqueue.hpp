// Enqueueing a whole call.
#pragma once

#include "engine/steps.hpp"

namespace glgemm {

/// Enqueues a checked call, step after step. If it may be long and the speed of its programs is not known, waits for its first
/// steps. `report` may be null.
/// @throws DeviceLost  it waited, and the context was reset
void enqueue(Engine::State& state, Steps& steps, Report* report);

/// Enqueues a checked call. With a report, waits for the device, and tells what ran and how long it took.  @throws  as enqueue()
void run_steps(Engine& engine, Steps& steps, Report* report);

}  // namespace glgemm
