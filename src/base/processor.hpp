// Which CPU this is: drivers that compute on a CPU do not say it.
#pragma once

#include <string_view>

namespace glgemm {

/// The microarchitecture of a CPU by what CPUID says of it: "amd-zen4", "intel-sapphire-rapids". Empty where it is not known.
std::string_view processor_name(std::string_view vendor, unsigned family, unsigned model) noexcept;

/// The microarchitecture of the CPU on which this runs. Empty on CPUs without CPUID.
std::string_view processor_name() noexcept;

}  // namespace glgemm
