// Measures calls and first products.
#include "bench/bench.hpp"

#include <algorithm>
#include <functional>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <vector>

#include <fmt/core.h>
#include <glgemm/fence.hpp>
#include <glgemm/headless.hpp>
#include <glgemm/inspect.hpp>
#include <glgemm/scope.hpp>
#include <glgemm/verify.hpp>
#include <nlohmann/json.hpp>

#include "bench/measure.hpp"
#include "bench/table.hpp"
#include "processes/child.hpp"
#include "terminal/progress.hpp"

namespace glgemm::tools {
namespace {

using Json = nlohmann::ordered_json;

/// On a clock that all processes share.
double milliseconds_now() {
  return Milliseconds(Clock::now().time_since_epoch()).count();
}

/// Microseconds for each call, one figure for each batch.
struct Calls {
  int calls = 0;  ///< in a batch
  std::vector<double> cpu, process_cpu, wall;
  std::vector<double> done;  ///< from the first call until the device has done all of them
};

Calls measure_calls(Engine& engine, const std::function<void(Report*)>& enqueue, const BenchOptions& options) {
  const auto wait = [&] { engine.fence().wait(); };
  // The first ones plan, compile, and learn how fast the program is.
  for (int i = 0; i < std::max(3, options.warmup.value_or(3)); ++i) enqueue(nullptr);
  wait();
  double call_ms = 1e9, done_ms = 1e9;
  for (int i = 0; i < 3; ++i) {
    const auto first = Clock::now();
    enqueue(nullptr);
    call_ms = std::min(call_ms, std::max(1e-4, milliseconds_since(first)));
    wait();
    done_ms = std::min(done_ms, std::max(1e-4, milliseconds_since(first)));
  }
  // So many that clocks and caches do not matter, and so few that no driver waits for room in its queue.
  Calls result{static_cast<int>(std::clamp(std::min(20 / call_ms, 200 / done_ms), 1.0, 200.0)), {}, {}, {}, {}};
  const auto begin = Clock::now();
  const int most = options.repeats.value_or(50), least = options.repeats.value_or(5);
  for (int batch = 0; batch < most && (batch < least || milliseconds_since(begin) < 500); ++batch) {
    const double process = process_cpu_milliseconds(), thread = thread_cpu_milliseconds();
    const auto start = Clock::now();
    for (int i = 0; i < result.calls; ++i) enqueue(nullptr);
    const double wall = milliseconds_since(start);
    const auto each = [&](double ms) { return 1000 * ms / result.calls; };
    result.wall.push_back(each(wall));
    result.cpu.push_back(each(thread_cpu_milliseconds() - thread));
    result.process_cpu.push_back(each(process_cpu_milliseconds() - process));
    wait();
    result.done.push_back(each(milliseconds_since(start)));
  }
  return result;
}

}  // namespace

BenchResult run_enqueue(const BenchOptions& options, Engine& engine, std::ostream& out) {
  Json json = bench_json(engine.device(), {}, nullptr);
  say(out, engine.device().renderer + "; " + api_and_version(engine.device()));
  say(out,
      "Microseconds of each call of gemm() on the same matrices, without the wait for the device: the thread's CPU time and, in "
      "brackets, its quartiles; that of all of the process' threads, the driver's among them; and the host's clock. The rate "
      "is that of so many calls, one after another, and one wait at the end: the median and, in brackets, the best.");
  Columns columns(out, {{"size", 16},
                        {"dispatches", 10, 3},
                        {"scope", 6},
                        {"calls", 5, 4},
                        {"us of CPU", 24, 0, true},
                        {"of all threads", 14, 2},
                        {"on the clock", 12, 1},
                        {"GFLOP/s", 16},
                        {"kernel", 30, 5, true}});
  columns.header();
  Progress progress(static_cast<double>(options.shapes.size()));
  for (const Shape& shape : options.shapes) {
    progress.show(static_cast<double>(&shape - options.shapes.data()), to_string(shape));
    Trial trial(shape, options);
    const auto enqueue = trial.on_device(engine, plan_options(options.kernels.front()));
    Report report;
    enqueue(&report);
    for (const bool in_scope : {true, false}) {
      std::optional<Scope> scope;
      if (in_scope) scope.emplace(engine.scope());
      progress.show(static_cast<double>(&shape - options.shapes.data()) + (in_scope ? 0.1 : 0.5), to_string(shape));
      const Calls x = measure_calls(engine, enqueue, options);
      const std::string cpu =
          fmt::format("{} ({} to {})", digits(median(x.cpu)), digits(quantile(x.cpu, 0.25)), digits(quantile(x.cpu, 0.75)));
      progress.clear();
      const double work = flops(shape, options.type());
      const double rate = gflops(work, median(x.done) / 1e3), best_rate = gflops(work, quantile(x.done, 0) / 1e3);
      columns.row({to_string(shape), std::to_string(report.dispatches), in_scope ? "in one" : "none", std::to_string(x.calls),
                   cpu, digits(median(x.process_cpu)), digits(median(x.wall)),
                   fmt::format("{} ({})", digits(rate), digits(best_rate)), report.kernel});
      Json result = shape_json(shape, options);
      result.update({{"requested", options.kernels.front().text},
                     {"kernel", std::string(name(parse_kernel(report.kernel)))},
                     {"whole_kernel", report.kernel},
                     {"dispatches", report.dispatches},
                     {"scope", in_scope},
                     {"calls", x.calls},
                     {"batches", x.cpu.size()},
                     {"cpu_us", median(x.cpu)},
                     {"cpu_us_low", quantile(x.cpu, 0.25)},
                     {"cpu_us_high", quantile(x.cpu, 0.75)},
                     {"process_cpu_us", median(x.process_cpu)},
                     {"wall_us", median(x.wall)},
                     {"done_us", median(x.done)},
                     {"gflops", rate},
                     {"best_gflops", best_rate}});
      json["results"].push_back(std::move(result));
    }
  }
  return bench_result(true, json);
}

BenchResult run_first_child(const BenchOptions& options, const std::string& device) {
  const Shape& shape = options.shapes.front();
  Trial trial(shape, options);
  int compiled = 0, loaded = 0;
  EngineOptions engine_options;
  engine_options.log = [&](std::string_view line) {
    compiled += line.starts_with("compiled ");
    loaded += line.starts_with("loaded ");
  };
  const auto started = Clock::now();
  const HeadlessContext context({.device = device});
  const double context_ms = milliseconds_since(started);
  const auto begin = Clock::now();
  Engine engine(HeadlessContext::get_proc_address, engine_options);
  const PlanOptions plan = plan_options(options.kernels.front());
  const Report report = trial.run(engine, plan);
  const double first_ms = milliseconds_since(begin);
  const double first_ended = milliseconds_now();
  const Check check = trial.check_host(options.check == CheckMethod::full);
  const auto again = Clock::now();
  trial.run(engine, plan);
  const double again_ms = milliseconds_since(again);
  Json json = bench_json(engine.device(), {}, nullptr);
  engine.release();
  json.update({{"kernel", std::string(name(parse_kernel(report.kernel)))},
               {"context_ms", context_ms},
               {"first_ms", first_ms},
               {"again_ms", again_ms},
               {"there_ms", first_ended},
               {"compiled", compiled},
               {"loaded", loaded},
               {"check", check.passed ? "" : check.summary}});
  std::cout << json.dump() << '\n';
  return {check.passed ? 0 : 1, ""};
}

BenchResult run_first(const BenchOptions& options, const std::string& device, std::ostream& out) {
  Columns columns(out, {{"size", 12},
                        {"cold", 9},
                        {"warm", 9},
                        {"warm/cold", 9},
                        {"both warm", 9},
                        {"start, cold", 11, 1},
                        {"start, warm", 11, 1},
                        {"warm/cold", 9, 1},
                        {"both warm", 9, 1},
                        {"second", 9},
                        {"kernel", 8, 0, true}});
  Json json;
  bool passed = true;
  for (const Shape& shape : options.shapes) {
    require_memory(shape, options.type(), 1);
    Words words{"glgemm", "bench", "--first-child"};
    words.insert(words.end(), {"--shape", fmt::format("{},{},{}", shape.m, shape.n, shape.k)});
    words.insert(words.end(), {"--op-a", std::string(to_string(shape.op_a)), "--op-b", std::string(to_string(shape.op_b))});
    words.insert(words.end(), {"--type", to_string(options.formats), "--kernel", options.kernels.front().text});
    if (!device.empty()) words.insert(words.end(), {"--device", device});
    struct Times {
      std::vector<double> first, from_start, again;
    } cold, warm, both;
    Json last;
    bool kept = true;
    Progress progress(1);
    const int rounds = options.repeats.value_or(3);
    for (int round = 0; round < rounds && kept; ++round) {
      const ScratchFolder scratch;
      const auto run = [&](Times& times, const char* which, const char* drivers) {
        progress.show(static_cast<double>(round) / rounds, to_string(shape) + ", " + which);
        const std::string folder = scratch.file(drivers);
        make_folders(folder);  // not every driver makes its own
        const double start = milliseconds_now();
        const ProgramResult ended = run_program(words,
                                                {{"GLGEMM_PROGRAM_CACHE", scratch.file("programs")},
                                                 {"MESA_SHADER_CACHE_DIR", folder},
                                                 {"MESA_GLSL_CACHE_DIR", folder},
                                                 {"__GL_SHADER_DISK_CACHE_PATH", folder}},
                                                600, scratch);
        last = Json::parse(ended.out, nullptr, false);
        if (!last.is_object()) throw std::runtime_error("a process that multiplies for the first time failed: " + why(ended));
        if (ended.status != 0) {
          out << "WRONG  size " << to_string(shape) << ": " << last.value("check", why(ended)) << '\n';
          passed = false;
        }
        times.first.push_back(last.at("first_ms"));
        times.from_start.push_back(last.at("there_ms").get<double>() - start);
        times.again.push_back(last.at("again_ms"));
      };
      run(cold, "cold", "drivers-cold");
      run(warm, "warm", "drivers-warm");
      kept = last.at("loaded") > 0;
      if (kept) run(both, "warm with the driver's cache", "drivers-cold");
    }
    progress.clear();
    if (json.is_null()) {
      for (const char* part : {"device", "results", "ratios"}) json[part] = last.at(part);
      say(out,
          last.at("device").at("renderer").get<std::string>() + "; OpenGL " + last.at("device").at("version").get<std::string>());
      say(out,
          "Milliseconds until the first product of a process, from host to host, is there, medians: with an empty program "
          "cache (cold), with one that another process has filled (warm), both beside an empty cache of the driver's own, and "
          "with both caches filled; the same from the process' start; and the second product.");
      columns.header();
    }
    Json result = shape_json(shape, options);
    result.update({{"requested", options.kernels.front().text},
                   {"kernel", last.at("kernel")},
                   {"binaries", kept},
                   {"runs", cold.first.size()},
                   {"cold_ms", median(cold.first)},
                   {"cold_from_start_ms", median(cold.from_start)},
                   {"second_ms", median(cold.again)}});
    const auto cell = [](const std::vector<double>& values) { return digits(median(values)); };
    const std::string second = cell(cold.again), kernel = last.at("kernel");
    if (!kept) {
      columns.row({to_string(shape), cell(cold.first), "-", "-", "-", cell(cold.from_start), "-", "-", "-", second, kernel});
      say(out, "  no ratio: the driver gives no binaries of programs to keep");
      json["results"].push_back(std::move(result));
      continue;
    }
    const auto shares = [](const std::vector<double>& of, const std::vector<double>& over) {
      std::vector<double> values;
      for (std::size_t i = 0; i < of.size(); ++i) values.push_back(of[i] / over[i]);
      return values;
    };
    const std::vector<double> first = shares(warm.first, cold.first), from_start = shares(warm.from_start, cold.from_start),
                              with_driver = shares(both.first, cold.first);
    result.update({{"warm_ms", median(warm.first)},
                   {"warm_from_start_ms", median(warm.from_start)},
                   {"both_warm_ms", median(both.first)},
                   {"both_warm_from_start_ms", median(both.from_start)},
                   {"loaded", last.at("loaded")}});
    columns.row({to_string(shape), cell(cold.first), cell(warm.first), cell(first), cell(both.first), cell(cold.from_start),
                 cell(warm.from_start), cell(from_start), cell(both.from_start), second, kernel});
    json["results"].push_back(std::move(result));
    for (const auto& [of, values] : {std::pair("first product, program cache warm", first),
                                     std::pair("first product from the process' start, program cache warm", from_start),
                                     std::pair("first product, program cache and driver's cache warm", with_driver)})
      add_ratio(json, ratio_of(fmt::format("{} over cold, {}", of, product_text(shape, options)), of, "cold", values));
  }
  return bench_result(passed, json);
}

}  // namespace glgemm::tools
