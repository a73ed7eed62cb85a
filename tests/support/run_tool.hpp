// Runs the glgemm tool that lies beside the test program, as a user would.
#pragma once

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "support/temporary_folder.hpp"

struct ToolRun {
  int status = -1;  ///< -1 if it did not end by itself
  std::string out;
  std::string err;
};

/// `arguments` as a shell reads them. Where tests of another machine are emulated, the variable GLGEMM_TEST_EMULATOR has the
/// command that runs a program.
inline ToolRun run_tool(const std::string& arguments) {
  const TemporaryFolder folder;
  const std::string out = folder.file("out");
  const std::string err = folder.file("err");
  const std::string tool = std::filesystem::read_symlink("/proc/self/exe").replace_filename("glgemm").string();
  const char* const emulator = std::getenv("GLGEMM_TEST_EMULATOR");
  const int result = std::system(
      (std::string(emulator ? emulator : "") + " '" + tool + "' " + arguments + " >'" + out + "' 2>'" + err + "' </dev/null")
          .c_str());
  return {WIFEXITED(result) ? WEXITSTATUS(result) : -1, TemporaryFolder::contents(out), TemporaryFolder::contents(err)};
}
