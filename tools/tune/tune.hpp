// glgemm tune, apart from its command line: searching the fastest kernel of each problem, in a process that may be lost.
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include <glgemm/inspect.hpp>
#include <glgemm/tuning.hpp>

#include "tune/search.hpp"
#include "tune/worker.hpp"

namespace glgemm::tools {

struct TuneOptions {
  std::vector<TuneProblem> problems;
  std::vector<std::string> kernels;  ///< families, or kernels with parameters, to which the space is confined; empty: all
  std::string device;
  std::string vendor = "none";  ///< as `--vendor` gives it
  std::string output;
  bool missing = false;  ///< leaves out products of which the table has something for this device
  SearchOptions search;
  double time_limit = 30;  ///< seconds for each candidate
};

struct TuneResult {
  int status = 1;    ///< 0, or 1 if a problem is left without a kernel
  std::string json;  ///< one object, with a line feed at its end
};

/// Tunes each problem and tells in `out` what was found. The table at `output` gets what was found after each problem, beside
/// what is there. Built-in problems that need more memory than there is are left out, and that is said.
/// @throws std::invalid_argument  `output` is there and no tuning table, or a problem of the user's needs more memory
/// @throws FileError              the table cannot be written
/// @throws std::runtime_error     no device can be used, or not any more
TuneResult run_tune(const TuneOptions& options, std::ostream& out);

}  // namespace glgemm::tools
