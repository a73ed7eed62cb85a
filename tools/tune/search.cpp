// The order in which `glgemm tune` tries candidates.
#include "tune/search.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "bench/samples.hpp"

namespace glgemm::tools {
namespace {

/// A candidate as coordinates: a family, the values of its parameters, and the split.
struct Point {
  std::string_view family;
  std::vector<std::int64_t> values;
};

Point point(const Candidate& candidate) {
  std::string_view text = candidate.kernel;
  Point result{text.substr(0, text.find(':')), {}};
  for (std::size_t equals = text.find('='); equals != std::string_view::npos; equals = text.find('=')) {
    text.remove_prefix(equals + 1);
    std::int64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    result.values.push_back(value);
  }
  result.values.push_back(candidate.split_k);
  return result;
}

/// Whether no value that a family has for a parameter lies between two values.
bool adjacent(const std::set<std::int64_t>& known, std::int64_t x, std::int64_t y) {
  const auto after = known.upper_bound(std::min(x, y));
  return after != known.end() && *after == std::max(x, y);
}

}  // namespace

std::string to_string(const Candidate& candidate) {
  return candidate.kernel + (candidate.split_k > 0 ? fmt::format(", split_k={}", candidate.split_k) : "");
}

bool wins(const Race& race) {
  if (race.candidate.empty() || race.best.empty()) return false;
  const auto spread = [](const std::vector<double>& times) { return (quantile(times, 0.75) - quantile(times, 0.25)) / 2; };
  const double best = median(race.best);
  return median(race.candidate) < best - std::max({spread(race.candidate), spread(race.best), 0.01 * best});
}

std::vector<Candidate> neighbours(const std::vector<Candidate>& space, const Candidate& of) {
  const Point centre = point(of);
  std::vector<std::set<std::int64_t>> known(centre.values.size());
  std::vector<std::pair<const Candidate*, Point>> family;
  for (const Candidate& candidate : space) {
    Point p = point(candidate);
    if (p.family != centre.family || p.values.size() != centre.values.size()) continue;
    for (std::size_t i = 0; i < known.size(); ++i) known[i].insert(p.values[i]);
    family.emplace_back(&candidate, std::move(p));
  }
  std::vector<Candidate> result;
  for (const auto& [candidate, p] : family) {
    int differences = 0;
    std::size_t at = 0;
    for (std::size_t i = 0; i < known.size(); ++i)
      if (p.values[i] != centre.values[i]) ++differences, at = i;
    const bool split = at + 1 == known.size();
    if (differences == 1 && (split || adjacent(known[at], p.values[at], centre.values[at]))) result.push_back(*candidate);
  }
  return result;
}

std::int64_t search(const std::vector<Candidate>& space, const std::vector<Candidate>& first, const SearchOptions& options,
                    const std::function<bool(const Candidate&, std::span<const Candidate> coming)>& attempt) {
  std::mt19937_64 random(options.seed);
  std::set<Candidate> left(space.begin(), space.end());
  const auto size = static_cast<std::int64_t>(space.size());
  const bool whole = options.exhaustive || size <= options.candidates;
  const std::int64_t most = whole ? size : options.candidates;
  std::vector<Candidate> coming;  // and no longer left
  const auto queue = [&](const Candidate candidate) {
    const bool is_left = left.erase(candidate) > 0;
    if (is_left) coming.push_back(candidate);
    return is_left;
  };
  auto next = space.begin();
  const auto queue_next = [&](std::int64_t count) {
    for (; count > 0 && next != space.end(); ++next) count -= queue(*next);
  };
  for (const Candidate& candidate : first) queue(candidate);
  queue_next(whole ? size : options.starts);

  bool begins = true;
  std::int64_t tried = 0;
  std::optional<Candidate> best;
  for (std::int64_t lost = 0; tried < most && lost < options.patience;) {
    if (coming.empty()) {
      begins = false;
      if (best)
        for (const Candidate& candidate : neighbours(space, *best)) queue(candidate);
      if (coming.empty()) {
        queue_next(3);
        if (!left.empty()) queue(*std::next(left.begin(), static_cast<std::ptrdiff_t>(random() % left.size())));
      }
      if (coming.empty()) break;
    }
    const Candidate candidate = coming.front();
    coming.erase(coming.begin());
    ++tried;
    const bool won = attempt(candidate, std::span(coming).first(std::min(coming.size(), static_cast<std::size_t>(most - tried))));
    if (!begins) lost = won ? 0 : lost + 1;
    if (!won) continue;
    best = candidate;
    if (begins) continue;
    left.insert(coming.begin(), coming.end());  // its own neighbours come before them
    coming.clear();
    next = space.begin();
  }
  return tried;
}

}  // namespace glgemm::tools
