// Reads what test programs write.
#include "reports/checks.hpp"

#include <algorithm>
#include <cstdio>
#include <sstream>
#include <string_view>
#include <vector>

#include <fmt/core.h>

namespace glgemm::tools {

TestResult test_result(const std::string& output, const std::string& trouble) {
  constexpr std::string_view test_case = "TEST CASE:  ", failed_script = "FAILED: ";
  std::string name, last;
  std::vector<std::string> failures;
  int cases = -1, passed = 0, failed = 0;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    last = line;
    if (line.starts_with(test_case))
      name = line.substr(test_case.size());
    else if (line.find(": ERROR: ") != std::string::npos || line.find(": FATAL ERROR: ") != std::string::npos)
      failures.push_back("'" + name + "'");
    else if (line.starts_with(failed_script))
      failures.push_back("'" + line.substr(failed_script.size(), 100) + "'");
    else
      std::sscanf(line.c_str(), "[doctest] test cases: %d | %d passed | %d failed", &cases, &passed, &failed);
  }
  failures.erase(std::unique(failures.begin(), failures.end()), failures.end());
  const std::size_t count = failures.size();
  std::string named;
  for (std::size_t i = 0; i < std::min<std::size_t>(count, 20); ++i) named += (i > 0 ? ", " : ": ") + failures[i];
  if (count > 20) named += fmt::format(" and {} more", count - 20);

  const bool script_passed = cases < 0 && count == 0 && last == "all passed";
  TestResult result;
  result.passed = trouble.empty() && (script_passed || (count == 0 && passed > 0 && passed == cases));
  if (cases == 0)
    result.text = "no test case ran";
  else if (cases > 0 && (failed > 0 || count > 0))
    result.text = fmt::format("{} of {} test cases failed{}", failed, cases, named);
  else if (cases > 0)
    result.text = fmt::format("{} test cases passed", passed);
  else if (script_passed)
    result.text = "passed";
  else
    result.text = count > 0 ? "failed" + named : "it ended without a result";
  if (!result.passed && !trouble.empty()) result.text += ", " + trouble;
  return result;
}

}  // namespace glgemm::tools
