// glgemm inspect --compiled: what the driver says of programs.
#pragma once

#include <array>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include <glgemm/engine.hpp>
#include <glgemm/inspect.hpp>
#include <nlohmann/json_fwd.hpp>

namespace glgemm::tools {

/// The programs that one driver made, each once.
struct Compiled {
  struct Program {
    ProgramReport report;
    std::vector<std::string> shapes;  ///< of the products that run it: "4096,4096,4096"
  };
  DeviceInfo device;
  DeviceClass device_class;
  std::vector<Program> programs;
};

/// Compiles what the problems need on the device that `--device` names. Has Mesa's drivers tell: before the process's first
/// context.
/// @throws Unsupported  no device can be used, or no kernel runs a problem
/// @throws GlError      the driver refused a program
Compiled compile(const std::string& device, std::span<const Problem> problems, const PlanOptions& options);

/// A convolution or a network, and what it is called.
struct NamedProblem {
  std::string name;
  std::variant<ConvolutionProblem, MlpProblem> problem;
};
/// The same for these.
Compiled compile(const std::string& device, std::span<const NamedProblem> problems, const PlanOptions& options);

/// For people: a row for each program, and below it what the driver said.
void print(const Compiled& compiled, std::ostream& out);
/// One JSON object, with a line feed at its end.
std::string json_of(const Compiled& compiled);

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
