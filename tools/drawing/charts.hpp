// Charts: points, lines and bars over axes.
#pragma once

#include <string>
#include <vector>

#include "drawing/drawing.hpp"

namespace glgemm::tools {

struct Series {
  /// Bins are bars over a numeric axis, from their point to `bin_width` times as much. Uprights are lines across the chart.
  enum class Kind { line, marks, bars, bins, uprights };
  std::string name;  ///< for the legend; without one it is not there
  std::vector<Point> points{};
  std::vector<std::string> tips{};  ///< one for each point, or none
  Kind kind = Kind::line;
  int colour = 0;
  bool second = false;  ///< hollow and dashed: of the second of two reports
  double bin_width = 1;
};

struct Axis {
  std::string label;
  bool logarithmic = true;           ///< else it begins at 0
  bool whole = false;                ///< it counts: only whole numbers have ticks
  std::vector<double> at{};          ///< where the ticks are; else they are chosen
  std::vector<std::string> names{};  ///< what stands there; else the numbers
  /// Of bars: what stands below each, at 0, 1, ...
  std::vector<std::string> categories{};
};

struct Chart {
  std::string title;
  Axis x, y;
  std::vector<Series> series{};
};

/// Draws into the box, the legend below the axes. Points that a logarithmic axis does not have are left out.
void draw(Drawing& drawing, const Chart& chart, const Box& box);

}  // namespace glgemm::tools
