// Finds the fastest kernels of a device and keeps them in a table.
#include "tune/tune.hpp"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <span>
#include <stdexcept>
#include <thread>
#include <tuple>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "arguments/json.hpp"
#include "bench/samples.hpp"
#include "files/files.hpp"
#include "inspect/numbers.hpp"
#include "terminal/progress.hpp"
#include "terminal/texts.hpp"

namespace glgemm::tools {
namespace {

using Json = nlohmann::ordered_json;
using Seconds = std::chrono::duration<double>;

std::string number(double value) {
  return fmt::format("{:.4g}", value);
}

/// The table at the path, or an empty one if there is no file.
/// @throws std::invalid_argument  the file is no tuning table: it would be lost
TuningTable existing_table(const std::string& path, std::vector<std::string>& notes) {
  if (!exists(path)) return {};
  const std::string text = contents_of(path);
  if (text.empty()) return {};
  std::vector<std::string> found;
  TuningTable table = TuningTable::parse(text, found);
  for (const std::string& note : found) {
    if (!note.starts_with("entry "))  // it is about the whole
      throw std::invalid_argument("'" + path + "': " + note + "; it is not overwritten");
    notes.push_back("'" + path + "': " + note);
  }
  return table;
}

/// What became of a candidate.
struct Fate {
  std::string what;  ///< "hang", "crash", "wrong", "refused", "spills"; "lost" or "won" if it was measured
  std::string why{};
  std::string statistics = "{}";  ///< as Race::statistics
  bool struck() const { return what == "hang" || what == "crash" || what == "wrong" || what == "spills"; }
};

/// A candidate that must not be used.
struct Struck {
  std::string problem;
  Candidate candidate;
  Fate fate;
};

/// No worker can be had any more.
class DeviceGone : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What is known of the candidate that is best so far.
struct Best {
  Candidate candidate;
  double ms = 0;
  std::string statistics = "{}";  ///< as Race::statistics
};

class Tuner {
 public:
  Tuner(const TuneOptions& options, std::ostream& out) : options_(options), out_(out) {}

  TuneResult run() {
    std::vector<std::string> notes;
    const TuningTable known = existing_table(options_.output, notes);
    { OutputFile writable(options_.output); }  // before long work
    start(seats_.front());
    const std::vector<TuneProblem> problems = all_problems(notes);
    for (const std::string& note : notes) std::cerr << "glgemm tune: note: " << note << '\n';

    out_ << device_.renderer << ", " << device_.version << '\n';
    Progress progress(static_cast<double>(problems.size()));
    progress_ = &progress;
    std::int64_t skipped = 0;
    bool all_found = true;
    for (const TuneProblem& problem : problems) {
      if (options_.missing && has(known, problem)) {
        ++skipped;
        continue;
      }
      const LastWords last_words(
          "tune", fmt::format("{} of {} products are in {}; the same command with --missing goes on",
                              skipped + static_cast<std::int64_t>(done_), problems.size(), quote(options_.output)));
      all_found &= tune(problem);
      ++done_;
    }
    progress.clear();
    if (skipped > 0)
      out_ << fmt::format("{} problem{} in '{}' already\n", skipped, skipped == 1 ? " is" : "s are", options_.output);
    const auto spills = [](const Struck& struck) { return struck.fate.what == "spills"; };
    if (const auto first = std::find_if(struck_.begin(), struck_.end(), spills); first != struck_.end()) {
      const auto count = std::count_if(struck_.begin(), struck_.end(), spills);
      out_ << fmt::format("Skipped {} kernel{} {}\n", count,
                          count == 1 ? " that the driver reports to spill:" : "s that the driver reports to spill, such as",
                          first->fate.why);
    }
    if (!std::all_of(struck_.begin(), struck_.end(), spills)) out_ << "Struck off:\n";
    for (const auto& [problem, candidate, fate] : struck_)
      if (fate.what != "spills") out_ << fmt::format("  {}  {}, {}: {}\n", fate.what, to_string(candidate), problem, fate.why);
    if (const auto count = static_cast<double>(ratios_.size()); count > 0) {
      const double mean = std::exp(log_sum_ / count);
      out_ << "The planner's choices over the best: at least " << number(least_) << ", geometric mean " << number(mean) << '\n';
      ratios_.push_back({{"name", "auto over tuned, geometric mean"}, {"value", mean}, {"of", "auto"}, {"over", "tuned"}});
      ratios_.push_back({{"name", "auto over tuned, least"}, {"value", least_}, {"of", "auto"}, {"over", "tuned"}});
    }
    if (!results_.empty()) out_ << "wrote " << options_.output << '\n';
    return {all_found ? 0 : 1, json()};
  }

 private:
  /// A worker's place, and what it does there.
  struct Seat {
    std::unique_ptr<Worker> worker{};
    const TuneProblem* loaded = nullptr;
    int served = 0;                  ///< candidates of this worker
    std::set<Kernel> kernels{};      ///< that it has compiled
    std::set<Candidate> compiled{};  ///< for the problem that is loaded, or that it is told to compile
    bool useless = false;            ///< no further one can be had here
    bool has(const TuneProblem& problem, const Candidate& candidate) const {
      return loaded == &problem && compiled.contains(candidate);
    }
  };

  /// A device needs some time after a hang or a crash.
  void start(Seat& seat) {
    for (int retry = 0; !seat.worker; ++retry) {
      try {
        seat.worker = std::make_unique<Worker>(options_.device, options_.vendor);
        device_ = seat.worker->device();
      } catch (const std::exception& error) {
        constexpr int most = 3;
        leave(seat);
        if (device_.renderer.empty()) throw;  // the first one: nothing has gone wrong
        if (retry == most) throw DeviceGone(std::string("the device cannot be used any more: ") + error.what());
        std::this_thread::sleep_for(std::chrono::seconds(2 << retry));
      }
    }
  }

  /// The worker ends, and its programs go with it.
  static void leave(Seat& seat) { seat = {}; }

  /// Waits for what the worker does. If it is lost, the candidate that it was at is to blame.
  void await(Seat& seat) {
    while (seat.worker && !seat.worker->begun().empty()) {
      const std::optional<Candidate> candidate = seat.worker->begun().front().candidate;
      try {
        seat.worker->await();
      } catch (const WorkerLost& lost) {
        if (candidate) lost_ahead_[*candidate] = fate_of(lost);
        leave_all();
      } catch (const std::runtime_error&) {
        // What does not compile is refused again when it is raced.
        if (!candidate) leave(seat), seat.useless = true;
      }
    }
  }

  /// What takes a worker away may have taken the device from the others.
  void leave_all() {
    for (Seat& seat : seats_) leave(seat);
  }
  static Fate fate_of(const WorkerLost& lost) { return {lost.hung() ? "hang" : "crash", lost.what()}; }

  /// So many as there are cores, as long as the matrices of all of them need no more than 1 GiB.
  std::size_t workers_for(const TuneProblem& problem) const {
    const auto bytes = static_cast<double>(least_bytes(problem_of(problem)));
    return static_cast<std::size_t>(std::clamp(0x1p30 / bytes, 1.0, static_cast<double>(seats_.size())));
  }

  /// Has workers compile this candidate and those that come, each another one, and the best, while others are measured. Where a
  /// CPU computes, each gets several, and none is measured meanwhile, since compilers take its cores.
  void compile_ahead(const TuneProblem& problem, const Candidate& candidate, std::span<const Candidate> coming,
                     const std::optional<Best>& best) {
    const std::span<Seat> seats = std::span(seats_).first(workers_for(problem));
    const auto is_compiled = [&](const Candidate& each) {
      return std::any_of(seats.begin(), seats.end(), [&](const Seat& seat) { return seat.has(problem, each); });
    };
    if (seats.size() == 1 || (device_.software && is_compiled(candidate))) return;
    const auto compile = [&](Seat& seat, const Candidate& each) {
      seat.worker->compile(each, Seconds(options_.time_limit));
      seat.compiled.insert(each);
      seat.kernels.insert(each.kernel);
    };
    const auto wanted = [&](const Seat& seat) -> std::ptrdiff_t {  // how many that it compiles
      if (!seat.worker) return 0;
      return std::ranges::count_if(seat.worker->begun(), [&](const Worker::Task& task) {
        return task.candidate == candidate || (task.candidate && std::ranges::find(coming, *task.candidate) != coming.end());
      });
    };
    for (Seat& seat : seats) {
      if (wanted(seat) == 0) await(seat);
      if (best && seat.loaded == &problem && !seat.has(problem, best->candidate)) compile(seat, best->candidate);
    }
    const std::ptrdiff_t most = device_.software ? 4 : 1;
    const auto give = [&](const Candidate& each) {
      if (is_compiled(each) || is_struck(problem, each) || lost_ahead_.contains(each)) return true;
      const auto order = [&](const Seat& seat) {
        const std::ptrdiff_t count = wanted(seat);
        return std::tuple(seat.useless || count >= most, !seat.kernels.contains(each.kernel), count);
      };
      Seat& seat =
          *std::min_element(seats.begin(), seats.end(), [&](const Seat& x, const Seat& y) { return order(x) < order(y); });
      if (std::get<0>(order(seat))) return false;
      if (!seat.worker) seat.worker = std::make_unique<Worker>(options_.device, options_.vendor);
      if (seat.loaded != &problem) {
        seat.worker->load(problem, options_.search.seed);
        seat.loaded = &problem;
        seat.compiled.clear();
      }
      compile(seat, each);
      return true;
    };
    if (give(candidate)) std::all_of(coming.begin(), coming.end(), give);
    if (device_.software)
      for (Seat& seat : seats) await(seat);
  }

  std::vector<TuneProblem> all_problems(std::vector<std::string>& notes) const {
    std::vector<TuneProblem> problems;
    for (const TuneProblem& problem : options_.problems) {
      if (problem.for_gpus && device_.software) continue;
      try {
        require_memory(problem.shape, one_type(problem.formats), problem.batch);
        problems.push_back(problem);
      } catch (const std::invalid_argument& error) {
        if (problem.shape_class == given_class) throw;
        notes.push_back(error.what());
      }
    }
    return problems;
  }

  bool has(const TuningTable& table, const TuneProblem& problem) const {
    TuningTable one = table;
    TuningEntry entry = entry_for(problem, Best(), 0);
    entry.date = "0000-00-00";  // older than any
    one.add(entry);
    return one.entries().size() == table.entries().size();
  }

  TuningEntry entry_for(const TuneProblem& problem, const Best& best, double gflops) const {
    TuningEntry entry{device_.renderer, device_.version, problem.shape_class, {}, date_, device_.processor};
    entry.choice.problem = problem_of(problem);
    entry.choice.kernel = best.candidate.kernel;
    entry.choice.split_k = best.candidate.split_k;
    entry.choice.gflops = std::strtod(number(gflops).c_str(), nullptr);  // four digits are what a measurement is worth
    return entry;
  }

  /// The worker that has the candidate's program, or the first, with the problem loaded. One worker serves many problems, since
  /// they share programs. After 2000 candidates a new worker takes its place, since drivers keep what they compiled.
  Worker& loaded(const TuneProblem& problem, const Candidate* candidate) {
    constexpr int most = 2000;
    const auto home =
        std::find_if(seats_.begin(), seats_.end(), [&](const Seat& seat) { return candidate && seat.has(problem, *candidate); });
    Seat& seat = home != seats_.end() ? *home : seats_.front();
    await(seat);
    if (seat.served >= most) leave(seat);
    start(seat);
    if (seat.loaded != &problem) {
      seat.worker->load(problem, options_.search.seed);
      seat.worker->await();
      seat.loaded = &problem;
      seat.compiled.clear();
    }
    ++seat.served;
    return *seat.worker;
  }

  bool is_asked_for(const Candidate& candidate) const {
    const auto& kernels = options_.kernels;
    return kernels.empty() || std::any_of(kernels.begin(), kernels.end(), [&](const std::string& text) {
             return text == to_string(candidate.kernel) || text == name(candidate.kernel);
           });
  }

  /// Has the worker do something for a candidate.  @return the fate of a candidate that fails; none where it succeeds
  template <class F>
  std::optional<Fate> guarded(const TuneProblem& problem, const Candidate* candidate, const F& f) {
    try {
      f(loaded(problem, candidate));
      return std::nullopt;
    } catch (const WorkerLost& lost) {
      leave_all();
      return fate_of(lost);
    } catch (const DeviceGone&) {
      throw;
    } catch (const std::runtime_error& error) {
      return Fate{"refused", error.what()};
    }
  }

  Fate attempt(const TuneProblem& problem, const Candidate& candidate, std::optional<Best>& best) {
    const Seconds limit(options_.time_limit);
    Race race;
    Best before;
    if (best) before = *best;
    if (const auto lost = lost_ahead_.find(candidate); lost != lost_ahead_.end()) return lost->second;
    if (auto bad = guarded(problem, &candidate, [&](Worker& worker) {
          race = worker.race(candidate, best ? &before.candidate : nullptr, before.ms, false, limit);
        }))
      return *bad;
    note_clock(race);
    if (!race.spills.empty()) return {"spills", race.spills, race.statistics};
    if (best && !race.best.empty()) best->ms = median(race.best);
    if (best && !wins(race)) return {"lost", "", race.statistics};
    Verdict verdict;
    if (auto bad = guarded(problem, &candidate, [&](Worker& worker) { verdict = worker.check(candidate, limit); })) return *bad;
    if (!verdict.passed) return {"wrong", verdict.summary, race.statistics};
    best = {candidate, median(race.candidate), race.statistics};
    return {"won", "", race.statistics};
  }

  bool tune(const TuneProblem& problem) {
    const std::string name = to_string(problem);
    progress_->show(done_, name);
    lost_ahead_.clear();
    control_ = {};
    // What the model expects to take four times as long as the fastest is tried only where that is asked for.
    const double most = options_.search.exhaustive || !options_.kernels.empty() ? 1e9 : 4;
    Space found;
    if (const auto bad = guarded(problem, nullptr, [&](Worker& worker) { found = worker.space(problem, most); })) {
      start(seats_.front());
      progress_->clear();
      out_ << name << ": nothing found: " << (bad->struck() ? "the worker was lost before the first candidate: " : "") << bad->why
           << '\n';
      return false;
    }
    const Candidate planned = found.planned;
    std::vector<Candidate> space = found.candidates;
    std::erase_if(space, [&](const Candidate& candidate) { return !is_asked_for(candidate); });

    // First come the planner's own choice and, of each family, what the cost model expects to be the fastest.
    std::vector<Candidate> first{planned};
    std::set<std::string_view> families;
    for (const Candidate& candidate : space)
      if (families.insert(glgemm::name(candidate.kernel)).second) first.push_back(candidate);

    std::optional<Best> best;
    planned_statistics_ = "{}";
    std::int64_t measured = 0;
    std::map<std::string, std::int64_t> fates;
    const auto total = static_cast<std::int64_t>(space.size());
    const auto one = [&](const Candidate& candidate, std::span<const Candidate> coming) {
      progress_->show(
          done_ + static_cast<double>(measured) / static_cast<double>(std::max<std::int64_t>(1, total)) * 0.99,
          fmt::format(
              "{}: {} of {}{}", name, measured, total,
              best ? fmt::format(", best {} {} GFLOP/s", to_string(best->candidate), number(gflops(problem, best->ms))) : ""));
      ++measured;
      if (is_struck(problem, candidate)) {
        ++fates["struck off before"];
        return false;
      }
      compile_ahead(problem, candidate, coming, best);
      const Fate fate = attempt(problem, candidate, best);
      ++fates[fate.what];
      if (candidate == planned) planned_statistics_ = fate.statistics;
      if (fate.struck()) strike(name, problem, candidate, fate);
      if (fate.what == "refused") struck_.push_back({name, candidate, fate});
      return fate.what == "won";
    };
    search(space, first, options_.search, one);
    progress_->clear();
    if (!best) {
      out_ << name << ": nothing found: none of " << total << " candidates works\n";
      return false;
    }

    const Outcome outcome = settle(problem, planned, *best);
    out_ << fmt::format("{}: {} GFLOP/s with {} ({} of {} candidates{})", name, number(gflops(problem, outcome.best_ms)),
                        to_string(best->candidate), measured, total,
                        outcome.planned_ms == 0 ? ""
                                                : fmt::format("; the planner's {}: {}", to_string(planned),
                                                              number(gflops(problem, outcome.planned_ms))))
         << std::endl;
    std::vector<std::string> ignored;
    TuningTable table = existing_table(options_.output, ignored);  // another tuner may have written meanwhile
    table.add(entry_for(problem, *best, gflops(problem, outcome.best_ms)));
    write_file(options_.output, table.to_json());
    add_json(problem, planned, *best, outcome, total, measured, fates);
    return true;
  }

  struct Outcome {
    double best_ms = 0;
    double planned_ms = 0;  ///< 0 if the planner's choice could not run
  };

  /// Races the best candidate against the planner's choice once more, for longer. The planner's choice wins if it is faster now.
  Outcome settle(const TuneProblem& problem, const Candidate& planned, Best& best) {
    Outcome outcome{best.ms, 0};
    const bool same = planned == best.candidate;
    const Seconds limit(2 * options_.time_limit);
    Race race;
    const bool versus = !same && !is_struck(problem, planned);
    for (Seat& seat : seats_) await(seat);  // what nobody asks for any more
    if (!guarded(problem, &best.candidate,
                 [&](Worker& worker) { race = worker.race(best.candidate, versus ? &planned : nullptr, best.ms, true, limit); }))
      outcome.best_ms = median(race.candidate);
    note_clock(race);
    if (same) outcome.planned_ms = outcome.best_ms;
    if (versus && !race.best.empty()) outcome.planned_ms = median(race.best);
    if (versus && is_asked_for(planned) && outcome.planned_ms > 0 && outcome.planned_ms <= outcome.best_ms) {
      best = {planned, outcome.planned_ms, planned_statistics_};
      outcome.best_ms = outcome.planned_ms;
    }
    return outcome;
  }

  void note_clock(const Race& race) {
    for (const double rate : race.control) {
      control_.least = control_.most == 0 ? rate : std::min(control_.least, rate);
      control_.most = std::max(control_.most, rate);
    }
    control_.again += race.again;
  }

  static double gflops(const TuneProblem& problem, double ms) {
    return ms > 0 ? flops(problem.shape, one_type(problem.formats), problem.batch) / ms * 1e-6 : 0;
  }

  /// A program that hung, crashed or was wrong is not trusted with another shape or split.
  bool is_struck(const TuneProblem& problem, const Candidate& candidate) const {
    return out_of_it_.count({candidate.kernel, problem.formats}) > 0;
  }
  void strike(const std::string& name, const TuneProblem& problem, const Candidate& candidate, const Fate& fate) {
    out_of_it_.insert({candidate.kernel, problem.formats});
    struck_.push_back({name, candidate, fate});
  }

  void add_json(const TuneProblem& problem, const Candidate& planned, const Best& best, const Outcome& outcome,
                std::int64_t space, std::int64_t measured, const std::map<std::string, std::int64_t>& fates) {
    const Shape& shape = problem.shape;
    Json result{{"class", problem.shape_class},
                {"m", shape.m},
                {"n", shape.n},
                {"k", shape.k},
                {"batch", problem.batch},
                {"type", to_string(problem.formats)},
                {"op", std::string(shape.op_a == Op::none ? "N" : "T") + (shape.op_b == Op::none ? "N" : "T")},
                {"space", space},
                {"measured", measured},
                {"fates", fates},
                {"exhaustive", measured >= space},
                {"kernel", to_string(best.candidate.kernel)},
                {"split_k", best.candidate.split_k},
                {"ms", outcome.best_ms},
                {"gflops", gflops(problem, outcome.best_ms)},
                {"statistics", Json::parse(best.statistics)}};
    if (outcome.planned_ms > 0) {
      const double share = outcome.best_ms / outcome.planned_ms;
      ratios_.push_back({{"name", "auto over tuned, " + to_string(problem)},
                         {"value", share},
                         {"of", to_string(planned)},
                         {"over", to_string(best.candidate)}});
      log_sum_ += std::log(share);
      least_ = std::min(least_, share);
      result["planner"] = {{"kernel", to_string(planned.kernel)},
                           {"split_k", planned.split_k},
                           {"ms", outcome.planned_ms},
                           {"gflops", gflops(problem, outcome.planned_ms)}};
    }
    if (control_.most > 0)
      result["control"] = {{"least_gflops", control_.least}, {"most_gflops", control_.most}, {"again", control_.again}};
    results_.push_back(std::move(result));
  }

  std::string json() {
    Json struck = Json::array();
    for (const Struck& one : struck_)
      struck.push_back({{"problem", one.problem},
                        {"kernel", to_string(one.candidate.kernel)},
                        {"split_k", one.candidate.split_k},
                        {"fate", one.fate.what},
                        {"why", one.fate.why}});
    const Json all{
        {"device", device_json(device_)}, {"date", date_}, {"results", results_}, {"struck_off", struck}, {"ratios", ratios_}};
    return json_text(all);
  }

  const TuneOptions& options_;
  std::ostream& out_;
  const std::string date_ = today();
  DeviceInfo device_;
  std::vector<Seat> seats_{std::clamp(std::thread::hardware_concurrency(), 1U, 16U)};
  std::map<Candidate, Fate> lost_ahead_;  ///< those that took their worker away before their turn
  struct {
    double least = 0, most = 0;
    int again = 0;
  } control_;                       ///< of the problem's races, see Race
  std::string planned_statistics_;  ///< of the planner's choice, as Race::statistics
  Progress* progress_ = nullptr;
  double done_ = 0;
  std::vector<Struck> struck_;
  std::set<std::pair<Kernel, Formats>> out_of_it_;
  Json results_ = Json::array();
  Json ratios_ = Json::array();  ///< the planner's choice over the best one, for each problem
  double log_sum_ = 0;           ///< of the ratios
  double least_ = std::numeric_limits<double>::infinity();
};

}  // namespace

TuneResult run_tune(const TuneOptions& options, std::ostream& out) {
  return Tuner(options, out).run();
}

}  // namespace glgemm::tools
