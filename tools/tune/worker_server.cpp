// The process in which `glgemm tune` runs its candidates: the worker's side of the channel.
#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <thread>
#include <utility>

#include <fmt/core.h>
#include <glgemm/error.hpp>
#include <glgemm/experimental.hpp>
#include <glgemm/headless.hpp>
#include <glgemm/inspect.hpp>
#include <glgemm/verify.hpp>

#include "arguments/options.hpp"
#include "bench/roofline.hpp"
#include "bench/samples.hpp"
#include "inspect/programs.hpp"
#include "product/product.hpp"
#include "system/processes.hpp"
#include "tune/messages.hpp"

namespace glgemm::tools {
namespace {

using Message = nlohmann::json;

/// What tests have go wrong: what shall happen, and to which kernel.
using Injected = std::set<std::pair<std::string, std::string>>;
Injected injected() {
  Injected result;
  const char* const variable = std::getenv("GLGEMM_TUNE_INJECT");
  std::string_view rest = variable ? variable : "";
  while (!rest.empty()) {
    const std::string_view item = rest.substr(0, rest.find(';'));
    rest.remove_prefix(std::min(rest.size(), item.size() + 1));
    if (const std::size_t equals = item.find('='); equals != std::string_view::npos)
      result.emplace(item.substr(0, equals), item.substr(equals + 1));
  }
  return result;
}

PlanOptions options_for(const Candidate& candidate) {
  return {.kernel = candidate.kernel, .split_k = candidate.split_k, .experimental = ExperimentalPlanOptions{.untuned = true}};
}

/// The numbers of parts of k worth a try, besides the planner's own: powers of two, while there are few workgroups and long
/// parts. Just 0 where the kernel does not split. With the seconds that the cost model expects.
std::map<std::int64_t, double> splits(const Problem& problem, const Kernel& kernel, const Limits& limits) {
  std::map<std::int64_t, double> result;
  const auto add = [&](std::int64_t split, std::int64_t least = 1) {
    ExperimentalPlanOptions model{.runs = 1e9};  // so that compiling does not count
    model.untuned = true;
    Explanation why;
    const std::int64_t parts =
        make_plan(problem, limits, {.kernel = kernel, .split_k = split, .experimental = model}, &why).parts;
    if (parts >= least) result.emplace(parts, why.expected_seconds);
    return parts;
  };
  constexpr std::int64_t shortest = 128, most = 256;
  const std::int64_t enough_groups = limits.cpu ? 64 : 4096;
  const Block block = block_of(kernel);
  const std::int64_t groups = ((problem.m + block.rows - 1) / block.rows) * ((problem.n + block.columns - 1) / block.columns);
  const std::int64_t planned = add(0);
  for (std::int64_t split = 2; split <= most && split * shortest <= problem.k && groups <= enough_groups / split / problem.batch;
       split *= 2)
    add(split, 2);
  if (planned == 1 && result.size() == 1) return {{0, result.at(1)}};
  add(1);
  return result;
}

}  // namespace

std::vector<std::pair<double, Candidate>> expected_candidates(const Problem& problem, const Limits& limits, double most) {
  std::vector<std::pair<double, Candidate>> expected;
  for (const Kernel& kernel : kernel_space(problem, limits))
    for (const auto& [split, seconds] : splits(problem, kernel, limits)) expected.push_back({seconds, {kernel, split}});
  std::stable_sort(expected.begin(), expected.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
  const auto slow = [&](const auto& each) { return each.first > most * expected.front().first; };
  expected.erase(std::find_if(expected.begin(), expected.end(), slow), expected.end());
  return expected;
}

namespace {

Space space_of(const Problem& problem, const Engine& engine, double most) {
  const Plan plan = make_plan(engine, problem);
  Space space{{}, {plan.kernel, plan.parts}};
  for (const auto& [seconds, candidate] : expected_candidates(problem, limits_of(engine), most))
    space.candidates.push_back(candidate);
  const auto& all = space.candidates;
  if (std::find(all.begin(), all.end(), space.planned) == all.end() && plan.parts == 1) space.planned.split_k = 0;
  if (std::find(all.begin(), all.end(), space.planned) == all.end()) space.candidates.push_back(space.planned);
  return space;
}

/// Odd sizes near those of a shape, for a check at the edges; small ones stay, since kernels depend on them.
Shape odd_shape(const Shape& shape) {
  const auto odd = [](std::int64_t size, std::int64_t most) { return size <= 4 ? size : std::min(size - 1, most) | 1; };
  const std::int64_t m = odd(shape.m, 1021), n = odd(shape.n, 1021);
  return {m, n, odd(shape.k, std::max<std::int64_t>(1021, (std::int64_t{1} << 26) / m / n)), shape.op_a, shape.op_b};
}

/// A loaded problem.
class Bout {
 public:
  Bout(Engine& engine, const std::function<double()>& control, const TuneProblem& problem, std::uint64_t seed)
      : engine_(engine),
        control_(control),
        product_(random_product(problem.shape, problem.formats, problem.batch, seed)),
        a_(engine, product_.stored_a, product_.a),
        b_(engine, product_.stored_b, product_.b),
        c_(engine, problem.batch * problem.shape.m, problem.shape.n, product_.c_type),
        problem_(problem),
        seed_(seed) {}

  /// What its programs' driver says of them, as of a race that is still to come; compiles them.
  Race compile(const Candidate& candidate) {
    const PlanOptions options = options_for(candidate);
    const Problem problem = problem_of(problem_);
    Race result;
    for (const ProgramReport& report : glgemm::compile(engine_, make_plan(engine_, problem, options))) {
      if (report.stage == Stage::multiply) result.statistics = json_of(report.statistics).dump();
      if (spills(report.statistics) == Spills::some)
        result.spills = to_string(report.program) + ": " + to_string(report.statistics);
    }
    if (result.spills.empty()) prepare(engine_, std::span(&problem, 1), options);
    return result;
  }

  Race race(const Candidate& candidate, const Candidate* best, double best_ms, bool thorough) {
    Race result = compile(candidate);
    if (!result.spills.empty()) return result;
    if (best) compile(*best);
    const PlanOptions options = options_for(candidate), best_options = best ? options_for(*best) : options;
    const auto run_once = [&] {
      Times times;
      run(best_options, times);
      return times.gpu.back() > 0 ? times.gpu.back() : times.host.back();
    };
    const auto measure = [&] { race(options, best ? &best_options : nullptr, best_ms, thorough, result); };
    if (control_)
      result.again = at_steady_clock(control_, run_once, measure, result.control);
    else
      measure();
    return result;
  }

  Verdict check(const Candidate& candidate) {
    const PlanOptions options = options_for(candidate);
    const auto verdict = [](const std::string& opening, const Check& check) {
      return Verdict{check.passed, opening + check.summary};
    };
    try {
      const HostProduct exact = exact_product(odd_shape(problem_.shape), problem_.formats, problem_.batch, seed_);
      Report report;
      const Check found = tools::check(exact, tools::run(engine_, exact, options, report), false);
      if (!found.passed) return verdict(fmt::format("{}x{}x{}: ", exact.m(), exact.n(), exact.k()), found);
    } catch (const Unsupported&) {
      // The kernel is for the problem's own sizes alone.
    }
    upload(engine_, poisoned(c_.type(), c_.rows(), c_.columns()), c_);
    engine_.gemm(product_.gemm(a_.view(), b_.view(), c_.view()), options);
    return verdict("", tools::check(product_, download(engine_, c_), false));
  }

 private:
  struct Times {
    std::vector<double> gpu, host;
  };

  /// A candidate far slower than the best one is not worth the time that knowing how slow would take: twice as slow is more than
  /// noise, thrice for a first run with cold caches, and a quarter if all runs of the one are that much slower than all of the
  /// other.
  void race(const PlanOptions& options, const PlanOptions* best, double best_ms, bool thorough, Race& result) {
    Times ours, theirs;
    constexpr double slack_ms = 0.5;  // of short runs, where the host's noise is large
    const auto slow = [&](double factor) { return best && ours.host.back() > factor * best_ms + slack_ms; };
    const auto begin = Clock::now();
    result.best.clear();
    for (const double factor : {3.0, 2.0}) {
      ours = {};
      run(options, ours);
      result.candidate = ours.host;
      if (slow(factor)) return;
    }
    if (best) run(*best, theirs);
    const int least = thorough ? 5 : 3, most = thorough ? 61 : 31;
    const double budget_ms = thorough ? 800 : 250;
    for (int round = 1; round < least || (round < most && milliseconds_since(begin) < budget_ms); ++round) {
      run(options, ours);
      if (best) run(*best, theirs);
      if (best && !thorough && quantile(ours.host, 0) > 1.25 * quantile(theirs.host, 1) + slack_ms) break;
    }
    // One clock for both.
    const bool gpu = plausible(ours) && (!best || plausible(theirs));
    result.candidate = gpu ? ours.gpu : ours.host;
    result.best = gpu ? theirs.gpu : theirs.host;
  }

  void run(const PlanOptions& options, Times& times) {
    Report report;
    const auto begin = Clock::now();
    engine_.gemm(product_.gemm(a_.view(), b_.view(), c_.view()), options, &report);
    times.host.push_back(milliseconds_since(begin));
    times.gpu.push_back(Milliseconds(report.kernel_time).count());
  }

  static bool plausible(const Times& times) {
    return median(times.gpu) > 0 && clocks_agree(median(times.gpu), median(times.host));
  }

  Engine& engine_;
  const std::function<double()>& control_;  ///< of the clock, as at_steady_clock() wants it; none where a CPU computes
  HostProduct product_;
  DeviceFactor a_, b_;
  DeviceMatrix c_;
  TuneProblem problem_;
  std::uint64_t seed_;
};

class Server {
 public:
  Server(Engine& engine, Injected injected) : engine_(engine), injected_(std::move(injected)) {
    const bool moves = std::any_of(injected_.begin(), injected_.end(), [](const auto& each) { return each.first == "clock"; });
    if (!engine.device().software || moves) clock_.emplace(HeadlessContext::get_proc_address);
    if (clock_) control_ = [this] { return clock_->rate() * std::exchange(injected_factor_, 1.0); };
  }

  Message answer(const Message& request) {
    const std::string verb = request.at("do").get<std::string>();
    if (verb == "device") return engine_.device();
    if (verb == "space") return space_of(problem_of(request.at("problem").get<TuneProblem>()), engine_, request.at("most"));
    if (verb == "load") {
      bout_.emplace(engine_, control_, request.at("problem").get<TuneProblem>(), request.at("seed").get<std::uint64_t>());
      return Message::object();
    }
    if (!bout_) throw std::runtime_error("no problem is loaded");
    const auto candidate = request.at("candidate").get<Candidate>();
    const std::string kernel = to_string(candidate.kernel);
    if (verb == "check") return bout_->check(candidate);
    if (injected_.count({"spill", kernel})) return Race{.statistics = R"({"spills":3})", .spills = kernel + ": spills 3"};
    if (injected_.count({"crash", kernel})) crash();
    if (verb == "compile") return bout_->compile(candidate);
    if (injected_.count({"hang", kernel}))
      for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
    if (injected_.erase({"clock", kernel}) > 0) injected_factor_ = 0.5;
    const auto best = request.contains("best") ? std::optional(request.at("best").get<Candidate>()) : std::nullopt;
    return bout_->race(candidate, best ? &*best : nullptr, request.at("best_ms"), request.at("thorough"));
  }

 private:
  Engine& engine_;
  Injected injected_;
  double injected_factor_ = 1;
  std::optional<ClockControl> clock_;
  std::function<double()> control_;
  std::optional<Bout> bout_;
};

}  // namespace

void serve_tuner(const std::string& device, const std::string& vendor) {
  Parent tuner;
  const auto send = [&tuner](const Message& json) {
    if (!tuner.send(line_of(json))) std::_Exit(0);
  };
  std::signal(SIGINT, SIG_IGN);  // from the terminal it reaches both; the tuner decides
  const Injected defects = injected();
  ask_drivers_to_tell();
  try {
    const HeadlessContext context({.device = device});
    EngineOptions options = with_vendor({}, vendor);
    options.program_cache = "";  // hundreds of programs that nobody wants again
    options.tuning = "";
    options.experimental.edit().self_check = false;  // check() sees more, and says what
    options.experimental.edit().rewrite_source = [&](const ProgramKey& key, std::string source) {
      constexpr std::string_view store = "void store_c(int index, ACC value) {";
      if (defects.count({"wrong", to_string(key.kernel)}))
        source.insert(source.find(store) + store.size(), " if (index == 1) value += ACC(1);");
      return source;
    };
    Engine engine(HeadlessContext::get_proc_address, options);
    {
      Server server(engine, defects);
      while (const auto line = tuner.receive()) {
        Message answer;
        try {
          answer = server.answer(Message::parse(*line));
        } catch (const DeviceLost&) {
          std::_Exit(1);  // nothing works here any more, and this candidate is to blame
        } catch (const std::exception& error) {
          answer = {{"error", error.what()}};
        }
        send(answer);
      }
    }
    engine.release();
  } catch (const std::exception& error) {
    send({{"error", error.what()}});
  }
}

}  // namespace glgemm::tools
