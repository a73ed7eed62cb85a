// glgemm inspect --compiled and --validate: what compilers say of programs.
#pragma once

#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include <glgemm/engine.hpp>
#include <glgemm/plan.hpp>
#include <glgemm/program_report.hpp>

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

/// For people: a row for each program, and below it what the driver said.
void print(const Compiled& compiled, std::ostream& out);
/// One JSON object, with a line feed at its end.
std::string json_of(const Compiled& compiled);

struct Validated {
  struct Refused {
    std::string program;  ///< "tiled:tile=32 f32"
    std::string by;       ///< "glslangValidator" or "the driver"
    std::string why;
  };
  std::string device;  ///< empty: no driver was asked
  std::vector<std::string> programs{};
  std::vector<Refused> refused{};
};

struct ValidateOptions {
  PlanOptions plan{};
  std::string device{};
  bool use_device = true;
  Limits limits{};   ///< where no device is used
  bool all = false;  ///< every kernel of the tuner's space; else only the planner's choice
};

/// Has glslangValidator and the driver compile each program of the problems' plans, each program once. Takes a while with `all`.
/// @throws std::invalid_argument  glslangValidator is not installed
/// @throws Unsupported            no device can be used, or no kernel runs a problem
Validated validate_programs(std::span<const Problem> problems, const ValidateOptions& options);

/// For people: what was refused, and how many were not.
void print(const Validated& validated, std::ostream& out);
/// One JSON object, with a line feed at its end.
std::string json_of(const Validated& validated);

}  // namespace glgemm::tools
