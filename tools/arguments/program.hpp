// A program's whole run: its command line, its errors, its exit status.
#pragma once

#include <functional>
#include <string>

#include "arguments/options.hpp"

namespace glgemm::tools {

struct Program {
  const char* name;
  const char* description;
  std::string footer;  ///< the end of its help
  /// Adds the verbs, or the options of a program that has none. The last parameter is the exit status, which a run may set.
  std::function<void(CLI::App& app, int& status)> add;
};

/// Reads the command line and runs what it says, or prints help or the version. What is wrong goes to the standard error in one
/// sentence. A program with verbs has `help` too, and `complete`, which the shell's completion calls.
/// @return the exit status: 0, or what the run set; 2 for bad input, or a device or file that cannot be used
int run_program(int argc, char** argv, const Program& program);

}  // namespace glgemm::tools
