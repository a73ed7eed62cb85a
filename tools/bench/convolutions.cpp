// Measures convolutions beside the plain products that have as many multiply-adds.
#include <algorithm>
#include <optional>
#include <stdexcept>
#include <vector>

#include <fmt/core.h>
#include <glgemm/error.hpp>
#include <glgemm/fence.hpp>
#include <glgemm/job.hpp>
#include <nlohmann/json.hpp>

#include "bench/bench.hpp"
#include "bench/measure.hpp"
#include "bench/table.hpp"
#include "peers/peers.hpp"
#include "product/check_json.hpp"
#include "system/program.hpp"
#include "terminal/progress.hpp"
#include "terminal/texts.hpp"

namespace glgemm::tools {
namespace {

using Json = nlohmann::ordered_json;

/// Why a convolution was not measured.
struct LeftOut : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A convolution of random elements.
class ConvolutionTrial {
 public:
  ConvolutionTrial(Engine& engine, const Convolution& convolution)
      : engine_(engine),
        convolution_(convolution),
        type_(one_type(formats_of(convolution))),
        k_(filter_elements(convolution) / convolution.output.channels),
        input_(random_numbers(type_, 1, input_elements(convolution), 1)),
        filters_(random_numbers(type_, convolution.output.channels, row_of_filters(), 2)),
        output_(engine, 1, output_elements(convolution), accumulator(type_)) {
    const auto stored_input = store(formats_of(convolution).a, input_, 4);
    const auto stored_filters = store(formats_of(convolution).b, filters_, 5);
    device_input_.emplace(engine, stored_input, input_);
    device_filters_.emplace(engine, stored_filters, filters_);
    upload(engine, nothing(), output_);
    convolution_.input.buffer = device_input_->view().buffer;
    const BufferView filters = device_filters_->view();
    convolution_.filters.buffer = filters.buffer;
    convolution_.filters.scales = filters.scales;
    convolution_.filters.zeros = filters.zeros;
    convolution_.output.buffer = output_.view().buffer;
  }

  /// What Engine::convolve gets.
  const Convolution& convolution() const { return convolution_; }

  /// Compares the output with a serial loop in double: some pixels of it alone, unless `full`.
  ProductCheck check(bool full) const { return check(download(engine_, output_), full); }

  /// The same convolution in numbers of one type, and its elements handed to a peer; and the check of what the peer finds.
  PeerProblem peer_problem() const {
    PeerProblem problem;
    problem.type = type_;
    problem.convolution = problem_of(convolution_);
    return problem;
  }
  void load(PeerClient& peer) const { peer.load(peer_problem(), input_.bytes(), dense_filters().bytes(), nothing().bytes()); }
  ProductCheck check(PeerClient& peer, bool full) const {
    return check(AnyMatrix(output_.type(), 1, output_.columns(), peer.fetch()), full);
  }

 private:
  AnyMatrix nothing() const { return poisoned(output_.type(), 1, output_.columns()); }

  /// Without what fills up the last block of a row.
  AnyMatrix dense_filters() const {
    AnyMatrix filters(type_, filters_.rows(), k_);
    const auto bytes = static_cast<std::size_t>(k_ * element_bytes(type_)),
               stride = filters_.bytes().size() / static_cast<std::size_t>(filters_.rows());
    for (std::size_t row = 0; row * stride < filters_.bytes().size(); ++row)
      std::ranges::copy(filters_.bytes().subspan(row * stride, bytes),
                        filters.bytes().begin() + static_cast<std::ptrdiff_t>(row * bytes));
    return filters;
  }

  ProductCheck check(const AnyMatrix& output, bool full) const {
    const AnyMatrix filters = dense_filters();
    constexpr double sampled = 0x1p24;  // multiply-adds
    const double of_pixel = static_cast<double>(k_ * convolution_.output.channels);
    const std::int64_t samples = full ? -1 : std::max<std::int64_t>(64, static_cast<std::int64_t>(sampled / of_pixel));
    ProductCheck result;
    static_cast<Check&>(result) = check_convolution(convolution_, input_, filters, output, samples);
    return result;
  }

  std::int64_t row_of_filters() const { return row_elements(formats_of(convolution_).b, k_); }

  Engine& engine_;
  Convolution convolution_;
  Type type_;  ///< in which it is checked
  std::int64_t k_;
  AnyMatrix input_, filters_;
  std::optional<DeviceFactor> device_input_, device_filters_;
  DeviceMatrix output_;
};

/// A peer's times and check, or why it has none.
struct PeerRow {
  std::string name, why_not{};
  std::vector<double> times{};
  ProductCheck check{};
};

/// What was found of one convolution. Times are in milliseconds.
struct ConvolutionRow {
  std::string text, kernel;
  Shape product{};
  std::int64_t groups = 1, workspace_bytes = 0, copy_bytes = 0, pieces = 1;
  bool depthwise = false;
  double gflop = 0, bytes = 0;                         ///< of input, filters and output
  std::vector<double> times, call_times, plain_times;  ///< call_times: on the host's clock, as a peer's
  std::string why_no_plain;
  ProductCheck check;
  std::vector<PeerRow> peers;
};

struct Times {
  double kernel;  ///< the GPU's time, or the host's where that is implausible
  double call;    ///< the host's
};
Times timed(const std::function<void(Report*)>& run) {
  Report report;
  const auto begin = Clock::now();
  run(&report);
  const double host = milliseconds_since(begin), device = Milliseconds(report.kernel_time).count();
  return {clocks_agree(device, host) ? device : host, host};
}

/// Runs it once, a part at a time.  @throws LeftOut  that takes longer than the limit
void run_within(Engine& engine, const Convolution& convolution, const PlanOptions& options, double seconds) {
  const auto begin = Clock::now();
  Job job = engine.start(convolution, options);
  const auto part = std::chrono::duration_cast<std::chrono::nanoseconds>(Milliseconds(std::min(100.0, 250 * seconds)));
  while (!job.done()) {
    job.advance(part);
    job.fence().wait();
    if (milliseconds_since(begin) > 1000 * seconds)
      throw LeftOut(fmt::format("its first run takes longer than {}", time_text(std::chrono::duration<double>(seconds))));
  }
}

/// The plain product with as many multiply-adds, its B as the filters lie.
BenchOptions plain_options(const Convolution& convolution, const BenchOptions& options) {
  BenchOptions plain = options;
  plain.batch = convolution.groups;
  plain.formats = formats_of(convolution);
  return plain;
}

PeerRow start(PeerClient& peer, const ConvolutionTrial& trial, bool full) {
  PeerRow row{peer.name()};
  if (trial.convolution().transposed)
    row.why_not = "peers have no transposed convolutions";
  else
    row.why_not = peer.why_not(trial.peer_problem());
  if (!row.why_not.empty()) return row;
  trial.load(peer);
  peer.run();
  row.check = trial.check(peer, full);
  return row;
}

ConvolutionRow measure(Engine& engine, const NamedConvolution& named, const BenchOptions& options, double seconds,
                       std::span<PeerClient> peers) {
  if (!named.why_not.empty()) throw LeftOut(named.why_not);
  const PlanOptions plan_with = plan_options(options.kernels.front());
  const Convolution& convolution = named.convolution;
  const ConvolutionPlan plan = make_plan(engine, problem_of(convolution), plan_with);
  ConvolutionRow row;
  row.text = to_string(convolution);
  row.product = product_of(convolution);
  row.groups = convolution.groups;
  row.workspace_bytes = plan.workspace_bytes;
  row.copy_bytes = plan.border().size_bytes;
  row.pieces = plan.pieces;
  row.depthwise = plan.depthwise;
  row.gflop = flops_of(convolution) / 1e9;
  const std::int64_t outputs = convolution.output.channels;
  row.bytes = static_cast<double>(input_elements(convolution) * element_bytes(convolution.input.type) +
                                  output_elements(convolution) * element_bytes(convolution.output.type)) +
              stored_bytes(formats_of(convolution).b, outputs, filter_elements(convolution) / outputs);
  if (!plan.products().empty()) row.kernel = to_string(plan.products().front().kernel);
  const double bytes =
      static_cast<double>(element_bytes(convolution.output.type)) *
      static_cast<double>(2 * input_elements(convolution) + 3 * filter_elements(convolution) + 3 * output_elements(convolution));
  if (bytes > machine_memory())
    throw LeftOut(fmt::format("it needs {}, and this machine has {} of memory", bytes_text(bytes), bytes_text(machine_memory())));

  const BenchOptions plain = plain_options(convolution, options);
  const ConvolutionTrial trial(engine, convolution);
  run_within(engine, trial.convolution(), plan_with, seconds);
  constexpr double full_work = 0x1p29;  // operations: about a second of a serial loop
  const bool full =
      options.check == CheckMethod::full || (options.check == CheckMethod::automatic && flops_of(convolution) <= full_work);
  row.check = trial.check(full);
  for (PeerClient& peer : peers) row.peers.push_back(start(peer, trial, full));

  Shape shape = row.product;
  if (convolution.filters.layout != FilterLayout::hwio && !convolution.transposed) shape.op_b = Op::transpose;
  std::optional<Trial> product;
  std::function<void(Report*)> multiply;
  try {
    product.emplace(shape, plain);
    multiply = product->on_device(engine, plan_with);
    multiply(nullptr);
  } catch (const std::exception& error) {  // im2col's matrix may be too large for what a convolution is not
    multiply = nullptr;
    row.why_no_plain = error.what();
  }
  const auto begin = Clock::now();
  for (int i = 0; options.repeats ? i < *options.repeats : i < 3 || (i < 50 && milliseconds_since(begin) < 1000); ++i) {
    const Times times = timed([&](Report* report) { engine.convolve(trial.convolution(), plan_with, report); });
    row.times.push_back(times.kernel);
    row.call_times.push_back(times.call);
    if (multiply) row.plain_times.push_back(timed(multiply).kernel);
    for (std::size_t p = 0; p < peers.size(); ++p)
      if (row.peers[p].why_not.empty()) row.peers[p].times.push_back(peers[p].run());
  }
  return row;
}

/// Another's median time over the convolution's; between the quartiles.
Ratio ratio_of_row(const ConvolutionRow& row, const std::string& over, const std::vector<double>& its_times,
                   const std::vector<double>& times) {
  const auto at = [](const std::vector<double>& all, double p) { return std::max(quantile(all, p), 1e-6); };
  return {fmt::format("convolution over {}, {}", over, row.text),
          "convolution",
          over,
          at(its_times, 0.5) / at(times, 0.5),
          at(its_times, 0.25) / at(times, 0.75),
          at(its_times, 0.75) / at(times, 0.25)};
}
Ratio ratio_of_row(const ConvolutionRow& row) {
  return ratio_of_row(row, "plain product", row.plain_times, row.times);
}

Json row_json(const ConvolutionRow& row, const NamedConvolution& named) {
  Json json{{"convolution", row.text}};
  if (!named.name.empty()) json["name"] = named.name;
  json.update({{"m", row.product.m},
               {"n", row.product.n},
               {"k", row.product.k},
               {"groups", row.groups},
               {"type", to_string(formats_of(named.convolution))},
               {"depthwise", row.depthwise},
               {"kernel", row.kernel.empty() ? Json() : Json(row.kernel)},
               {"kernel_ms", median(row.times)},
               {"runs", row.times.size()},
               {"gflops", gflops(1e9 * row.gflop, median(row.times))},
               {"gb_per_s", gflops(row.bytes, median(row.times))},
               {"plain_ms", row.plain_times.empty() ? Json() : Json(median(row.plain_times))},
               {"over_plain", row.plain_times.empty() ? Json() : Json(ratio_of_row(row).value)},
               {"workspace_bytes", row.workspace_bytes},
               {"copy_bytes", row.copy_bytes},
               {"pieces", row.pieces},
               {"check", check_json(row.check)}});
  json.update(spread_json("kernel_ms", row.times));
  for (const PeerRow& peer : row.peers)
    if (!peer.why_not.empty())
      json["peers"].push_back({{"name", peer.name}, {"why_not", peer.why_not}});
    else
      json["peers"].push_back({{"name", peer.name},
                               {"call_ms", median(peer.times)},
                               {"gflops", gflops(1e9 * row.gflop, median(peer.times))},
                               {"runs", peer.times.size()},
                               {"check", check_json(peer.check)}});
  return json;
}

void show_peer(const PeerRow& peer, const ConvolutionRow& row, Columns& columns, std::ostream& out, std::vector<Ratio>& ratios) {
  if (!peer.why_not.empty()) return say(out, "  " + peer.name + ": " + peer.why_not);
  ratios.push_back(ratio_of_row(row, peer.name, peer.times, row.call_times));
  const double ms = median(peer.times);
  const auto [error, place, median_error, verdict] = check_cells(check_json(peer.check));
  columns.row({"  " + peer.name, digits(ms), range_text(peer.times), digits(gflops(1e9 * row.gflop, ms)),
               digits(gflops(row.bytes, ms)), "-", fmt::format("{:.3f}", ratios.back().value), "-", "-", error, verdict});
}

}  // namespace

BenchResult run_convolutions(const ConvolutionBench& bench, Engine& engine, std::ostream& out) {
  std::vector<PeerClient> peers;
  for (const std::string& name : bench.options.peers) peers.emplace_back(name, bench.options.opencl_device);
  Json json = bench_json(engine.device(), peers, nullptr);
  json["left_out"] = Json::array();
  std::size_t width = 11;
  double work = 0;
  for (const NamedConvolution& named : bench.convolutions) {
    width = std::max(width, to_string(named.convolution).size());
    work += flops_of(named.convolution);
  }
  say(out, engine.device().renderer + "; " + api_and_version(engine.device()));
  say(out,
      "Times are medians. Over plain: the time of the plain product with as many multiply-adds, measured in turn, over the "
      "convolution's; in a peer's line, the peer's time over the convolution's. GB/s: input, filters and output, each once. "
      "Copy: the input with its border. Error: the worst, as a part of its proven bound.");
  for (const PeerClient& peer : peers) say(out, peer.name() + ": " + peer.device() + "; times on the host's clock.");
  Columns columns(out, {{"convolution", width, 0, true},
                        {"ms", 10},
                        {"least to most", 18, 9},
                        {"GFLOP/s", 9},
                        {"GB/s", 8, 3},
                        {"plain ms", 10, 4},
                        {"over plain", 10},
                        {"workspace", 9, 5},
                        {"copy", 9, 6},
                        {"error", 7, 7},
                        {"check", 9, 0, true}});
  columns.header();
  Progress progress(work);
  work = 0;
  bool passed = true;
  std::vector<Ratio> ratios;
  std::vector<std::string> notes;
  for (const NamedConvolution& named : bench.convolutions) {
    const std::string text = to_string(named.convolution);
    progress.show(work, text);
    work += flops_of(named.convolution);
    try {
      const ConvolutionRow row = measure(engine, named, bench.options, bench.seconds, peers);
      progress.clear();
      const auto [error, place, median_error, verdict] = check_cells(check_json(row.check));
      std::string plain_ms = "-", over_plain = "-";
      if (!row.plain_times.empty()) {
        ratios.push_back(ratio_of_row(row));
        plain_ms = digits(median(row.plain_times));
        over_plain = fmt::format("{:.3f}", ratios.back().value);
      } else {
        notes.push_back(fmt::format("{}: no plain product: {}", text, row.why_no_plain));
      }
      const double ms = median(row.times);
      columns.row({text, digits(ms), range_text(row.times), digits(gflops(1e9 * row.gflop, ms)), digits(gflops(row.bytes, ms)),
                   plain_ms, over_plain, bytes_text(static_cast<double>(row.workspace_bytes)),
                   bytes_text(static_cast<double>(row.copy_bytes)), error, verdict});
      for (const PeerRow& peer : row.peers) show_peer(peer, row, columns, out, ratios);
      for (const PeerRow& peer : row.peers)
        if (peer.why_not.empty() && !peer.check.passed) {
          notes.push_back(fmt::format("WRONG  {} of {}: {}", peer.name, text, peer.check.summary));
          passed = false;
        }
      if (!row.check.passed) notes.push_back(fmt::format("WRONG  {}: {}", text, row.check.summary));
      passed = passed && row.check.passed;
      json["results"].push_back(row_json(row, named));
    } catch (const std::exception& error) {
      // The reason is the verb's error where one was asked for by name.
      const bool is_reason = dynamic_cast<const LeftOut*>(&error) || dynamic_cast<const Unsupported*>(&error) ||
                             dynamic_cast<const OutOfMemory*>(&error);
      if (!is_reason || bench.convolutions.size() == 1) throw;
      progress.clear();
      say(out, text + "  left out: " + error.what(), 2, one_line);
      json["left_out"].push_back({{"convolution", text}, {"name", named.name}, {"why", error.what()}});
    }
  }
  add_ratios(json, ratios);
  const std::vector<Ratio> means = geometric_means(ratios);
  for (const Ratio& mean : means) say(out, fmt::format("{}: {:.3f}", mean.name, mean.value), 0, one_line);
  add_ratios(json, means);
  if (const std::size_t count = json["left_out"].size(); count > 0)
    say(out, fmt::format("{} of {} convolutions are left out", count, bench.convolutions.size()));
  for (const std::string& note : notes) say(out, note, 0, one_line);
  return bench_result(passed, json);
}

}  // namespace glgemm::tools
