// Pictures of rectangles, lines and text, as SVG: for plans, and with charts.hpp for reports.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace glgemm::tools {

/// In pixels; y grows downwards.
struct Point {
  double x = 0, y = 0;
};
struct Box {
  double x = 0, y = 0, width = 0, height = 0;
};

/// As text of SVG and of HTML.
std::string escaped(std::string_view text);

/// A number as SVG writes it: at most two decimals.
std::string coordinate(double value);

/// The rules of CSS that give pictures other colours on dark pages. The light ones are attributes of the shapes, for programs
/// that know no variables of CSS. Colours 0 to 5 are the classes c0 to c5.
std::string drawing_style();
constexpr int drawing_colours = 6;

/// Collects shapes. Each has classes: "c0 fill", "c1 stroke", "frame", "faint"; and a text that a browser shows where the pointer
/// rests on it.
class Drawing {
 public:
  enum class Anchor { start, middle, end };

  void rectangle(const Box& box, std::string_view classes, std::string_view tip = {});
  void line(Point from, Point to, std::string_view classes);
  void path(const std::vector<Point>& points, std::string_view classes, std::string_view tip = {});
  /// One of four shapes around a point, so that colours are not all that tells series apart.
  void mark(Point at, int shape, std::string_view classes, std::string_view tip = {});
  /// `at` is the left, middle or right end of the text's base line.
  void text(Point at, std::string_view text, std::string_view classes = {}, Anchor anchor = Anchor::start, double turned = 0);
  /// What follows is drawn with this point as its origin.
  void move_to(Point origin) { origin_ = origin; }

  /// One element, for a page that has the style.
  std::string inline_svg(double width, double height, std::string_view title) const;
  /// A file of its own, with the style and a background.
  std::string file(double width, double height, std::string_view title) const;

 private:
  std::string x(double value) const { return coordinate(origin_.x + value); }
  std::string y(double value) const { return coordinate(origin_.y + value); }
  void shape(std::string_view name, const std::string& geometry, std::string_view classes, std::string_view tip);

  Point origin_;
  std::string body_;
};

/// About how wide a text is at 12 pixels.
double text_width(std::string_view text);

}  // namespace glgemm::tools
