// Writes pictures as SVG.
#include "drawing/drawing.hpp"

#include <algorithm>
#include <array>

#include <fmt/core.h>

namespace glgemm::tools {
namespace {

struct Colour {
  std::string_view name, value;
};
// The colours of M. Okabe and K. Ito, "Color Universal Design" (jfly.uni-koeln.de/color), which the colour-blind can tell apart.
// c0 to c5 are blue, vermillion, bluish green, reddish purple, orange and sky blue.
constexpr std::array<Colour, 10> palette{{{"ink", "#1b1b1b"},
                                          {"soft", "#565656"},
                                          {"faint", "#c9c9c9"},
                                          {"paper", "#ffffff"},
                                          {"c0", "#0072b2"},
                                          {"c1", "#d55e00"},
                                          {"c2", "#009e73"},
                                          {"c3", "#cc79a7"},
                                          {"c4", "#e69f00"},
                                          {"c5", "#56b4e9"}}};

/// What a class means: its colours by their names, "c" being the shape's own, c0 to c5; and attributes of SVG.
struct Look {
  std::string_view name, fill, stroke, attributes;
};
constexpr std::array<Look, 8> looks{{{"title", "", "", " font-size=\"14\" font-weight=\"600\""},
                                     {"headline", "", "", " font-size=\"18\" font-weight=\"600\""},
                                     {"paper", "paper", "", ""},
                                     {"frame", "none", "soft", ""},
                                     {"faint", "none", "faint", ""},
                                     {"grid", "none", "paper", " stroke-width=\"0.75\""},
                                     {"fill", "c", "", ""},
                                     {"wash", "c", "", " fill-opacity=\"0.28\""}}};

/// The classes as SVG.
std::string attributes(std::string_view classes) {
  std::string text;
  const auto has = [words = fmt::format(" {} ", classes)](std::string_view name) {
    return words.find(fmt::format(" {} ", name)) != std::string::npos;
  };
  const auto add = [&](const char* what, std::string_view name) {
    const auto colour = std::find_if(palette.begin(), palette.end(), [&](const Colour& one) {
      return name == "c" ? one.name.size() == 2 && has(one.name) : one.name == name;
    });
    if (!name.empty()) text += fmt::format(" {}=\"{}\"", what, colour == palette.end() ? name : colour->value);
  };
  for (const Look& look : looks)
    if (has(look.name)) {
      add("fill", look.fill);
      add("stroke", look.stroke);
      text += look.attributes;
    }
  return text;
}

}  // namespace

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
  std::string result = fmt::format("{:.2f}", value);
  result.erase(result.find_last_not_of('0') + 1);
  if (result.back() == '.') result.pop_back();
  return result == "-0" ? "0" : result;
}

void Drawing::shape(std::string_view name, const std::string& geometry, std::string_view classes, std::string_view tip) {
  body_ += fmt::format("<{}{} {}", name, attributes(classes), geometry);
  body_ += tip.empty() ? "/>\n" : fmt::format("><title>{}</title></{}>\n", escaped(tip), name);
}

void Drawing::rectangle(const Box& box, std::string_view classes, std::string_view tip) {
  shape("rect",
        fmt::format(R"(x="{}" y="{}" width="{}" height="{}")", x(box.x), y(box.y), coordinate(box.width), coordinate(box.height)),
        classes, tip);
}

void Drawing::line(Point from, Point to, std::string_view classes) {
  shape("polyline", fmt::format(R"(points="{},{} {},{}")", x(from.x), y(from.y), x(to.x), y(to.y)), classes, {});
}

void Drawing::text(Point at, std::string_view text, std::string_view classes, Anchor anchor) {
  constexpr std::array<std::string_view, 3> anchors{"start", "middle", "end"};
  body_ += fmt::format(R"(<text x="{}" y="{}")", x(at.x), y(at.y));
  if (anchor != Anchor::start) body_ += fmt::format(R"( text-anchor="{}")", anchors.at(static_cast<std::size_t>(anchor)));
  body_ += fmt::format("{}>{}</text>\n", attributes(classes), escaped(text));
}

std::string Drawing::file(double width, double height, std::string_view title) const {
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" fill=\"{0}\" font-family=\"system-ui, 'DejaVu Sans', "
             "sans-serif\" font-size=\"12\" viewBox=\"0 0 {1} {2}\" width=\"{1}\" height=\"{2}\" "
             "role=\"img\">\n<title>{3}</title>\n",
             palette[0].value, coordinate(width), coordinate(height), escaped(title)) +
         "<rect" + attributes("paper") + " width=\"100%\" height=\"100%\"/>\n" + body_ + "</svg>\n";
}

}  // namespace glgemm::tools
