// Measures products from host to host: on several accelerators, and under a memory limit.
#include "bench/bench.hpp"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <ostream>
#include <thread>
#include <tuple>
#include <vector>

#include <fmt/core.h>
#include <glgemm/accelerators.hpp>
#include <glgemm/fence.hpp>
#include <glgemm/headless.hpp>
#include <glgemm/streaming.hpp>
#include <glgemm/verify.hpp>
#include <nlohmann/json.hpp>

#include "bench/measure.hpp"
#include "bench/table.hpp"
#include "terminal/progress.hpp"

namespace glgemm::tools {
namespace {

using Json = nlohmann::ordered_json;

template <class F>
double seconds_of(const F& run) {
  const auto begin = Clock::now();
  run();
  return milliseconds_since(begin) / 1e3;
}

/// A thread's work as control: counting, which waits for nothing.
void spin(std::int64_t steps) {
  std::uint64_t x = static_cast<std::uint64_t>(steps);
  for (std::int64_t i = 0; i < steps; ++i) {
    x = x * 6364136223846793005u + 1442695040888963407u;
#if defined(__GNUC__)
    __asm__ volatile("" : "+r"(x));
#endif
  }
  volatile std::uint64_t sink = x;
  static_cast<void>(sink);
}

/// How long `count` threads take that each spin so many steps.
double seconds_of_threads(std::size_t count, std::int64_t steps) {
  return seconds_of([&] {
    std::vector<std::thread> threads;
    for (std::size_t i = 1; i < count; ++i) threads.emplace_back(spin, steps);
    spin(steps);
    for (std::thread& thread : threads) thread.join();
  });
}

StreamOptions stream_options(const ScalingOptions& options) {
  return {.device_memory_limit_bytes = options.device_memory_limit_bytes,
          .memory_limit_bytes = options.memory_limit_bytes,
          .plan = plan_options(options.bench.kernels.front())};
}

/// Enough rounds for medians, of runs that take about so long.
int rounds(const BenchOptions& options, double seconds) {
  return options.repeats.value_or(std::clamp(static_cast<int>(4 / std::max(1e-3, seconds)), 5, 25));
}

/// What was measured with a number of accelerators.
struct Scaled {
  std::unique_ptr<Accelerators> accelerators;
  std::vector<double> times{}, spin_times{};
  std::vector<double> transfers{}, computing{}, waiting{};  ///< shares of the accelerators' time
  double moved = 0;                                         ///< bytes, in the last run
  std::string failures{};
};

/// What was measured on one shape with each number of accelerators.
void add_scaled(const Shape& shape, const BenchOptions& bench, const std::vector<Scaled>& sets, Columns& columns,
                std::ostream& out, Json& json) {
  for (std::size_t i = 0; i < sets.size(); ++i) {
    const Scaled& set = sets[i];
    const auto n = static_cast<double>(i + 1);
    std::vector<double> speed_ups, threads_ups, shares;
    for (std::size_t r = 0; r < set.times.size(); ++r) {
      speed_ups.push_back(sets[0].times[r] / set.times[r]);
      threads_ups.push_back(n * sets[0].spin_times[r] / set.spin_times[r]);
    }
    for (const double speed_up : speed_ups) shares.push_back(speed_up / median(threads_ups));
    const double transfers = median(set.transfers), computing = median(set.computing), waiting = median(set.waiting);
    const double rest = std::max(0.0, 1 - transfers - computing - waiting);
    const auto text = [](double value, int digits) { return fmt::format("{:.{}f}", value, digits); };
    const auto share = [&](double value) { return text(100 * value, 1) + " %"; };
    columns.row({i == 0 ? to_string(shape) : "", std::to_string(i + 1), text(median(set.times), 4), text(median(speed_ups), 2),
                 text(median(threads_ups), 2), text(median(shares), 2), text(median(speed_ups) / n, 2),
                 text(set.moved / 1048576, 1), share(transfers), share(computing), share(waiting), share(rest)});
    if (!set.failures.empty()) say(out, "  given up: " + set.failures);
    Json result = shape_json(shape, bench);
    result.update({{"accelerators", i + 1},
                   {"seconds", median(set.times)},
                   {"runs", set.times.size()},
                   {"speed_up", median(speed_ups)},
                   {"efficiency", median(speed_ups) / n},
                   {"threads_speed_up", median(threads_ups)},
                   {"bytes_moved", set.moved},
                   {"transfers", transfers},
                   {"computing", computing},
                   {"waiting", waiting},
                   {"rest", rest},
                   {"failures", set.failures}});
    json["results"].push_back(std::move(result));
    if (i == 0) continue;
    const std::string of = fmt::format("{} accelerators", i + 1), control = fmt::format("{} threads", i + 1);
    const std::string place = ", " + product_text(shape, bench);
    add_ratio(json, ratio_of(of + " over 1" + place, of, "1 accelerator", speed_ups));
    add_ratio(json, ratio_of(control + " over 1" + place, control, "1 thread", threads_ups));
    add_ratio(json, ratio_of(of + " over 1 as a share of " + control + " over 1" + place, of, control, shares));
  }
}

}  // namespace

BenchResult run_scaling(const ScalingOptions& options, std::ostream& out) {
  const BenchOptions& bench = options.bench;
  const std::vector<AcceleratorSource> sources = headless_accelerators(options.accelerators);
  std::vector<Scaled> sets;
  for (std::size_t count = 1; count <= sources.size(); ++count)
    sets.push_back({.accelerators = std::make_unique<Accelerators>(
                        std::vector<AcceleratorSource>(sources.begin(), sources.begin() + static_cast<std::ptrdiff_t>(count)))});
  const std::vector<AcceleratorInfo> info = sets.back().accelerators->info();
  Json json{{"accelerators", Json::array()}, {"results", Json::array()}, {"ratios", Json::array()}};
  bool software = false;
  for (const AcceleratorInfo& one : info) {
    out << one.name << (one.failure.empty() ? "; OpenGL " + one.device.version : ": CANNOT BE USED: " + one.failure) << '\n';
    software = software || one.device.software;
    json["accelerators"].push_back({{"name", one.name},
                                    {"renderer", one.device.renderer},
                                    {"version", one.device.version},
                                    {"software", one.device.software},
                                    {"failure", one.failure}});
  }
  const char* threads = std::getenv("LP_NUM_THREADS");
  json["threads_for_each"] = software && threads ? threads : "";
  if (software) out << "LP_NUM_THREADS is " << (threads ? threads : "not set") << ": what each driver on the CPU has of it.\n";
  say(out,
      "Seconds from host to host, medians; speed-up over one accelerator; threads: the speed-up of as many threads that only "
      "count; share: the one over the other; efficiency: speed-up for each accelerator. Where the accelerators' time went: "
      "moving elements, computing (and waiting for the device), waiting for others, and the rest.");
  std::size_t width = 4;
  for (const Shape& shape : bench.shapes) width = std::max(width, to_string(shape).size());
  Columns columns(out, {{"size", width},
                        {"acc.", 4},
                        {"seconds", 8},
                        {"speed-up", 8},
                        {"threads", 7},
                        {"share", 5},
                        {"efficiency", 10},
                        {"MiB moved", 9, 2},
                        {"transfers", 9, 1},
                        {"computing", 9, 1},
                        {"waiting", 7, 1},
                        {"rest", 6, 1}});
  columns.header();

  bool passed = true;
  for (const Shape& shape : bench.shapes) {
    Trial trial(shape, bench);
    StreamOptions stream = stream_options(options);
    const auto run = [&](Scaled& set, bool counts) {
      const HostGemm product = trial.host_product();
      AcceleratorsReport report;
      const double took = seconds_of([&] { set.accelerators->multiply(product, stream, &report); });
      set.failures.clear();
      double moving = 0, computing = 0, waiting = 0;
      for (const AcceleratorReport& one : report.accelerators) {
        if (!one.failure.empty()) set.failures += (set.failures.empty() ? "" : "; ") + one.name + ": " + one.failure;
        moving += std::chrono::duration<double>(one.stream.transfer_time).count();
        computing += std::chrono::duration<double>(one.stream.compute_time).count();
        waiting += std::chrono::duration<double>(one.waiting_time).count();
      }
      if (!counts) return took;
      const double all = took * static_cast<double>(report.accelerators.size());
      set.times.push_back(took);
      set.transfers.push_back(moving / all);
      set.computing.push_back(computing / all);
      set.waiting.push_back(waiting / all);
      set.moved = static_cast<double>(report.bytes_moved());
      return took;
    };

    // The first run compiles and measures rates. The second one's time decides how many rounds there are.
    Progress progress(1);
    double all = 0;
    for (Scaled& set : sets) {
      for (auto* list : {&set.times, &set.spin_times, &set.transfers, &set.computing, &set.waiting}) list->clear();
      progress.show(0, to_string(shape) + ", warming up");
      for (int i = 0; i < std::max(2, bench.warmup.value_or(2)); ++i) all += run(set, false) * (i == 1 ? 1 : 0);
      const Check check = trial.check_host(bench.check == CheckMethod::full);
      if (!check.passed) out << "WRONG  size " << to_string(shape) << ": " << check.summary << '\n';
      passed = passed && check.passed;
    }
    // The control takes about as long as the product.
    constexpr std::int64_t probe = 5'000'000;
    spin(probe);
    const double spinning = std::clamp(all / static_cast<double>(sets.size()), 0.02, 0.5);
    const auto steps = static_cast<std::int64_t>(spinning * static_cast<double>(probe) / seconds_of([] { spin(probe); }));
    const int count = rounds(bench, 2 * all);
    for (int round = 0; round < count; ++round) {
      progress.show(static_cast<double>(round) / count, to_string(shape));
      for (std::size_t i = 0; i < sets.size(); ++i) {
        // Forwards and backwards, so that what grows or shrinks with time is fair to all.
        Scaled& set = sets[round % 2 == 0 ? i : sets.size() - 1 - i];
        const std::size_t threads_of_set = static_cast<std::size_t>(&set - sets.data()) + 1;
        set.spin_times.push_back(seconds_of_threads(threads_of_set, steps));
        run(set, true);
      }
    }
    progress.clear();

    add_scaled(shape, bench, sets, columns, out, json);
  }
  return bench_result(passed, json);
}

BenchResult run_streamed(const ScalingOptions& options, Engine& engine, std::ostream& out) {
  const BenchOptions& bench = options.bench;
  Json json = bench_json(engine.device(), {}, nullptr);
  say(out, engine.device().renderer + "; " + api_and_version(engine.device()));
  say(out,
      "Seconds, medians: streamed under the limit, and streamed without one, both from host to host; resident, on matrices "
      "that are on the device; transfers, as many bytes moved without a product. Ratios: the resident product's time, that "
      "without a limit, and the longer one of resident and transfers over the streamed one's; and bytes moved over the least "
      "that any order of pieces moves.");
  Columns columns(out, {{"size", 8},
                        {"limit MiB", 9, 4},
                        {"piece x k", 16, 5},
                        {"streamed", 8},
                        {"no limit", 8, 3},
                        {"resident", 8, 3},
                        {"transfers", 9, 3},
                        {"over resident", 13},
                        {"over no limit", 13},
                        {"over slower", 11},
                        {"moved MiB", 9, 6},
                        {"over bound", 10}});
  columns.header();
  bool passed = true;
  for (const Shape& shape : bench.shapes) {
    Trial trial(shape, bench);
    const StreamOptions limited = stream_options(options);
    StreamOptions unlimited = limited;
    unlimited.device_memory_limit_bytes = unlimited.memory_limit_bytes = 0;
    StreamReport report;
    const auto run = [&](const StreamOptions& stream, StreamReport& run_report) {
      const HostGemm product = trial.host_product();
      return seconds_of([&] { multiply(engine, product, stream, &run_report); });
    };
    const auto resident = [&, enqueue = trial.on_device(engine, limited.plan)] {
      enqueue(nullptr);
      engine.fence().wait();
    };
    StreamReport other;
    Progress progress(1);
    progress.show(0, to_string(shape) + ", warming up");
    for (int i = 0; i < std::max(1, bench.warmup.value_or(1)); ++i) {
      resident();
      run(unlimited, other);
      run(limited, report);
    }
    const Check check = trial.check_host(bench.check == CheckMethod::full);
    if (!check.passed) out << "WRONG  size " << to_string(shape) << ": " << check.summary << '\n';
    passed = passed && check.passed;
    std::vector<double> streamed, without, on_device, transfers, over_resident, over_unlimited, over_slower;
    for (int round = 0, count = rounds(bench, 4 * std::chrono::duration<double>(report.total_time).count()); round < count;
         ++round) {
      progress.show(static_cast<double>(round) / count, to_string(shape));
      on_device.push_back(seconds_of(resident));
      streamed.push_back(run(limited, report));
      without.push_back(run(unlimited, other));
      transfers.push_back(trial.transfer_seconds(engine, report));
      over_resident.push_back(on_device.back() / streamed.back());
      over_unlimited.push_back(without.back() / streamed.back());
      over_slower.push_back(std::max(on_device.back(), transfers.back()) / streamed.back());
    }
    progress.clear();
    const auto moved = static_cast<double>(report.bytes_to_device + report.bytes_from_device);
    const double over_bound = moved / std::max(1.0, report.bound_bytes);
    const std::string piece = fmt::format("{}x{} x {}", report.piece_m, report.piece_n, report.piece_k);
    const std::int64_t limit = options.device_memory_limit_bytes > 0 ? options.device_memory_limit_bytes : options.memory_limit_bytes;
    const auto text = [](double value, int digits) { return fmt::format("{:.{}f}", value, digits); };
    columns.row({to_string(shape), text(static_cast<double>(limit) / 1048576, 2), piece, text(median(streamed), 4),
                 text(median(without), 4), text(median(on_device), 4), text(median(transfers), 4), text(median(over_resident), 3),
                 text(median(over_unlimited), 3), text(median(over_slower), 3), text(moved / 1048576, 1), text(over_bound, 3)});
    Json result = shape_json(shape, bench);
    result.update({{"device_memory_limit_bytes", options.device_memory_limit_bytes},
                   {"memory_limit_bytes", options.memory_limit_bytes},
                   {"piece", {report.piece_m, report.piece_n, report.piece_k}},
                   {"kernel", report.kernel},
                   {"device_bytes", report.device_bytes},
                   {"host_bytes", report.host_bytes},
                   {"bytes_moved", moved},
                   {"bound_bytes", report.bound_bytes},
                   {"streamed_seconds", median(streamed)},
                   {"unlimited_seconds", median(without)},
                   {"resident_seconds", median(on_device)},
                   {"transfers_alone_seconds", median(transfers)},
                   {"transfer_seconds", std::chrono::duration<double>(report.transfer_time).count()},
                   {"compute_seconds", std::chrono::duration<double>(report.compute_time).count()},
                   {"runs", streamed.size()}});
    json["results"].push_back(std::move(result));
    for (const auto& [of, over, values] :
         {std::tuple("streamed", "resident", over_resident), std::tuple("streamed", "no limit", over_unlimited),
          std::tuple("streamed", "the slower of its transfers and the product alone", over_slower)})
      add_ratio(json, ratio_of(fmt::format("{} over {}, {}", of, over, product_text(shape, bench)), of, over, values));
    add_ratio(json, ratio_of("bytes moved over the bound, " + product_text(shape, bench), "bytes moved", "bound", {over_bound}));
  }
  return bench_result(passed, json);
}

}  // namespace glgemm::tools
