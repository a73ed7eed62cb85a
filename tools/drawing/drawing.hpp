// Pictures of rectangles, lines and text, as SVG.
#pragma once

#include <string>
#include <string_view>

namespace glgemm::tools {

/// In pixels; y grows downwards.
struct Point {
  double x = 0, y = 0;
};
struct Box {
  double x = 0, y = 0, width = 0, height = 0;
};

/// As text of SVG.
std::string escaped(std::string_view text);

/// A number as SVG writes it: at most two decimals.
std::string coordinate(double value);

/// Collects shapes. Each has classes: "c0 fill" to "c5 fill", "c1 wash", "frame", "faint"; and a text that a browser shows where
/// the pointer rests on it.
class Drawing {
 public:
  enum class Anchor { start, middle, end };

  void rectangle(const Box& box, std::string_view classes, std::string_view tip = {});
  void line(Point from, Point to, std::string_view classes);
  /// `at` is the left, middle or right end of the text's base line.
  void text(Point at, std::string_view text, std::string_view classes = {}, Anchor anchor = Anchor::start);
  /// What follows is drawn with this point as its origin.
  void move_to(Point origin) { origin_ = origin; }

  /// A file of its own, with a background.
  std::string file(double width, double height, std::string_view title) const;

 private:
  std::string x(double value) const { return coordinate(origin_.x + value); }
  std::string y(double value) const { return coordinate(origin_.y + value); }
  void shape(std::string_view name, const std::string& geometry, std::string_view classes, std::string_view tip);

  Point origin_;
  std::string body_;
};

}  // namespace glgemm::tools
