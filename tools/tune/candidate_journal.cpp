// What glgemm tune notes of each candidate: lines of JSON.
#include "tune/candidate_journal.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include <nlohmann/json.hpp>

#include "files/child.hpp"
#include "files/files.hpp"

namespace glgemm::tools {
namespace {

using Json = nlohmann::ordered_json;

std::string key(const TuneProblem& problem) {
  return to_string(problem.shape) + " " + std::string(to_string(problem.type)) + " " + std::to_string(problem.batch);
}

}  // namespace

CandidateJournal::CandidateJournal(const std::string& path, const DeviceInfo& device, bool resume)
    : path_(path), device_(device) {
  if (resume) known_ = read();
  file_ = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (resume ? 0 : O_TRUNC), 0666);
  if (file_ < 0) fail();
  append("");  // ends a line that was cut
}

CandidateJournal::~CandidateJournal() {
  if (file_ >= 0) close(file_);
}

const Fate* CandidateJournal::find(const TuneProblem& problem, const Candidate& candidate) const {
  const auto found = known_.find({key(problem), candidate});
  return found == known_.end() ? nullptr : &found->second;
}

void CandidateJournal::add(const TuneProblem& problem, const Candidate& candidate, const Fate& fate) {
  append(Json{{"device", device_.renderer},
              {"driver", device_.version},
              {"processor", device_.processor},
              {"problem", key(problem)},
              {"kernel", candidate.kernel},
              {"split_k", candidate.split_k},
              {"fate", fate.what},
              {"why", fate.why},
              {"ms", fate.ms},
              {"statistics", Json::parse(fate.statistics)}}
             .dump(-1, ' ', false, Json::error_handler_t::replace));
}

void CandidateJournal::remove() {
  unlink(path_.c_str());
}

CandidateJournal::Known CandidateJournal::read() const {
  Known known;
  const std::string text = contents(path_);
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const Json json = Json::parse(line, nullptr, false);
    try {
      if (!json.is_object() || json.at("device") != device_.renderer || json.at("driver") != device_.version ||
          json.value("processor", "") != device_.processor)
        continue;
      known[{json.at("problem").get<std::string>(),
             {json.at("kernel").get<std::string>(), json.at("split_k").get<std::int64_t>()}}] = {
          json.at("fate").get<std::string>(), json.at("why").get<std::string>(), json.at("ms").get<double>(),
          json.value("statistics", Json::object()).dump()};
    } catch (const Json::exception&) {
      // A line of something else: its candidate is tried again.
    }
  }
  return known;
}

void CandidateJournal::append(const std::string& line) {
  const std::string text = line + '\n';
  if (write(file_, text.data(), text.size()) != static_cast<ssize_t>(text.size())) fail();
}

void CandidateJournal::fail() const {
  throw FileError("cannot write '" + path_ + "': " + (errno == ENOSPC ? "the disk is full" : std::strerror(errno)));
}

}  // namespace glgemm::tools
