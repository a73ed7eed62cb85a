// Runs the glgemm tool that lies beside the test program, as a user would.
#pragma once

#include <cstdlib>
#include <string>

#include "processes/child.hpp"
#include "support/temporary_folder.hpp"

#if !defined(_WIN32)
#include <sys/wait.h>
#endif

struct ToolRun {
  int status = -1;  ///< -1 if it did not end by itself
  std::string out;
  std::string err;
};

#if defined(_WIN32)
/// `arguments` as a shell reads them, as far as tests use one: words in single quotes.
inline ToolRun run_tool(const std::string& arguments) {
  glgemm::tools::Words words{glgemm::tools::program_beside("glgemm")};
  bool in_word = false, in_quotes = false;
  for (const char c : arguments) {
    if (c == '\'') {
      in_quotes = !in_quotes;
    } else if (c == ' ' && !in_quotes) {
      in_word = false;
      continue;
    }
    if (!in_word) words.emplace_back();
    in_word = true;
    if (c != '\'') words.back() += c;
  }
  const glgemm::tools::ScratchFolder scratch;
  const glgemm::tools::ProgramResult ended = run_program(words, {}, 0, scratch);
  return {ended.status, ended.out, ended.err};
}
#else
/// `arguments` as a shell reads them. Where tests of another machine are emulated, the variable GLGEMM_TEST_EMULATOR has the
/// command that runs a program.
inline ToolRun run_tool(const std::string& arguments) {
  const TemporaryFolder folder;
  const std::string out = folder.file("out");
  const std::string err = folder.file("err");
  const std::string tool = glgemm::tools::program_beside("glgemm");
  const char* const emulator = std::getenv("GLGEMM_TEST_EMULATOR");
  const int result = std::system(
      (std::string(emulator ? emulator : "") + " '" + tool + "' " + arguments + " >'" + out + "' 2>'" + err + "' </dev/null")
          .c_str());
  return {WIFEXITED(result) ? WEXITSTATUS(result) : -1, TemporaryFolder::contents(out), TemporaryFolder::contents(err)};
}
#endif
