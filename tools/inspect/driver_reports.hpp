// What drivers tell of programs, for the verbs that ask them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include <glgemm/program_report.hpp>
#include <nlohmann/json.hpp>

namespace glgemm::tools {

/// Sets the variables that make Mesa's drivers tell of every program, beside what is in them. Before the process's first context.
void ask_drivers_to_tell();

/// A value of the statistics, as JSON and tables name it.
struct StatisticsColumn {
  const char* key;
  const char* heading;
  std::optional<std::int64_t> ProgramStatistics::*value;
};
inline constexpr std::array<StatisticsColumn, 9> statistics_columns{
    {{"registers", "registers", &ProgramStatistics::registers},
     {"spills", "spills", &ProgramStatistics::spills},
     {"fills", "fills", &ProgramStatistics::fills},
     {"local_bytes", "local bytes", &ProgramStatistics::local_bytes},
     {"shared_bytes", "shared bytes", &ProgramStatistics::shared_bytes},
     {"instructions", "instructions", &ProgramStatistics::instructions},
     {"subgroup_width", "subgroup", &ProgramStatistics::subgroup_width},
     {"occupancy", "occupancy", &ProgramStatistics::occupancy},
     {"cycles", "cycles", &ProgramStatistics::cycles}}};

/// An object without the values that the driver does not tell.
nlohmann::ordered_json json_of(const ProgramStatistics& statistics);

}  // namespace glgemm::tools
