// glgemm report, apart from its command line.
#pragma once

#include <string>
#include <vector>

namespace glgemm::tools {

struct ReportOptions {
  std::string output = "report";
  std::string device;
  std::string sizes;
  std::vector<std::string> shapes, gpu_shapes;
  std::string peer = "auto";
  std::string checks;
  std::string cublas;
  double minutes = 0;  ///< for all of it; 0: as long as it takes
  double tune_minutes = 30;
  bool no_tune = false;
  bool quick = false;
  bool no_checks = false;
};

/// Runs the other verbs, each in a process of its own, and writes report.json and report.md before all and after each, whole:
/// whenever this is ended, what was found until then is there. With `minutes` what is worth most comes first, and what does not
/// fit is left out.
/// @return the program's status: 0, or 1 if a step failed
/// @throws std::invalid_argument, FileError  no such device, or a file that cannot be written
int run_report(const ReportOptions& options);

}  // namespace glgemm::tools
