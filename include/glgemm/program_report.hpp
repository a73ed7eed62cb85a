// What a driver tells of the programs that it compiled: Engine::compile.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <glgemm/export.hpp>
#include <glgemm/plan.hpp>

namespace glgemm {

/// What a driver's compiler tells of a program, in the same units for every maker. What a driver does not tell is absent.
struct ProgramStatistics {
  std::optional<std::int64_t> registers;  ///< of 32 bits, for each invocation
  /// Registers written to memory for lack of room, and read back. AMD's driver counts registers; those of Intel, NVIDIA, Apple
  /// and Adreno count instructions, with those for arrays that are indexed at run time.
  std::optional<std::int64_t> spills, fills;
  std::optional<std::int64_t> local_bytes;     ///< memory of each invocation's own: spills, and arrays indexed at run time
  std::optional<std::int64_t> shared_bytes;    ///< of each workgroup, as the device allocates it
  std::optional<std::int64_t> instructions;    ///< of the whole program
  std::optional<std::int64_t> subgroup_width;  ///< invocations that run in lockstep
  /// Subgroups that one unit holds at a time as far as registers allow: for each SIMD on AMD, each multiprocessor on NVIDIA, each
  /// core on Apple, each shader processor on Adreno.
  std::optional<std::int64_t> occupancy;
  std::optional<std::int64_t> cycles;  ///< by the compiler's own static model; to compare programs on one device alone
  friend bool operator==(const ProgramStatistics&, const ProgramStatistics&) = default;
};

/// Whether the driver tells of spills or fills. False where it does not tell.
GLGEMM_EXPORT bool spills(const ProgramStatistics& statistics) noexcept;
/// "registers 120, spills 4, fills 8": what is known; empty if nothing is.
GLGEMM_EXPORT std::string to_string(const ProgramStatistics& statistics);

/// A program of a plan.
struct ProgramReport {
  ProgramKey program;
  Stage stage = Stage::multiply;
  ProgramStatistics statistics;
  /// What the driver said while the program was made and first dispatched, as it said it, and the assembly in NVIDIA's binaries.
  /// Empty if it said nothing.
  std::vector<std::string> messages;
};

}  // namespace glgemm
