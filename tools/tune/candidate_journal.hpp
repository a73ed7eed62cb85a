// What glgemm tune notes of each candidate, so that an interrupted run can be gone on with.
#pragma once

#include <map>
#include <string>
#include <utility>

#include <glgemm/engine.hpp>

#include "system/files.hpp"
#include "tune/search.hpp"
#include "tune/worker.hpp"

namespace glgemm::tools {

/// What became of a candidate.
struct Fate {
  std::string what;  ///< "hang", "crash", "wrong", "refused", "spills"; "lost" or "won" if it was measured
  std::string why{};
  double ms = 0;
  std::string statistics = "{}";  ///< as Race::statistics
  bool struck() const { return what == "hang" || what == "crash" || what == "wrong" || what == "spills"; }
};

/// One line for each candidate, written at once, so that nothing but the last line can be cut.
class CandidateJournal {
 public:
  /// Continues the journal, or begins it anew.  @throws FileError
  CandidateJournal(const std::string& path, const DeviceInfo& device, bool resume);

  /// What an interrupted run found for this problem; null: nothing.
  const Fate* find(const TuneProblem& problem, const Candidate& candidate) const;
  void add(const TuneProblem& problem, const Candidate& candidate, const Fate& fate);
  void remove();

 private:
  using Known = std::map<std::pair<std::string, Candidate>, Fate>;
  Known read() const;
  void append(const std::string& line);

  std::string path_;
  DeviceInfo device_;
  Known known_;
  Descriptor file_;
};

}  // namespace glgemm::tools
