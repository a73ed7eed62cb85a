// Amounts of main memory as texts.
#pragma once

#include <string>

#include "system/program.hpp"

namespace glgemm::tools {

/// 1.23e9 as "1.23 GB".
std::string gigabytes(double bytes);

}  // namespace glgemm::tools
