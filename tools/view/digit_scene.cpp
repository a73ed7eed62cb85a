// The digit that is drawn, and the picture around its network: see digit_scene.hpp.
#include "view/digit_scene.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include <fmt/core.h>

namespace glgemm::tools {
namespace {

constexpr int digit_margin = 28;
constexpr int digit_top = 132;  ///< of the maps: above are heading, caption and titles
constexpr int digit_bottom = 56;
constexpr int between = 6;    ///< panels, in units
constexpr int bar_pitch = 7;  ///< in units: a bar, and the gap to the next
constexpr int units_across = 268, units_down = 72;
constexpr double pen_radius = 0.8, eraser_radius = 1.5;

/// From a point to a segment.
double distance(CellPoint p, CellPoint from, CellPoint to) {
  const double dx = to.x - from.x, dy = to.y - from.y, length = dx * dx + dy * dy;
  const double t = length > 0 ? std::clamp(((p.x - from.x) * dx + (p.y - from.y) * dy) / length, 0.0, 1.0) : 0;
  return std::hypot(p.x - from.x - t * dx, p.y - from.y - t * dy);
}

CellPoint parse_point(std::string_view text) {
  CellPoint point;
  const char* const end = text.data() + text.size();
  const auto x = std::from_chars(text.data(), end, point.x);
  if (x.ec == std::errc() && x.ptr != end && *x.ptr == ',') {
    const auto y = std::from_chars(x.ptr + 1, end, point.y);
    if (y.ec == std::errc() && y.ptr == end && std::abs(point.x) <= 100 && std::abs(point.y) <= 100) return point;
  }
  throw std::invalid_argument(fmt::format("'{}' is no point of a stroke, such as 3,1.5", text));
}

/// What stands between the separators, without what is empty.
std::vector<std::string_view> parts(std::string_view text, char separator) {
  std::vector<std::string_view> result;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (end > 0) result.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return result;
}

}  // namespace

void move_pen(Digit& digit, CellPoint from, CellPoint to, Pen pen) {
  const double radius = pen == Pen::draws ? pen_radius : eraser_radius;
  for (int y = 0; y < digit_side; ++y)
    for (int x = 0; x < digit_side; ++x) {
      const double covered = std::clamp(radius + 0.5 - distance({x + 0.5, y + 0.5}, from, to), 0.0, 1.0);
      float& cell = digit[static_cast<std::size_t>(y * digit_side + x)];
      if (pen == Pen::draws)
        cell = std::max(cell, static_cast<float>(covered));
      else
        cell = std::min(cell, static_cast<float>(1 - covered));
    }
}

Digit draw_strokes(std::string_view strokes) {
  Digit digit{};
  for (const std::string_view stroke : parts(strokes, ';')) {
    std::optional<CellPoint> before;
    for (const std::string_view text : parts(stroke, ' ')) {
      const CellPoint point = parse_point(text);
      move_pen(digit, before.value_or(point), point, Pen::draws);
      before = point;
    }
  }
  return digit;
}

DigitLayout digit_layout(int width, int height) {
  const int unit =
      std::max(1, std::min((width - 2 * digit_margin) / units_across, (height - digit_top - digit_bottom) / units_down));
  const int gap = between * unit, y = digit_top;
  DigitLayout all;
  all.input = {.x = digit_margin, .y = y, .cell = 9 * unit, .size = digit_side, .line = 1};
  const auto beside = [&](const MapPanel& left, int gaps, MapPanel panel) {
    panel.x = left.x + left.width() + gaps * gap;
    panel.y = y;
    panel.gap = unit;
    return panel;
  };
  auto& [first, second, last] = all.outputs;
  first = beside(all.input, 1, {.cell = 2 * unit, .columns = 4, .channels = 16, .size = 8, .most = 2.5f});
  second = beside(first, 1, {.cell = 2 * unit, .columns = 4, .channels = 32, .size = 4, .most = 6});
  last = beside(second, 2, {.cell = (bar_pitch - 1) * unit, .channels = 10, .least = -25, .most = 25});
  all.bars_x = last.x + last.width() + gap;
  all.bars_width = 32 * unit;
  return all;
}

CellPoint cell_at(const MapPanel& input, double x, double y) {
  return {(x - input.x) / input.cell, (y - input.y) / input.cell};
}

int Answer::digit() const {
  return static_cast<int>(std::max_element(shares.begin(), shares.end()) - shares.begin());
}

Answer answer_of(std::span<const float, 10> scores) {
  Answer answer;
  const double most = *std::max_element(scores.begin(), scores.end());
  std::transform(scores.begin(), scores.end(), answer.shares.begin(), [most](float score) { return std::exp(score - most); });
  const double sum = std::accumulate(answer.shares.begin(), answer.shares.end(), 0.0);
  for (double& share : answer.shares) share /= sum;
  return answer;
}

std::string text_of(const Digit& digit, const std::optional<Answer>& answer) {
  if (!answer) return digit == Digit() ? "Draw a digit" : "Red is not computed yet";
  const int best = answer->digit();
  return fmt::format("This is a{} {} ({:.1f} %)", best == 8 ? "n" : "", best,
                     100 * answer->shares[static_cast<std::size_t>(best)]);
}

Picture digit_surroundings(int width, int height, const std::string& heading, const std::optional<Answer>& answer) {
  Picture picture{width, height,
                  std::vector<unsigned char>(3 * static_cast<std::size_t>(width) * static_cast<std::size_t>(height))};
  fill(picture, 0, 0, width, height, background_colour);
  draw_text(picture, digit_margin, 26, heading, 3, ink_colour);
  draw_text(picture, digit_margin, 66,
            "left: draw   right: erase   c: clear   0 to 9: an example   s: a slice   h: help   esc: quit", 2, faint_colour);
  const DigitLayout all = digit_layout(width, height);
  const int titles = digit_top - 24, shapes = digit_top + all.input.height() + 10;
  const auto beside = [&](int x, const char* title, const char* shape) {
    draw_text(picture, x, titles, title, 2, ink_colour);
    draw_text(picture, x, shapes, shape, 2, faint_colour);
  };
  beside(all.input.x, "draw here", "C = A B, m x n x k:");
  beside(all.outputs[0].x, "conv, 16 maps", "64 x 16 x 9");
  beside(all.outputs[1].x, "conv, 32 maps", "16 x 32 x 144");
  beside(all.outputs[2].x, "dense, 10 scores", "1 x 10 x 512");
  const MapPanel& scores = all.outputs[2];
  for (int digit = 0; digit < 10; ++digit) {
    const int y = scores.y + digit * scores.pitch(), text_y = y + (scores.cell - 14) / 2;
    const bool best = answer && answer->digit() == digit;
    draw_text(picture, all.bars_x, text_y, std::to_string(digit), 2, best ? answer_colour : ink_colour);
    if (!answer) continue;
    const double share = answer->shares[static_cast<std::size_t>(digit)];
    const int x = all.bars_x + 24, length = std::max(1, static_cast<int>(share * all.bars_width + 0.5));
    fill(picture, x, y, length, scores.cell, best ? answer_colour : other_colour);
    draw_text(picture, x + length + 8, text_y, fmt::format("{:.1f} %", 100 * share), 2, best ? answer_colour : faint_colour);
  }
  return picture;
}

}  // namespace glgemm::tools
