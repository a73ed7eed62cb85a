// How a driver computes, as far as no query tells.
#pragma once

#include <glgemm/limits.hpp>

#include "gl/context.hpp"

namespace glgemm::gl {

/// Sets `fuses_multiply_adds` and `subgroup_size` of a driver that computes on a CPU, by a program of one workgroup, in some
/// milliseconds; of another it leaves them. Asks each driver once in a process. Restores the state.
/// @throws  as check_dispatches_run()
void probe_arithmetic(const Api& api, const DeviceInfo& device, Limits& limits);

/// For one whose program gave a wrong result: whether a program runs at all. Waits for the device. Restores the state.
/// @throws GlError  none does; `what` is the call that needs one
void check_dispatches_run(const Api& api, const char* what);

}  // namespace glgemm::gl
