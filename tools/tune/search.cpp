// The order in which `glgemm tune` tries candidates.
#include "tune/search.hpp"

#include <algorithm>
#include <charconv>
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

/// Unlike std::shuffle, it gives equal orders on every machine.
void shuffle(std::vector<Candidate>& list, std::mt19937_64& random) {
  for (std::size_t left = list.size(); left > 1; --left) std::swap(list[left - 1], list[random() % left]);
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
                    const std::function<bool(const Candidate&)>& attempt) {
  std::mt19937_64 random(options.seed);
  std::set<Candidate> left(space.begin(), space.end());
  const bool whole = options.exhaustive || static_cast<std::int64_t>(space.size()) <= options.candidates;
  std::int64_t tried = 0;
  std::optional<Candidate> best;
  /// Whether it won.
  const auto take = [&](const Candidate& candidate) {
    if ((!whole && tried >= options.candidates) || left.erase(candidate) == 0) return false;
    ++tried;
    if (!attempt(candidate)) return false;
    best = candidate;
    return true;
  };

  for (const Candidate& candidate : first) take(candidate);
  std::vector<Candidate> others = space;
  shuffle(others, random);
  if (whole) {
    for (const Candidate& candidate : others) take(candidate);
    return tried;
  }
  auto next_random = others.begin();
  for (std::int64_t i = 0; i < options.starts && next_random != others.end(); ++next_random) {
    i += static_cast<std::int64_t>(left.count(*next_random));
    take(*next_random);
  }
  for (std::int64_t lost = 0; lost < options.patience && tried < options.candidates && !left.empty();) {
    std::vector<Candidate> near;
    if (best) {
      near = neighbours(space, *best);
      std::erase_if(near, [&](const Candidate& candidate) { return left.count(candidate) == 0; });
      shuffle(near, random);
    }
    if (near.empty()) {
      while (next_random != others.end() && left.count(*next_random) == 0) ++next_random;
      if (next_random == others.end()) break;
      near.push_back(*next_random);
    }
    for (const Candidate& candidate : near) {
      const bool won = take(candidate);
      lost = won ? 0 : lost + 1;
      if (won || lost >= options.patience || tried >= options.candidates) break;
    }
  }
  return tried;
}

}  // namespace glgemm::tools
