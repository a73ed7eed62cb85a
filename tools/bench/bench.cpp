// Measures kernels beside the serial loop, other libraries and the device's limits.
#include "bench/bench.hpp"

#include <algorithm>
#include <functional>
#include <set>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <glgemm/headless.hpp>
#include <glgemm/job.hpp>
#include <nlohmann/json.hpp>

#include "arguments/options.hpp"
#include "bench/measure.hpp"
#include "bench/table.hpp"
#include "peers/peers.hpp"
#include "terminal/progress.hpp"

namespace glgemm::tools {

std::vector<RequestedKernel> parse_kernels(std::string_view text) {
  std::vector<RequestedKernel> kernels;
  for (const std::string& part : split_kernels(text)) {
    if (part == "auto")
      kernels.push_back({part, std::nullopt, false});
    else if (part == "all")
      for (const Kernel& kernel : kernel_table()) kernels.push_back({std::string(name(kernel)), kernel, true});
    else
      kernels.push_back({part, parse_kernel(part), false});
  }
  return kernels;
}

namespace {

/// One shape and the kernels that will run on it.
struct ShapeRun {
  Shape shape;
  std::vector<RequestedKernel> kernels;
};

/// @throws Unsupported  no kernel can run any of the shapes, and there is nothing else to measure
std::vector<ShapeRun> make_jobs(const BenchOptions& options, const Limits& limits, Table& table) {
  std::vector<ShapeRun> jobs;
  std::string left_out;
  for (const Shape& shape : options.shapes) {
    const Problem problem = problem_of(shape, options.formats, options.batch);
    require_memory(shape, options.type(), options.batch);
    ShapeRun job{shape, {}};
    for (const RequestedKernel& requested : options.kernels) {
      std::string reason = requested.if_possible ? why_not(problem, *requested.kernel, limits) : "";
      try {
        if (reason.empty()) make_plan(problem, limits, plan_options(requested));  // throws what would stop it later
      } catch (const Unsupported& error) {
        if (!requested.if_possible) throw;
        reason = error.what();
      }
      if (reason.empty()) {
        job.kernels.push_back(requested);
      } else {
        left_out = fmt::format("size {}: {} is left out: {}", to_string(shape), requested.text, reason);
        table.note(left_out);
      }
    }
    jobs.push_back(std::move(job));
  }
  const bool has_some = std::any_of(jobs.begin(), jobs.end(), [](const ShapeRun& job) { return !job.kernels.empty(); });
  if (!has_some && !left_out.empty() && options.peers.empty()) throw Unsupported("no kernel can run this: " + left_out);
  return jobs;
}

/// @throws Unsupported  a peer cannot do a shape
std::vector<PeerClient> start_peers(const BenchOptions& options) {
  std::vector<PeerClient> peers;
  for (const std::string& name : options.peers) {
    PeerClient& peer = peers.emplace_back(name, options.opencl_device);
    for (const Shape& shape : options.shapes) {
      const std::string reason = peer.why_not(peer_problem(shape, options));
      if (!reason.empty()) throw Unsupported(fmt::format("--peer {}: size {}: {}", name, to_string(shape), reason));
    }
  }
  return peers;
}

std::optional<Roofline> find_roofline(const BenchOptions& options, const DeviceInfo& device) {
  if (!options.roofline) return std::nullopt;
  if (accumulator(options.type()) != Type::f32 && options.type() != Type::c64)
    throw std::invalid_argument(
        fmt::format("--roofline: the limit of arithmetic is measured in f32, which products of {} are not computed in",
                    to_string(options.type())));
  return measure_roofline(HeadlessContext::get_proc_address, device.software, *options.roofline);
}

/// The milliseconds that a shape will take with `ratio` times the work of one that was measured. Budgets hold for small ones; of
/// large ones each kernel runs five times.
double expected_ms(const Baseline& baseline, std::span<const Measurement> results, double ratio) {
  constexpr double least = 650;
  double ms = ratio * baseline.ms;
  for (const Measurement& x : results) ms += std::max(least, ratio * 5 * median(x.call_times)) + ratio * x.check_ms;
  return ms;
}

}  // namespace

BenchResult run_bench(const BenchOptions& options, Engine& engine, std::ostream& out) {
  const auto begin = Clock::now();
  const bool is_limited = options.seconds && engine.device().software;
  const auto ms_left = [&] { return is_limited ? 1000 * *options.seconds - milliseconds_since(begin) : 1e300; };
  Table table(out, options);
  const std::vector<ShapeRun> jobs = make_jobs(options, limits_of(engine), table);
  std::vector<PeerClient> peers = start_peers(options);
  const auto work = [&](const Shape& shape) { return flops(shape, options.type(), options.batch); };
  double total_work = 0;
  for (const auto& [shape, kernels] : jobs) total_work += work(shape) * static_cast<double>(1 + kernels.size() + peers.size());

  Progress progress(total_work);
  if (options.roofline) progress.show(0, "the device's limits");
  const std::optional<Roofline> found_roofline = find_roofline(options, engine.device());
  const Roofline* const roofline = found_roofline ? &*found_roofline : nullptr;
  std::optional<ClockControl> clock;
  if (!engine.device().software) clock.emplace(HeadlessContext::get_proc_address);
  progress.clear();
  nlohmann::ordered_json json = bench_json(engine.device(), peers, roofline);
  table.header(engine.device(), peers, roofline);
  double work_done = 0;
  bool passed = true;
  std::vector<Ours> ours;
  std::vector<Ratio> all_shapes;
  std::vector<std::string> left_out;
  std::function<double(double work)> expected;
  for (const ShapeRun& job : jobs) {
    const Shape& shape = job.shape;
    if (expected && expected(work(shape)) > ms_left()) {
      left_out.push_back("size " + to_string(shape));
      continue;
    }
    Trial trial(shape, options);
    progress.show(work_done, to_string(shape) + ", serial loop");
    const Baseline baseline = trial.serial(options.cpu_seconds);
    const bool band = baseline.rows_measured < shape.m;
    const bool too_long = band || baseline.ms > 1000 * options.cpu_seconds;
    if (band)
      table.note(fmt::format("~  size {}: the serial loop was measured on {} of {} rows and extrapolated", to_string(shape),
                             baseline.rows_measured, shape.m));
    else if (options.batch > 1)
      table.note(fmt::format("~  size {}: the serial loop was measured on one of {} products", to_string(shape), options.batch));
    work_done += work(shape);

    const auto place = [&](const Measurement& x) { return fmt::format("size {}, {}", to_string(shape), x.ran); };
    const bool full_check = options.check == CheckMethod::full || (options.check == CheckMethod::automatic && !too_long);
    Entrants entrants{job.kernels, peers, full_check, {}, {}, {}, {}};
    if (is_limited) entrants.late = [&] { return ms_left() < 500 * *options.seconds; };
    if (clock) entrants.control = [&clock] { return clock->rate(); };
    entrants.begins = [&](const std::string& who) { progress.show(work_done, to_string(shape) + ", " + who); };
    entrants.checked = [&] { work_done += work(shape); };
    std::vector<double> rates;
    const std::vector<Measurement> results = trial.measure(engine, entrants, options, rates);
    for (std::size_t i = results.size(); i < job.kernels.size() + peers.size(); ++i)
      left_out.push_back((i < job.kernels.size() ? job.kernels[i].text : peers[i - job.kernels.size()].name()) + " at size " +
                         to_string(shape));
    expected = [baseline, results, of = work(shape)](double next) { return expected_ms(baseline, results, next / of); };
    if (!rates.empty()) json["control"].push_back({{"size", to_string(shape)}, {"gflops", rates}});
    progress.clear();
    for (const Measurement& x : results) {
      table.row(shape, &x == &results.front(), baseline, x);
      if (!x.clock_note.empty()) table.note("*  " + place(x) + ": " + x.clock_note);
      if (!x.check.passed) table.note("WRONG  " + place(x) + ": " + x.check.summary);
      passed &= x.check.passed;
      if (x.kernel && shape.m == shape.n && shape.n == shape.k) ours.push_back({shape.n, x.ran, baseline.ms, median(x.times())});
    }
    for (const Measurement& x : results)
      if (x.budget)
        table.note(
            fmt::format("   {}, {} ms at a time: {} calls of advance; once the rate was known, {} of {} took over twice as long, "
                        "and the longest "
                        "{} ms; in all {} ms, and the plain product {} ms",
                        place(x), digits(*options.budget_ms), x.budget->calls, x.budget->late, x.budget->calls_known,
                        digits(x.budget->max_ms), digits(x.budget->total_ms), digits(median(x.call_times))));
    const std::vector<Ratio> all_ratios = ratios(shape, options, results, roofline);
    for (const Ratio& ratio : all_ratios) {
      table.row(ratio);
      all_shapes.push_back(ratio);
    }
    add_results(json, shape, options, baseline, results, all_ratios);
    add_ratios(json, budget_ratios(shape, options, results));
    table.rule();
  }
  if (jobs.size() > 1) {
    const std::vector<Ratio> means = geometric_means(all_shapes);
    for (const Ratio& ratio : means) table.row(ratio);
    add_ratios(json, means);
    if (!means.empty()) table.rule();
  }
  if (!left_out.empty()) {
    std::set<std::int64_t> sizes;
    for (const Shape& shape : options.shapes) sizes.insert(shape.m);
    table.note(fmt::format(
        "Left out, since a bench without sizes ends within about {:.0f} s on a CPU: {}. With --size {} all is measured.",
        *options.seconds, fmt::join(left_out, "; "), fmt::join(sizes, ",")));
    json["left_out"] = left_out;
  }
  table.notes();
  if (options.paper) print_paper(out, ours);
  return bench_result(passed, json);
}

}  // namespace glgemm::tools
