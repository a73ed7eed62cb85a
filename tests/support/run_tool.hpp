// Runs the glgemm tool that lies beside the test program, as a user would.
#pragma once

#include <cstdlib>
#include <string>

#include "processes/child.hpp"

struct ToolRun {
  int status = -1;  ///< -1 if it did not end by itself
  std::string out;
  std::string err;
};

/// `arguments` as a shell reads them, as far as tests use one: words in single quotes. Where tests of another machine are
/// emulated, the variable GLGEMM_TEST_EMULATOR has the command that runs a program.
inline ToolRun run_tool(const std::string& arguments) {
  const char* const emulator = std::getenv("GLGEMM_TEST_EMULATOR");
  glgemm::tools::Words words;
  bool in_word = false, in_quotes = false;
  for (const char c : (emulator ? emulator : "") + (" '" + glgemm::tools::program_beside("glgemm") + "' ") + arguments) {
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
