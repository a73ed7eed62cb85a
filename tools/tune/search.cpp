// The order in which `glgemm tune` tries candidates.
#include "tune/search.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <random>
#include <set>

#include <fmt/core.h>

#include "bench/samples.hpp"

namespace glgemm::tools {

std::string to_string(const Candidate& candidate) {
  return to_string(candidate.kernel) + (candidate.split_k > 0 ? fmt::format(", split_k={}", candidate.split_k) : "");
}

bool wins(const Race& race) {
  if (race.candidate.empty() || race.best.empty()) return false;
  const auto spread = [](const std::vector<double>& times) { return (quantile(times, 0.75) - quantile(times, 0.25)) / 2; };
  const double best = median(race.best);
  return median(race.candidate) < best - std::max({spread(race.candidate), spread(race.best), 0.01 * best});
}

std::vector<Candidate> neighbours(const std::vector<Candidate>& space, const Candidate& of) {
  std::set<Kernel> near;
  for (const KernelParameter& each : parameters(of.kernel)) {
    std::set<int> values;
    for (const Candidate& candidate : space)
      if (name(candidate.kernel) == name(of.kernel)) values.insert(parameter(candidate.kernel, each.name));
    const int value = parameter(of.kernel, each.name);
    if (const auto above = values.upper_bound(value); above != values.end()) near.insert(with(of.kernel, each.name, *above));
    if (const auto from = values.lower_bound(value); from != values.begin())
      near.insert(with(of.kernel, each.name, *std::prev(from)));
  }
  std::vector<Candidate> result;
  std::copy_if(space.begin(), space.end(), std::back_inserter(result), [&](const Candidate& each) {
    return each.kernel == of.kernel ? each.split_k != of.split_k : each.split_k == of.split_k && near.contains(each.kernel);
  });
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
