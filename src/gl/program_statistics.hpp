// What drivers' compilers say of a program, read from their own words. This file does not call OpenGL.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include <glgemm/inspect.hpp>

namespace glgemm {

/// Reads the messages about one compute program. It knows Mesa's drivers for AMD, Intel, NVIDIA, Apple, Adreno and other GPUs,
/// and assembly() of NVIDIA's binaries. Programs of other kinds, which drivers make for themselves, are passed over, and so is
/// what is not understood.
///
/// Intel's driver may compile a program for several subgroup widths. The one that runs is the widest without spills, else the
/// widest.
ProgramStatistics parse_statistics(std::span<const std::string> messages);

/// The assembly ("!!NVcp5.0 ...") that NVIDIA's driver keeps as text in the binaries of its compute programs; empty if there is
/// none.
std::string assembly(std::span<const std::byte> binary);

}  // namespace glgemm
