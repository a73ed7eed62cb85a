// glgemm inspect --compiled: what the driver says of the programs that it made.
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

}  // namespace glgemm::tools
