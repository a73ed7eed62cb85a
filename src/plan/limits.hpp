// Whether limits are some that a device can have.
#pragma once

#include <glgemm/limits.hpp>

namespace glgemm {

/// @throws std::invalid_argument  a limit is out of its range; the message names it, with the numbers
void validate(const Limits& limits);

}  // namespace glgemm
