// Counts errors and draws the counts.
#include "drawing/error_histogram.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <stdexcept>

#include <fmt/core.h>

#include "drawing/charts.hpp"

namespace glgemm::tools {
namespace {

constexpr int per_decade = 4;

/// Where bin `i` begins, counted from 1 on, as in ErrorBins.
double edge(int i) {
  return std::pow(10.0, static_cast<double>(i) / per_decade);
}

std::string short_text(double value) {
  return fmt::format("{:.3g}", value);
}

std::string elements(std::int64_t count) {
  return fmt::format("{} element{}", count, count == 1 ? "" : "s");
}

std::string place(const Matrix<float>& ratios, std::int64_t at, std::int64_t batch) {
  const std::int64_t rows = ratios.rows() / batch, row = at / ratios.columns();
  return fmt::format("{}({}, {})", batch == 1 ? "" : fmt::format("product {}, ", row / rows), row % rows, at % ratios.columns());
}

}  // namespace

ErrorBins error_bins(const Matrix<float>& ratios) {
  if (ratios.size() == 0) throw std::invalid_argument("a matrix without elements has no errors to draw");
  ErrorBins result;
  std::vector<float> sorted(ratios.elements().begin(), ratios.elements().end());
  for (float& ratio : sorted)
    if (std::isnan(ratio)) ratio = std::numeric_limits<float>::infinity();
  const auto worst = std::max_element(sorted.begin(), sorted.end());
  result.worst = static_cast<double>(*worst);
  result.worst_at = worst - sorted.begin();
  std::sort(sorted.begin(), sorted.end());
  result.median = static_cast<double>(sorted[(sorted.size() - 1) / 2]);
  const auto end_of_none = std::upper_bound(sorted.begin(), sorted.end(), 0.0F);
  const auto endless = std::lower_bound(end_of_none, sorted.end(), std::numeric_limits<float>::infinity());
  result.none = end_of_none - sorted.begin();
  result.endless = sorted.end() - endless;
  const auto bin_of = [](float ratio) {
    return static_cast<int>(std::ceil(per_decade * std::log10(static_cast<double>(ratio)))) - 1;
  };
  // A decade below the bound is there in any case.
  result.first = -per_decade;
  int last = -1;
  if (end_of_none != endless) {
    result.first = std::min(result.first, bin_of(*end_of_none));
    last = std::max(last, bin_of(*(endless - 1)));
  }
  result.bins.resize(static_cast<std::size_t>(last - result.first + 1));
  for (auto ratio = end_of_none; ratio != endless; ++ratio)
    ++result.bins[static_cast<std::size_t>(bin_of(*ratio) - result.first)];
  return result;
}

std::string error_histogram(const Matrix<float>& ratios, const std::string& title, std::int64_t batch) {
  const ErrorBins found = error_bins(ratios);
  const int first = found.first, end = first + static_cast<int>(found.bins.size());
  Chart chart{title, {"|C - ref| over its bound"}, {"elements"}, {}};
  Series within{"within the bound", {}, {}, Series::Kind::bins, 0, false, edge(1)};
  Series beyond{"beyond it", {}, {}, Series::Kind::bins, 1, false, edge(1)};
  // What has no place on the axis stands a bin away from its ends.
  const int none_at = first - 2, endless_at = end + 1;
  const auto add = [&](int bin, std::int64_t count, const std::string& what) {
    if (count == 0) return;
    Series& series = bin >= 0 ? beyond : within;
    series.points.push_back({edge(bin), static_cast<double>(count)});
    series.tips.push_back(elements(count) + " " + what);
  };
  add(none_at, found.none, "without an error");
  for (int bin = first; bin < end; ++bin)
    add(bin, found.bins[static_cast<std::size_t>(bin - first)],
        "from " + short_text(edge(bin)) + " to " + short_text(edge(bin + 1)));
  add(endless_at, found.endless, "infinitely far off, or not a number");

  const auto tick = [&](double at, const std::string& name) {
    chart.x.at.push_back(at);
    chart.x.names.push_back(name);
  };
  const auto middle = [&](int bin) { return edge(bin) * std::sqrt(edge(1)); };
  if (found.none > 0) tick(middle(none_at), "0");
  const int decades = (end - first) / per_decade, step = per_decade * (1 + decades / 9);
  for (int bin = first / step * step; bin <= end; bin += step)
    if (bin >= first) tick(edge(bin), short_text(edge(bin)));
  if (found.endless > 0) tick(middle(endless_at), "inf");

  const auto upright = [&](double ratio, const std::string& name, int colour, bool dashed) {
    const double at = ratio == 0 ? middle(none_at) : std::isinf(ratio) ? middle(endless_at) : ratio;
    chart.series.push_back({name, {{at, 1}}, {}, Series::Kind::uprights, colour, dashed});  // so that one element has a height
  };
  chart.series = {within, beyond};
  upright(found.median, "median: " + short_text(found.median), 4, true);
  upright(found.worst,
          "worst: " + short_text(found.worst) + (found.worst > 0 ? " at " + place(ratios, found.worst_at, batch) : ""), 3, false);
  upright(1, "the bound", 1, true);
  Drawing drawing;
  constexpr double width = 720, height = 440, margin = 16;
  draw(drawing, chart, {margin, margin, width - 2 * margin, height - 2 * margin});
  return drawing.file(width, height, title);
}

}  // namespace glgemm::tools
