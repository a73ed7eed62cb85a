// How much main memory there is to be had.
#pragma once

#include <string>

namespace glgemm::tools {

/// How many bytes of main memory are to be had, as far as the system says.
double available_memory();

/// 1.23e9 as "1.23 GB".
std::string gigabytes(double bytes);

}  // namespace glgemm::tools
