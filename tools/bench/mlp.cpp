// Measures networks of fully connected layers beside their layers as products, one after the other.
#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <glgemm/stopwatch.hpp>
#include <nlohmann/json.hpp>

#include "bench/bench.hpp"
#include "bench/measure.hpp"
#include "bench/table.hpp"
#include "product/check_json.hpp"
#include "system/program.hpp"
#include "terminal/progress.hpp"
#include "terminal/texts.hpp"

namespace glgemm::tools {
namespace {

using Json = nlohmann::ordered_json;

/// A network of random numbers.
class MlpTrial {
 public:
  MlpTrial(Engine& engine, const PlainMlp& network)
      : layers_(network.layers),
        mlp_(network.mlp()),
        weights_(engine, 1, network.weights_bytes, Type::i8),
        biases_(engine, 1, network.biases_bytes / element_bytes(Type::f32)),
        output_(engine, network.samples, network.widths.back()) {
    AnyMatrix weights(Type::i8, 1, weights_.columns()), biases(Type::f32, 1, biases_.columns());
    const auto put = [](AnyMatrix& to, std::int64_t offset, std::span<const std::byte> bytes) {
      std::ranges::copy(bytes, to.bytes().begin() + offset);
    };
    std::uint64_t seed = 1;
    for (MlpLayer& layer : layers_) {
      BufferView& view = layer.weights;
      AnyMatrix numbers = random_numbers(Type::f32, view.rows, view.ld, ++seed);
      const std::optional<StoredMatrix> stored = store(network.formats.a, numbers, ++seed);
      put(weights, view.offset_bytes, stored ? std::span<const std::byte>(stored->bytes) : numbers.bytes());
      if (stored) put(weights, view.scales.offset_bytes, stored->scales);
      if (stored) put(weights, view.zeros.offset_bytes, stored->zeros);
      view.buffer = weights_.view().buffer;
      if (scales_lie_apart(view.quantization)) view.scales.buffer = view.buffer;
      if (view.quantization.zeros) view.zeros.buffer = view.buffer;

      const AnyMatrix bias = random_numbers(Type::f32, 1, view.rows, ++seed);
      put(biases, layer.bias.offset_bytes(), bias.bytes());
      layer.bias = BiasView::for_each_output(biases_.view().buffer, layer.bias.offset_bytes());
      HostLayer& host = host_.emplace_back();
      host.weights = Matrix<float>(view.rows, view.columns);  // without what fills up the last block of a row
      for (std::int64_t i = 0; i < view.rows; ++i)
        for (std::int64_t j = 0; j < view.columns; ++j) host.weights(i, j) = numbers.as<float>()(i, j);
      host.bias.assign(bias.as<float>().elements().begin(), bias.as<float>().elements().end());
      host.activation = layer.activation;
      if (&layer != &layers_.back()) hidden_.emplace_back(engine, 1, view.rows * network.samples);
    }
    upload(engine, weights, weights_);
    upload(engine, biases, biases_);
    AnyMatrix input = random_numbers(Type::f32, network.samples, network.widths.front(), ++seed);
    const std::optional<StoredMatrix> stored = store(network.formats.b, input, ++seed);
    device_input_.emplace(engine, stored, input);
    input_ = transpose(input.as<float>());
    mlp_.layers = layers_;
    mlp_.input.buffer = device_input_->view().buffer;
    mlp_.output.buffer = output_.view().buffer;
  }
  MlpTrial(const MlpTrial&) = delete;
  MlpTrial& operator=(const MlpTrial&) = delete;

  /// What Engine::run gets.
  const Mlp& mlp() const { return mlp_; }

  /// The same as products. What each hidden layer gives has a buffer of its own, and lies so in it.
  std::vector<Gemm> products(Layout hidden) const {
    std::vector<Gemm> result;
    BufferView x = mlp_.input;
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      Gemm& product = result.emplace_back();
      product.a = layers_[i].weights;
      product.b = x;
      product.c = mlp_.output;
      if (i < hidden_.size())
        product.c = {.buffer = hidden_[i].view().buffer, .rows = product.a.rows, .columns = x.columns, .layout = hidden};
      product.epilogue.bias = BiasView::for_each_row(layers_[i].bias.buffer(), layers_[i].bias.offset_bytes());
      product.epilogue.activation = layers_[i].activation;
      x = product.c;
    }
    return result;
  }

  void poison(Engine& engine) const { upload(engine, poisoned(output_.type(), output_.rows(), output_.columns()), output_); }
  /// Compares so many samples of the output with a serial loop, or -1 for all.
  ProductCheck check(std::int64_t samples) const {
    ProductCheck result;
    static_cast<Check&>(result) = check_mlp(host_, input_, transpose(output_.download<float>()), samples);
    return result;
  }

 private:
  std::vector<MlpLayer> layers_;
  Mlp mlp_;
  std::vector<HostLayer> host_;
  Matrix<float> input_;  ///< a column for each sample
  std::optional<DeviceFactor> device_input_;
  DeviceMatrix weights_, biases_, output_;
  std::vector<DeviceMatrix> hidden_;
};

/// What was found of one network. Times are in milliseconds.
struct MlpRow {
  MlpPlan plan;
  std::int64_t dispatches = 0, separate_dispatches = 0;
  Layout hidden = Layout::row_major;  ///< of the products
  std::vector<double> times, separate_times;
  ProductCheck check, separate_check;
};

/// In milliseconds: the GPU's time, or the host's where that is implausible.
double milliseconds_of(Engine& engine, const std::function<void()>& run) {
  Stopwatch watch(engine);
  const auto begin = Clock::now();
  watch.start();
  run();
  watch.stop();
  const double device = Milliseconds(watch.elapsed()).count(), host = milliseconds_since(begin);
  return clocks_agree(device, host) ? device : host;
}

/// So many samples are checked; -1: all, where the serial loop takes about a second.
std::int64_t samples_to_check(const PlainMlp& network, CheckMethod method) {
  constexpr double full_work = 0x1p29;
  const double work = flops_of(network);
  if (method == CheckMethod::full || (method == CheckMethod::automatic && work <= full_work)) return -1;
  const double some = std::clamp(full_work / work * static_cast<double>(network.samples), 16.0, 1000.0);
  return std::min(network.samples, static_cast<std::int64_t>(some));
}

MlpRow measure(Engine& engine, const PlainMlp& network, const BenchOptions& options) {
  const PlanOptions plan_with = plan_options(options.kernels.front());
  MlpRow row;
  row.plan = make_plan(engine, problem_of(network.mlp()), plan_with);
  const MlpTrial trial(engine, network);
  const std::int64_t samples = samples_to_check(network, options.check);
  // Twice: the first run plans, compiles, and learns how fast the programs are.
  Report report;
  trial.poison(engine);
  for (int i = 0; i < 2; ++i) engine.run(trial.mlp(), plan_with, &report);
  row.dispatches = report.dispatches;
  row.check = trial.check(samples);

  std::vector<Gemm> products;
  double least = std::numeric_limits<double>::infinity();
  for (const Layout hidden : {Layout::row_major, Layout::column_major}) {
    const std::vector<Gemm> these = trial.products(hidden);
    std::int64_t dispatches = 0;
    for (int i = 0; i < 2; ++i)
      for (const Gemm& product : these) {
        engine.gemm(product, plan_with, &report);
        dispatches += i * report.dispatches;
      }
    const auto once = [&] { return milliseconds_of(engine, [&] { engine.gemm(these, plan_with); }); };
    const double ms = std::min(once(), once());
    if (ms >= least) continue;
    least = ms;
    products = these;
    row.hidden = hidden;
    row.separate_dispatches = dispatches;
  }
  trial.poison(engine);
  engine.gemm(products, plan_with);
  row.separate_check = trial.check(samples);

  const auto begin = Clock::now();
  for (int i = 0; options.repeats ? i < *options.repeats : i < 3 || (i < 50 && milliseconds_since(begin) < 1000); ++i) {
    row.times.push_back(milliseconds_of(engine, [&] { engine.run(trial.mlp(), plan_with); }));
    row.separate_times.push_back(milliseconds_of(engine, [&] { engine.gemm(products, plan_with); }));
  }
  return row;
}

/// How many times as fast the network is as its products; between the quartiles.
Ratio ratio_of_row(const MlpRow& row, const std::string& text) {
  const auto over = [&](double theirs, double ours) {
    return quantile(row.separate_times, theirs) / std::max(quantile(row.times, ours), 1e-6);
  };
  return {"network over separate products, " + text,
          "network",
          "separate products",
          over(0.5, 0.5),
          over(0.25, 0.75),
          over(0.75, 0.25)};
}

Json row_json(const MlpRow& row, const PlainMlp& network) {
  Json groups = Json::array();
  for (const MlpPlan::Group& group : row.plan.groups)
    groups.push_back({{"first", group.first},
                      {"count", group.count},
                      {"one_dispatch", group.program.has_value()},
                      {"kernel", kernel_text(group)}});
  Json json{{"network", to_string(network)},
            {"samples", network.samples},
            {"type", to_string(network.formats)},
            {"precision", to_string(row.plan.precision)},
            {"groups", groups},
            {"dispatches", row.dispatches},
            {"kernel_ms", median(row.times)},
            {"runs", row.times.size()},
            {"gflops", gflops(flops_of(network), median(row.times))},
            {"bytes", row.plan.bytes},
            {"workspace_bytes", row.plan.workspace_bytes},
            {"separate_dispatches", row.separate_dispatches},
            {"separate_ms", median(row.separate_times)},
            {"separate_layout", row.hidden == Layout::row_major ? "row_major" : "column_major"},
            {"over_separate", ratio_of_row(row, "").value},
            {"samples_checked", row.check.compared / network.widths.back()},
            {"check", check_json(row.check)},
            {"separate_check", check_json(row.separate_check)}};
  json.update(spread_json("kernel_ms", row.times));
  json.update(spread_json("separate_ms", row.separate_times));
  return json;
}

/// @throws std::invalid_argument  the numbers of the network, of its products and of its check do not fit into memory
void require_memory_for(const PlainMlp& network) {
  double values = 3 * static_cast<double>(network.widths.front()) + 3 * static_cast<double>(network.widths.back());
  for (const MlpLayer& layer : network.layers) values += static_cast<double>(layer.weights.rows);
  const double bytes = 4 * values * static_cast<double>(network.samples) + 4 * static_cast<double>(network.weights_bytes);
  if (bytes > machine_memory())
    throw std::invalid_argument(fmt::format("the network {} of {} samples needs {}, and this machine has {} of memory",
                                            to_string(network), network.samples, bytes_text(bytes),
                                            bytes_text(machine_memory())));
}

}  // namespace

BenchResult run_mlps(const MlpBench& bench, Engine& engine, std::ostream& out) {
  Json json = bench_json(engine.device(), {}, nullptr);
  json["networks"] = Json::array();
  std::size_t width = 7;
  double work = 0;
  for (const PlainMlp& network : bench.networks) {
    require_memory_for(network);
    width = std::max(width, to_string(network).size());
    work += flops_of(network);
  }
  say(out, engine.device().renderer + "; " + api_and_version(engine.device()));
  say(out,
      fmt::format("Networks in {}, their samples one after the other; relu between layers. Times are medians. Separate: each "
                  "layer as a product, all in one call, measured in turn. GFLOP/s: 2 operations for each multiply-add. "
                  "Checked: so many samples. Error: the worst, as a part of its proven bound.",
                  to_string(bench.networks.front().formats)));
  Columns columns(out, {{"network", width, 0, true},
                        {"samples", 9},
                        {"dispatches", 10, 4},
                        {"ms", 10},
                        {"least to most", 18, 9},
                        {"GFLOP/s", 9},
                        {"dispatches", 10, 5},
                        {"separate ms", 11, 3},
                        {"times as fast", 13},
                        {"checked", 9, 6},
                        {"error", 7, 7},
                        {"check", 9, 0, true}});
  columns.header();
  Progress progress(work);
  work = 0;
  bool passed = true;
  std::vector<Ratio> ratios;
  std::vector<std::string> notes;
  for (const PlainMlp& network : bench.networks) {
    const std::string text = fmt::format("{} of {} samples", to_string(network), network.samples);
    progress.show(work, text);
    work += flops_of(network);
    const MlpRow row = measure(engine, network, bench.options);
    progress.clear();
    ratios.push_back(ratio_of_row(row, text));
    const auto [error, place, median_error, verdict] = check_cells(check_json(row.check));
    const double ms = median(row.times);
    columns.row({to_string(network), std::to_string(network.samples), std::to_string(row.dispatches), digits(ms),
                 range_text(row.times), digits(gflops(flops_of(network), ms)), std::to_string(row.separate_dispatches),
                 digits(median(row.separate_times)), fmt::format("{:.3g}", ratios.back().value),
                 std::to_string(row.check.compared / network.widths.back()), error, verdict});
    for (const auto& [what, check] : {std::pair("", &row.check), std::pair(", as separate products", &row.separate_check)}) {
      if (!check->passed) notes.push_back(fmt::format("WRONG  {}{}: {}", text, what, check->summary));
      passed = passed && check->passed;
    }
    json["networks"].push_back(row_json(row, network));
  }
  const std::vector<Ratio> means = geometric_means(ratios);
  add_ratios(json, ratios);
  add_ratios(json, means);
  for (const Ratio& mean : means) say(out, fmt::format("{}: {:.3g} times as fast", mean.name, mean.value), 0, one_line);
  for (const std::string& note : notes) say(out, note, 0, one_line);
  return bench_result(passed, json);
}

}  // namespace glgemm::tools
