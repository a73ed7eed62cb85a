// What glgemm tune notes of each candidate: lines of JSON.
#include "tune/candidate_journal.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "files/files.hpp"
#include "processes/child.hpp"

namespace glgemm::tools {
namespace {

using Json = nlohmann::ordered_json;

std::string key(const TuneProblem& problem) {
  return fmt::format("{} {} {}", to_string(problem.shape), to_string(problem.formats), problem.batch);
}

}  // namespace

CandidateJournal::CandidateJournal(const std::string& path, const DeviceInfo& device, bool resume)
    : path_(path), device_(device) {
  if (resume)
    known_ = read();
  else
    remove();
  if (const int error = open_file(path_, Opening::append, file_)) throw cannot_write(path_, error);
  append("");  // ends a line that was cut
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
  remove_file(path_);
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
  if (const int error = tools::append(file_.get(), text.data(), text.size())) throw cannot_write(path_, error);
}

}  // namespace glgemm::tools
