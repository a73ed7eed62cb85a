// Computes the ratios of measurements.
#include "bench/table.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

#include <fmt/core.h>

namespace glgemm::tools {

std::string product_text(const Shape& shape, const BenchOptions& options) {
  std::string text = fmt::format("{}x{}x{}", shape.m, shape.n, shape.k);
  if (shape.op_a != Op::none || shape.op_b != Op::none)
    text += fmt::format("-{}{}", to_string(shape.op_a), to_string(shape.op_b));
  text += fmt::format(" {}", to_string(options.formats));
  return options.batch > 1 ? fmt::format("{}, batch of {}", text, options.batch) : text;
}

Ratio ratio_of(const std::string& name, const std::string& of, const std::string& over, const std::vector<double>& values) {
  return {name, of, over, median(values), quantile(values, 0.25), quantile(values, 0.75)};
}

std::vector<Ratio> ratios(const Shape& shape, const BenchOptions& options, const std::vector<Measurement>& results,
                          const Roofline* roofline) {
  std::vector<Ratio> list;
  const auto add = [&](const Measurement& of, const std::string& over, const std::vector<double>& of_times,
                       const std::vector<double>& over_times) {
    // A clock too coarse for the work may say 0.
    const auto at = [](const std::vector<double>& times, double p) { return std::max(quantile(times, p), 1e-6); };
    list.push_back({.name = fmt::format("{} over {}, {}", of.requested, over, product_text(shape, options)),
                    .of = of.requested,
                    .over = over,
                    .value = at(over_times, 0.5) / at(of_times, 0.5),
                    .low = at(over_times, 0.25) / at(of_times, 0.75),
                    .high = at(over_times, 0.75) / at(of_times, 0.25),
                    .product = product_json(shape, options)});
  };
  const auto family = [](const Measurement& x) {
    return x.requested == "auto" || !x.kernel ? std::string_view() : name(*x.kernel);
  };
  const bool has_auto = std::any_of(results.begin(), results.end(), [](const Measurement& x) { return x.requested == "auto"; });
  for (const std::string_view baseline : {"tiled", "naive"})
    for (const Measurement& over : results)
      for (const Measurement& of : results) {
        const bool lesser = family(of) == baseline || family(of) == "naive";
        if (family(over) != baseline || !of.kernel || (has_auto ? of.requested != "auto" : lesser)) continue;
        add(of, over.requested, of.times(), over.times());
      }
  for (const Measurement& over : results)
    for (const Measurement& of : results)
      if (!over.kernel && of.kernel) add(of, over.requested, of.call_times, over.call_times);
  if (!roofline) return list;

  const Problem problem = problem_of(shape, options.formats, options.batch);
  const std::int64_t of_c = options.beta == 0.0 ? 0 : least_bytes(problem, Role::c);  // it is read too
  const auto bytes = static_cast<double>(least_bytes(problem) + of_c);
  const double work = flops(shape, options.type(), options.batch);
  for (const Measurement& of : results) {
    if (!of.kernel) continue;
    const double reachable_gflops = std::min(roofline->gflops, work / bytes * roofline->read_gb_per_s());
    add(of, "roofline", of.times(), {work / reachable_gflops / 1e6});
    if (std::min(shape.m, shape.n) <= 8) add(of, "reading rate", of.times(), {bytes / roofline->read_gb_per_s() / 1e6});
  }
  return list;
}

std::vector<Ratio> budget_ratios(const Shape& shape, const BenchOptions& options, const std::vector<Measurement>& results) {
  std::vector<Ratio> list;
  for (const Measurement& x : results) {
    if (!x.budget) continue;
    const std::string budget = "a budget of " + digits(*options.budget_ms) + " ms";
    const auto add = [&](const std::string& of, const std::string& over, double value) {
      list.push_back({fmt::format("{}: {} over {}, {}", x.requested, of, over, product_text(shape, options)), of, over, value,
                      value, value});
    };
    add("late calls of advance under " + budget, "calls of advance",
        static_cast<double>(x.budget->late) / static_cast<double>(std::max<std::int64_t>(1, x.budget->calls_known)));
    add("time under " + budget, "plain time", x.budget->total_ms / std::max(median(x.call_times), 1e-6));
  }
  return list;
}

std::vector<Ratio> geometric_means(std::span<const Ratio> ratios) {
  std::vector<Ratio> means;  // sums of logarithms at first
  for (const Ratio& ratio : ratios) {
    auto mean = std::find_if(means.begin(), means.end(),
                             [&](const Ratio& other) { return other.of == ratio.of && other.over == ratio.over; });
    if (mean == means.end()) mean = means.insert(means.end(), Ratio{.name = {}, .of = ratio.of, .over = ratio.over});
    mean->value += std::log(ratio.value);
    mean->low += std::log(ratio.low);
    mean->high += std::log(ratio.high);
    ++mean->mean_of;
  }
  std::erase_if(means, [](const Ratio& mean) { return mean.mean_of < 2; });
  for (Ratio& mean : means) {
    for (double* const value : {&mean.value, &mean.low, &mean.high}) *value = std::exp(*value / mean.mean_of);
    mean.name = fmt::format("{} over {}, geometric mean of {}", mean.of, mean.over, mean.mean_of);
  }
  return means;
}

}  // namespace glgemm::tools
