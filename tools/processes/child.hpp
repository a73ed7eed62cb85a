// Runs programs, this one among them, as children with variables and a time limit of their own.
#pragma once

#include <optional>
#include <string>

#include "files/files.hpp"
#include "system/processes.hpp"

namespace glgemm::tools {

/// The last one or two lines that are not blank, on one line.
std::string last_words(const std::string& text);

/// What became of a program.
struct ProgramResult {
  int status = -1;  ///< -1: not by itself
  bool late = false;
  std::string how;  ///< "signal 11", "no end within 30 s"
  std::string out, err;
};

/// A folder that goes with what is in it, also where a signal ends this program. A few at a time.
class ScratchFolder {
 public:
  /// @throws FileError  none can be made
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
  std::optional<RemovedBySignal> removed_;
};

/// Runs a program, `words[0]` "glgemm" being this one, for at most `limit` seconds (0: as long as it takes); then it is asked to
/// end. Its output lies in `scratch` meanwhile. A signal that ends this program ends that one first, with what it has started in
/// its process group. One at a time.
ProgramResult run_program(const Words& words, const Variables& variables, double limit, const ScratchFolder& scratch);

/// Why a program failed, with its last words: "exit status 2: glgemm bench: ...".
std::string why(const ProgramResult& ended);

}  // namespace glgemm::tools
