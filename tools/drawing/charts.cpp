// Draws charts.
#include "drawing/charts.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

namespace glgemm::tools {
namespace {

std::string tick_text(double value) {
  const double size = std::abs(value);
  if (size != 0 && (size < 1e-3 || size >= 1e7)) return fmt::format("{:.0e}", value);
  if (size >= 1e6) return fmt::format("{:g}M", value / 1e6);
  return size >= 1e4 ? fmt::format("{:g}k", value / 1e3) : fmt::format("{:g}", value);
}

/// From values to pixels.
class Scale {
 public:
  Scale(const Axis& axis, std::vector<double> values, double from, double to)
      : logarithmic_(axis.logarithmic && axis.categories.empty()), from_(from), to_(to) {
    if (!axis.categories.empty()) {
      low_ = -0.5;
      high_ = static_cast<double>(axis.categories.size()) - 0.5;
      for (std::size_t i = 0; i < axis.categories.size(); ++i) ticks_.push_back(static_cast<double>(i));
      return;
    }
    std::erase_if(values, [&](double x) { return !has(x); });
    if (values.empty()) values = {1, 10};
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    low_ = *least;
    high_ = *most;
    logarithmic_ ? take_powers() : take_steps(axis.whole);
    if (!axis.at.empty()) ticks_ = axis.at;
  }

  bool has(double value) const { return std::isfinite(value) && (!logarithmic_ || value > 0); }
  double operator()(double value) const {
    const double share = logarithmic_ ? std::log(value / low_) / std::log(high_ / low_) : (value - low_) / (high_ - low_);
    return from_ + share * (to_ - from_);
  }
  const std::vector<double>& ticks() const { return ticks_; }
  double low() const { return low_; }
  double high() const { return high_; }

 private:
  void take_powers() {
    const double margin = high_ / low_ < 4 ? 2 : std::pow(high_ / low_, 0.06);
    low_ /= margin;
    high_ *= margin;
    const double decades = std::log10(high_ / low_);
    const int step = static_cast<int>(std::ceil(decades / 5));
    for (int power = static_cast<int>(std::floor(std::log10(low_))); power <= std::log10(high_); ++power)
      for (const double digit : {1.0, 2.0, 5.0}) {
        const double tick = digit * std::pow(10, power);
        if (tick < low_ || tick > high_ || (digit > 1 && decades > 2.2) || (digit == 1 && power % std::max(1, step) != 0))
          continue;
        ticks_.push_back(tick);
      }
  }
  void take_steps(bool whole) {
    low_ = std::min(0.0, low_);
    if (high_ <= low_) high_ = low_ + 1;
    const double raw = (high_ - low_) / 5, power = std::pow(10, std::floor(std::log10(raw)));
    const double nice = power * (raw / power > 5 ? 10 : raw / power > 2 ? 5 : raw / power > 1 ? 2 : 1);
    const double step = whole ? std::max(1.0, nice) : nice;
    high_ = std::ceil(high_ / step - 1e-9) * step;
    for (int i = 0; low_ + i * step <= high_ * (1 + 1e-9); ++i) ticks_.push_back(low_ + i * step);
  }

  bool logarithmic_;
  double from_, to_;
  double low_ = 0, high_ = 1;
  std::vector<double> ticks_;
};

std::string classes(const Series& series, const char* what) {
  return fmt::format("c{} {}", series.colour % drawing_colours, what);
}

void draw_series(Drawing& drawing, const Series& series, const Scale& x, const Scale& y, double bar_width, double bar_shift) {
  std::vector<Point> line;
  using Kind = Series::Kind;
  const bool bars = series.kind == Kind::bars || series.kind == Kind::bins;
  const double base = y(y.low());
  for (std::size_t i = 0; i < series.points.size(); ++i) {
    const Point& point = series.points[i];
    if (series.kind == Kind::uprights && x.has(point.x))
      drawing.line({x(point.x), base}, {x(point.x), y(y.high())}, classes(series, series.second ? "stroke dashed" : "stroke"));
    if (!x.has(point.x) || !y.has(point.y)) continue;
    const Point at{x(point.x), y(point.y)};
    line.push_back(at);
    if (!bars) continue;
    const double width = series.kind == Kind::bins ? std::max(1.0, x(point.x * series.bin_width) - at.x - 1) : bar_width;
    const double left = series.kind == Kind::bins ? at.x : at.x - bar_width / 2 + bar_shift;
    drawing.rectangle({left, at.y, width, std::max(0.0, base - at.y)}, classes(series, series.second ? "hollow" : "fill"),
                      i < series.tips.size() ? series.tips[i] : std::string());
  }
  if (bars || series.kind == Kind::uprights) return;
  if (series.kind == Series::Kind::line && line.size() > 1)
    drawing.path(line, classes(series, series.second ? "stroke dashed" : "stroke"));
  if (series.kind == Series::Kind::line && series.tips.empty()) return;  // a roof
  std::size_t next = 0;
  for (std::size_t i = 0; i < series.points.size(); ++i) {
    if (!x.has(series.points[i].x) || !y.has(series.points[i].y)) continue;
    drawing.mark(line[next++], series.colour, classes(series, series.second ? "hollow" : "fill"),
                 i < series.tips.size() ? series.tips[i] : std::string());
  }
}

/// The names of the series in rows, from the box's left edge on.  @return their height
double draw_legend(Drawing* drawing, const Chart& chart, double x0, double y0, double width) {
  double x = 0, y = 0;
  bool any = false;
  for (const Series& series : chart.series) {
    if (series.name.empty() || series.points.empty()) continue;
    const double needed = 22 + text_width(series.name) + 12;
    if (x > 0 && x + needed > width) {
      x = 0;
      y += 18;
    }
    any = true;
    if (drawing) {
      using Kind = Series::Kind;
      const Point at{x0 + x + 8, y0 + y - 4};
      if (series.kind == Kind::line || series.kind == Kind::uprights)
        drawing->line({at.x - 8, at.y}, {at.x + 8, at.y}, classes(series, series.second ? "stroke dashed" : "stroke"));
      if (series.kind == Kind::bars || series.kind == Kind::bins)
        drawing->rectangle({at.x - 6, at.y - 5, 12, 10}, classes(series, series.second ? "hollow" : "fill"));
      else if (series.kind == Series::Kind::marks || !series.tips.empty())
        drawing->mark(at, series.colour, classes(series, series.second ? "hollow" : "fill"));
      drawing->text({x0 + x + 22, y0 + y}, series.name);
    }
    x += needed;
  }
  return any ? y + 18 : 0;
}

}  // namespace

void draw(Drawing& drawing, const Chart& chart, const Box& box) {
  using Anchor = Drawing::Anchor;
  constexpr double left = 58, right = 22, top = 26, below = 42;
  const double legend = draw_legend(nullptr, chart, 0, 0, box.width);
  std::size_t longest = 0;
  for (const std::string& category : chart.x.categories) longest = std::max(longest, category.size());
  const double room = (box.width - left - right) / static_cast<double>(std::max<std::size_t>(1, chart.x.categories.size()));
  const bool turned = text_width(std::string(longest, 'x')) > room - 4;
  const double labels = turned ? std::min(130.0, 0.87 * text_width(std::string(longest, 'x'))) : 0;
  const Box plot{box.x + left, box.y + top, box.width - left - right, box.height - top - below - legend - labels};
  std::vector<double> xs, ys;
  std::size_t bar_series = 0;
  for (const Series& series : chart.series) {
    bar_series += series.kind == Series::Kind::bars ? 1U : 0U;
    for (const Point& point : series.points) {
      xs.push_back(point.x);
      if (series.kind == Series::Kind::bins) xs.push_back(point.x * series.bin_width);
      ys.push_back(point.y);
    }
  }
  const Scale x(chart.x, xs, plot.x, plot.x + plot.width), y(chart.y, ys, plot.y + plot.height, plot.y);
  drawing.text({box.x, box.y + 14}, chart.title, "title");
  for (const double tick : y.ticks()) {
    drawing.line({plot.x, y(tick)}, {plot.x + plot.width, y(tick)}, "faint");
    drawing.text({plot.x - 6, y(tick) + 4}, tick_text(tick), {}, Anchor::end);
  }
  for (std::size_t i = 0; i < x.ticks().size(); ++i) {
    const double tick = x.ticks()[i];
    const Point at{x(tick), plot.y + plot.height};
    if (chart.x.categories.empty()) {
      drawing.line({at.x, plot.y}, at, "faint");
      drawing.text({at.x, at.y + 16}, i < chart.x.names.size() ? chart.x.names[i] : tick_text(tick), {}, Anchor::middle);
    } else {
      const std::string& name = chart.x.categories[static_cast<std::size_t>(tick)];
      turned ? drawing.text({at.x + 4, at.y + 12}, name, {}, Anchor::end, -60)
             : drawing.text({at.x, at.y + 16}, name, {}, Anchor::middle);
    }
  }
  drawing.rectangle(plot, "frame");
  drawing.text({plot.x + plot.width / 2, plot.y + plot.height + labels + 34}, chart.x.label, "soft", Anchor::middle);
  drawing.text({box.x + 12, plot.y + plot.height / 2}, chart.y.label, "soft", Anchor::middle, -90);
  const double unit = chart.x.categories.empty() ? 20 : room;
  const double bar_width = std::min(40.0, 0.8 * unit / static_cast<double>(std::max<std::size_t>(1, bar_series)));
  std::size_t bar = 0;
  for (const Series& series : chart.series) {
    const double shift = bar_width * (static_cast<double>(bar) - (static_cast<double>(bar_series) - 1) / 2);
    draw_series(drawing, series, x, y, bar_width, shift);
    bar += series.kind == Series::Kind::bars ? 1U : 0U;
  }
  draw_legend(&drawing, chart, box.x + 4, plot.y + plot.height + labels + below + 14, box.width);
}

}  // namespace glgemm::tools
