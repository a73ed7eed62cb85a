// Writes pictures as SVG.
#include "drawing/drawing.hpp"

#include <array>
#include <cstdio>

namespace glgemm::tools {

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '&')
      result += "&amp;";
    else if (c == '<')
      result += "&lt;";
    else if (c == '>')
      result += "&gt;";
    else if (c == '"')
      result += "&quot;";
    else if (static_cast<unsigned char>(c) >= ' ' || c == '\n')
      result += c;  // XML has no other control characters
  }
  return result;
}

std::string coordinate(double value) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.2f", value);
  std::string result = text.data();
  result.erase(result.find_last_not_of('0') + 1);
  if (result.back() == '.') result.pop_back();
  return result == "-0" ? "0" : result;
}

// The colours of M. Okabe and K. Ito, "Color Universal Design" (jfly.uni-koeln.de/color), which the colour-blind can tell apart.
// Light: blue, vermillion, bluish green, reddish purple, orange, sky blue. Dark: those of them that stand out there come first.
std::string_view drawing_style() {
  return R"css(
svg.picture { --ink: #1b1b1b; --soft: #565656; --faint: #c9c9c9; --paper: #ffffff; --c0: #0072b2; --c1: #d55e00; --c2: #009e73;
  --c3: #cc79a7; --c4: #e69f00; --c5: #56b4e9; font: 12px system-ui, "DejaVu Sans", sans-serif; }
@media (prefers-color-scheme: dark) {
  svg.picture { --ink: #f0f0f0; --soft: #b4b4b4; --faint: #4c4c4c; --paper: #16181c; --c0: #56b4e9; --c1: #e69f00; --c2: #009e73;
    --c3: #cc79a7; --c4: #d55e00; --c5: #f0e442; } }
.picture text { fill: var(--ink); }
.picture .soft { fill: var(--soft); }
.picture .title { font-size: 14px; font-weight: 600; }
.picture .headline { font-size: 18px; font-weight: 600; }
.picture .paper { fill: var(--paper); }
.picture .frame { fill: none; stroke: var(--soft); }
.picture .faint { fill: none; stroke: var(--faint); }
.picture .grid { fill: none; stroke: var(--paper); stroke-width: 0.75; }
.picture .c0 { --c: var(--c0); } .picture .c1 { --c: var(--c1); } .picture .c2 { --c: var(--c2); }
.picture .c3 { --c: var(--c3); } .picture .c4 { --c: var(--c4); } .picture .c5 { --c: var(--c5); }
.picture .fill { fill: var(--c); }
.picture .wash { fill: var(--c); fill-opacity: 0.28; }
.picture .stroke { fill: none; stroke: var(--c); stroke-width: 2; stroke-linejoin: round; }
.picture .hollow { fill: var(--paper); stroke: var(--c); stroke-width: 2; }
.picture .dashed { stroke-dasharray: 6 4; }
)css";
}

void Drawing::shape(const std::string& name, const std::string& geometry, std::string_view classes, std::string_view tip) {
  body_ += "<" + name + " class=\"" + std::string(classes) + "\" " + geometry;
  body_ += tip.empty() ? "/>\n" : "><title>" + escaped(tip) + "</title></" + name + ">\n";
}

void Drawing::rectangle(const Box& box, std::string_view classes, std::string_view tip) {
  shape("rect",
        "x=\"" + x(box.x) + "\" y=\"" + y(box.y) + "\" width=\"" + coordinate(box.width) + "\" height=\"" +
            coordinate(box.height) + "\"",
        classes, tip);
}

void Drawing::line(Point from, Point to, std::string_view classes) {
  path({from, to}, classes);
}

void Drawing::path(const std::vector<Point>& points, std::string_view classes, std::string_view tip) {
  std::string text;
  for (const Point& at : points) text += (text.empty() ? "" : " ") + x(at.x) + "," + y(at.y);
  shape("polyline", "points=\"" + text + "\"", classes, tip);
}

void Drawing::mark(Point at, int shape_index, std::string_view classes, std::string_view tip) {
  constexpr double r = 4;
  switch (shape_index % 4) {
    case 0:
      return shape("circle", "cx=\"" + x(at.x) + "\" cy=\"" + y(at.y) + "\" r=\"4\"", classes, tip);
    case 1:
      return rectangle({at.x - 3.5, at.y - 3.5, 7, 7}, classes, tip);
    case 2:
      return path({{at.x, at.y - r - 1}, {at.x + r + 1, at.y + r}, {at.x - r - 1, at.y + r}, {at.x, at.y - r - 1}}, classes, tip);
    default:
      return path({{at.x, at.y - r - 1}, {at.x + r + 1, at.y}, {at.x, at.y + r + 1}, {at.x - r - 1, at.y}, {at.x, at.y - r - 1}},
                  classes, tip);
  }
}

void Drawing::text(Point at, std::string_view text, std::string_view classes, Anchor anchor, double turned) {
  constexpr std::array<std::string_view, 3> anchors{"start", "middle", "end"};
  body_ += "<text x=\"" + x(at.x) + "\" y=\"" + y(at.y) + "\"";
  if (anchor != Anchor::start) body_ += " text-anchor=\"" + std::string(anchors.at(static_cast<std::size_t>(anchor))) + "\"";
  if (turned != 0) body_ += " transform=\"rotate(" + coordinate(turned) + " " + x(at.x) + " " + y(at.y) + ")\"";
  if (!classes.empty()) body_ += " class=\"" + std::string(classes) + "\"";
  body_ += ">" + escaped(text) + "</text>\n";
}

namespace {

std::string begin(double width, double height, std::string_view title, const char* space = "") {
  const std::string w = coordinate(width), h = coordinate(height);
  return std::string("<svg") + space + " class=\"picture\" viewBox=\"0 0 " + w + " " + h + "\" width=\"" + w + "\" height=\"" +
         h + "\" role=\"img\">\n<title>" + escaped(title) + "</title>\n";
}

}  // namespace

std::string Drawing::inline_svg(double width, double height, std::string_view title) const {
  return begin(width, height, title) + body_ + "</svg>\n";
}

std::string Drawing::file(double width, double height, std::string_view title) const {
  return begin(width, height, title, " xmlns=\"http://www.w3.org/2000/svg\"") + "<style>" + std::string(drawing_style()) +
         "</style>\n<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n" + body_ + "</svg>\n";
}

double text_width(std::string_view text) {
  return 6.6 * static_cast<double>(text.size());
}

}  // namespace glgemm::tools
