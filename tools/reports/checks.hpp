// What test programs say of themselves, for the step `checks` of `glgemm report`.
#pragma once

#include <string>

namespace glgemm::tools {

struct TestResult {
  bool passed = false;
  std::string text;  ///< "120 test cases passed", "2 of 120 test cases failed: 'a', 'b'", "no test case ran"
};

/// The result of a test program, with doctest or a script of tests/cli_*.sh, by what it wrote to its standard output. Passed is
/// only what says so itself, after at least one test, and ends with status 0.
/// @param trouble  how it ended otherwise, as in "exit status 139" or "no end within 10 s"; empty for status 0
TestResult test_result(const std::string& output, const std::string& trouble);

}  // namespace glgemm::tools
