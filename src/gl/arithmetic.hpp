// How a driver computes, as far as no query tells.
#pragma once

#include <glgemm/limits.hpp>

#include "gl/context.hpp"

namespace glgemm::gl {

/// Sets `fuses_multiply_adds` and `subgroup_size` of a driver that computes on a CPU, by a program of one workgroup, in some
/// milliseconds; of another it leaves them. Asks each driver once in a process. Restores the state.
void probe_arithmetic(const Api& api, const DeviceInfo& device, Limits& limits);

}  // namespace glgemm::gl
