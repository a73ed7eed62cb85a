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
  std::vector<std::string> html;  ///< reports that are put on one page; nothing is measured then
  double tune_minutes = 30;
  bool no_tune = false;
  bool space = false;
  bool quick = false;
  bool no_checks = false;
};

/// Runs the other verbs, each in a process of its own, and writes report.json, report.md and report.html after each.
/// @return the program's status: 0, or 1 if a step failed
/// @throws std::invalid_argument, FileError  no such device, or a file that cannot be written
int run_report(const ReportOptions& options);

/// Puts the one or two reports that `options.html` names on one page, report.html in the folder of `options.output`.
/// @throws std::invalid_argument  a file is no report; the message names it
/// @throws FileError              a file cannot be read or written
void write_page(const ReportOptions& options);

}  // namespace glgemm::tools
