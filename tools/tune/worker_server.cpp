// The process in which `glgemm tune` runs its candidates: the worker's side of the channel.
#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <memory>
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
#include <nlohmann/json.hpp>

#include "arguments/json.hpp"
#include "bench/samples.hpp"
#include "files/npy.hpp"
#include "inspect/programs.hpp"
#include "product/product.hpp"
#include "system/processes.hpp"
#include "tune/worker.hpp"

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
  return {.kernel = parse_kernel(candidate.kernel),
          .split_k = candidate.split_k,
          .experimental = ExperimentalPlanOptions{.untuned = true}};
}

/// The numbers of parts of k worth a try, besides the planner's own: powers of two, while there are few workgroups and long
/// parts. Just 0 where the kernel does not split.
std::vector<std::int64_t> splits(const Problem& problem, const Kernel& kernel, const Limits& limits) {
  const auto parts = [&](std::int64_t split) {
    return make_plan(problem, limits,
                     {.kernel = kernel, .split_k = split, .experimental = ExperimentalPlanOptions{.untuned = true}})
        .parts;
  };
  constexpr std::int64_t shortest = 128, most = 256;
  const std::int64_t enough_groups = limits.cpu ? 64 : 4096;
  const Block block = block_of(kernel);
  const std::int64_t groups = ((problem.m + block.rows - 1) / block.rows) * ((problem.n + block.columns - 1) / block.columns);
  std::vector<std::int64_t> result{parts(0)};
  for (std::int64_t split = 2; split <= most && split * shortest <= problem.k && groups <= enough_groups / split / problem.batch;
       split *= 2)
    if (const std::int64_t got = parts(split); got > 1) result.push_back(got);
  if (result == std::vector<std::int64_t>{1}) return {0};
  result.push_back(1);
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

Space space_of(const Problem& problem, const Engine& engine) {
  const Limits& limits = engine.limits();
  Space space;
  const Plan plan = engine.plan(problem);
  space.planned = {to_string(plan.kernel), plan.parts};
  for (const Kernel& kernel : kernel_space(problem, limits))
    for (const std::int64_t split : splits(problem, kernel, limits)) space.candidates.push_back({to_string(kernel), split});
  const auto& all = space.candidates;
  if (std::find(all.begin(), all.end(), space.planned) == all.end() && plan.parts == 1) space.planned.split_k = 0;
  if (std::find(all.begin(), all.end(), space.planned) == all.end()) space.candidates.push_back(space.planned);
  return space;
}

/// A loaded problem.
class LoadedProblem {
 public:
  LoadedProblem() = default;
  LoadedProblem(const LoadedProblem&) = delete;
  LoadedProblem& operator=(const LoadedProblem&) = delete;
  virtual ~LoadedProblem() = default;
  virtual Race race(const Candidate& candidate, const Candidate* best, double best_ms, bool thorough) = 0;
  virtual Verdict check(const Candidate& candidate) = 0;
};

template <class T>
class TypedBout final : public LoadedProblem {
  using C = accumulator_t<T>;

 public:
  TypedBout(Engine& engine, const TuneProblem& problem, std::uint64_t seed)
      : engine_(engine),
        product_(stored(problem.formats, random_product<T>(problem.shape, problem.batch, seed))),
        a_(engine, product_.stored_a, product_.a),
        b_(engine, product_.stored_b, product_.b),
        c_(engine, problem.batch * problem.shape.m, problem.shape.n, type_of<C>()),
        problem_(problem),
        seed_(seed) {}

  /// A candidate far slower than the best one is not worth the time that knowing how slow would take: twice as slow is more than
  /// noise, thrice for a first run with cold caches.
  Race race(const Candidate& candidate, const Candidate* best, double best_ms, bool thorough) override {
    const PlanOptions options = options_for(candidate);
    const Problem problem = problem_of(problem_);
    Race result;
    for (const ProgramReport& report : engine_.compile(engine_.plan(problem, options))) {
      if (report.stage == Stage::multiply) result.statistics = json_of(report.statistics).dump();
      if (spills(report.statistics)) result.spills = to_string(report.program) + ": " + to_string(report.statistics);
    }
    if (!result.spills.empty()) return result;
    engine_.prepare(std::span(&problem, 1), options);
    Times ours, theirs;
    constexpr double slack_ms = 0.5;  // of short runs, where the host's noise is large
    run(options, ours);
    const auto slow = [&](double factor) { return best && ours.host.back() > factor * best_ms + slack_ms; };
    if (slow(3)) {
      result.candidate = {ours.host.back()};
      return result;
    }
    const PlanOptions best_options = best ? options_for(*best) : options;
    Times warm;
    const auto begin = Clock::now();
    for (int i = 0; i < 50 && milliseconds_since(begin) < 20; ++i) run(best ? best_options : options, warm);
    ours = {};
    run(options, ours);
    if (slow(2)) {
      result.candidate = {ours.host.back()};
      return result;
    }
    if (best) run(best_options, theirs);
    const int least = thorough ? 5 : 3, most = thorough ? 61 : 31;
    const double budget_ms = thorough ? 800 : 250;
    for (int round = 1; round < least || (round < most && milliseconds_since(begin) < budget_ms); ++round) {
      run(options, ours);
      if (best) run(best_options, theirs);
    }
    // One clock for both.
    const bool gpu = plausible(ours) && (!best || plausible(theirs));
    result.candidate = gpu ? ours.gpu : ours.host;
    result.best = gpu ? theirs.gpu : theirs.host;
    return result;
  }

  Verdict check(const Candidate& candidate) override {
    const PlanOptions options = options_for(candidate);
    const auto verdict = [](const std::string& opening, const Check& check) {
      return Verdict{check.passed, opening + check.summary};
    };
    try {
      const HostProduct<T> exact = exact_product();
      Report report;
      const Check found = tools::check(exact, tools::run(engine_, exact, options, report), false);
      if (!found.passed) return verdict(fmt::format("{}x{}x{}: ", exact.m(), exact.n(), exact.k()), found);
    } catch (const Unsupported&) {
      // The kernel is for the problem's own sizes alone.
    }
    c_.upload(poisoned<C>(c_.rows(), c_.columns()));
    engine_.gemm(product_.gemm(a_.view(), b_.view(), c_.view()), options);
    const Matrix<C> c = c_.template download<C>();
    return verdict("", tools::check(product_, c, false));
  }

 private:
  struct Times {
    std::vector<double> gpu, host;
  };

  void run(const PlanOptions& options, Times& times) {
    Report report;
    const auto begin = Clock::now();
    engine_.gemm(product_.gemm(a_.view(), b_.view(), c_.view()), options, &report);
    times.host.push_back(milliseconds_since(begin));
    times.gpu.push_back(Milliseconds(report.kernel_time).count());
  }

  static HostProduct<T> stored(const Formats& formats, HostProduct<T> product) {
    store_as(formats, product);
    return product;
  }

  static bool plausible(const Times& times) {
    return median(times.gpu) > 0 && clocks_agree(median(times.gpu), median(times.host));
  }

  /// An odd size near this one; small ones stay, since kernels depend on them.
  static std::int64_t odd(std::int64_t size, std::int64_t most) {
    if (size <= 4) return size;
    return std::min(size - 1, most) | 1;
  }

  HostProduct<T> exact_product() const {
    const Shape& shape = problem_.shape;
    const std::int64_t m = odd(shape.m, 1021), n = odd(shape.n, 1021);
    const std::int64_t k = odd(shape.k, std::max<std::int64_t>(1021, (std::int64_t{1} << 26) / m / n));
    // Every sum is an integer below 2^23, complex ones included.
    const double most = std::sqrt(static_cast<double>(1 << 22) / static_cast<double>(k + 1));
    const int largest = static_cast<int>(std::clamp(most, 1.0, 100.0));
    HostProduct<T> p = product_of<T>({m, n, k, shape.op_a, shape.op_b}, std::min<std::int64_t>(problem_.batch, 7), seed_,
                                     [&](std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
                                       return random_integer_matrix<T>(rows, columns, largest, seed);
                                     });
    p.beta = C(1);  // and C0 shows that C was written at all
    p.c0 = random_integer_matrix<C>(p.batch * m, n, 100, seed_ + 2);
    return stored(problem_.formats, std::move(p));
  }

  Engine& engine_;
  HostProduct<T> product_;
  DeviceFactor a_, b_;
  DeviceMatrix c_;
  TuneProblem problem_;
  std::uint64_t seed_;
};

class Server {
 public:
  Server(Engine& engine, Injected injected) : engine_(engine), injected_(std::move(injected)) {}

  Message answer(const Message& request) {
    const std::string verb = request.at("do").get<std::string>();
    if (verb == "load") return load(request);
    if (!bout_) throw std::runtime_error("no problem is loaded");
    const Candidate candidate = candidate_of(request.at("candidate"));
    if (verb == "check") {
      const Verdict verdict = bout_->check(candidate);
      return {{"passed", verdict.passed}, {"summary", verdict.summary}};
    }
    if (verb != "race") throw std::runtime_error("'" + verb + "' is not known");
    if (injected_.count({"spill", candidate.kernel}))
      return {{"candidate", Message::array()},
              {"best", Message::array()},
              {"statistics", {{"spills", 3}}},
              {"spills", candidate.kernel + ": spills 3"}};
    if (injected_.count({"hang", candidate.kernel}))
      for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
    if (injected_.count({"crash", candidate.kernel})) crash();
    const auto best = request.contains("best") ? std::optional(candidate_of(request.at("best"))) : std::nullopt;
    const Race race =
        bout_->race(candidate, best ? &*best : nullptr, request.at("best_ms").get<double>(), request.at("thorough").get<bool>());
    return {{"candidate", race.candidate},
            {"best", race.best},
            {"statistics", Message::parse(race.statistics)},
            {"spills", race.spills}};
  }

 private:
  Message load(const Message& request) {
    bout_.reset();
    TuneProblem problem;
    problem.shape = {request.at("m").get<std::int64_t>(), request.at("n").get<std::int64_t>(),
                     request.at("k").get<std::int64_t>(), static_cast<Op>(request.at("op_a").get<int>()),
                     static_cast<Op>(request.at("op_b").get<int>())};
    problem.formats = parse_formats(request.at("type").get<std::string>());
    problem.batch = request.at("batch").get<std::int64_t>();
    const auto seed = request.at("seed").get<std::uint64_t>();
    const Space space = space_of(problem_of(problem), engine_);
    bout_ = with_type(one_type(problem.formats), [&]<class T>(T) -> std::unique_ptr<LoadedProblem> {
      return std::make_unique<TypedBout<T>>(engine_, problem, seed);
    });
    Message candidates = Message::array();
    for (const Candidate& candidate : space.candidates) candidates.push_back(to_json(candidate));
    return {{"space", candidates}, {"planned", to_json(space.planned)}};
  }

  Engine& engine_;
  Injected injected_;
  std::unique_ptr<LoadedProblem> bout_;
};

}  // namespace

void serve_tuner(const std::string& device) {
  Parent tuner;
  const auto send = [&tuner](const Message& json) {
    if (!tuner.send(line_of(json))) std::_Exit(0);
  };
  std::signal(SIGINT, SIG_IGN);  // from the terminal it reaches both; the tuner decides
  const Injected defects = injected();
  ask_drivers_to_tell();
  try {
    const HeadlessContext context({.device = device});
    EngineOptions options;
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
      const DeviceInfo& info = engine.device();
      send({{"device", device_json(info)}, {"processor", info.processor}});
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
