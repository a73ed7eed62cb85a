// What glgemm-view shows, without OpenGL: the digit that is drawn, where each layer's product lies in the window, and
// the picture around them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "drawing/image.hpp"

namespace glgemm::tools {

/// A digit of 8 x 8 cells, from 0 (paper) to 1 (ink), row after row.
inline constexpr int digit_side = 8;
using Digit = std::array<float, digit_side * digit_side>;

/// A place on the cells' paper: the cell in the upper left corner reaches from 0, 0 to 1, 1.
struct CellPoint {
  double x = 0, y = 0;
};

enum class Pen { draws, erases };
/// Moves a pen in a straight line. Its stroke is about as wide as in the digits that the network has learnt; an eraser is
/// wider.
void move_pen(Digit& digit, CellPoint from, CellPoint to, Pen pen);

/// The digit that strokes give: "3,1 5,1 4,7" is a stroke through these points, and a semicolon begins another.
/// @throws std::invalid_argument  it is no such text; the message has the part that is wrong
Digit draw_strokes(std::string_view strokes);

/// Some maps of size x size cells, in rows of so many, in pixels from the window's upper left corner: one for each channel of a
/// layer's output. Its element (y, x) of channel c is element (y size + x) channels + c of the product's buffer.
struct MapPanel {
  int x = 0, y = 0;
  int cell = 0;     ///< a cell's side
  int gap = 0;      ///< between maps
  int columns = 1;  ///< maps in a row
  int channels = 1;
  int size = 1;
  int line = 0;               ///< between cells
  float least = 0, most = 1;  ///< elements from `least` to `most` have a colour of their own

  int pitch() const { return cell * size + gap; }
  int width() const { return columns * pitch() - gap; }
  int height() const { return (channels + columns - 1) / columns * pitch() - gap; }
};

struct DigitLayout {
  MapPanel input;
  std::array<MapPanel, 3> outputs;  ///< of the layers
  /// The answer's bars, beside the last layer's ten maps of one cell.
  int bars_x = 0, bars_width = 0;
};
DigitLayout digit_layout(int width, int height);

/// The cell's place under a pixel; it may lie outside of the cells.
CellPoint cell_at(const MapPanel& input, double x, double y);

struct Answer {
  std::array<double, 10> shares{};  ///< of 1, by the scores' softmax
  int digit() const;
};
Answer answer_of(std::span<const float, 10> scores);

/// "This is a 3 (99.8 %)"; without an answer, what to do, or why there is none.
std::string text_of(const Digit& digit, const std::optional<Answer>& answer);

inline constexpr std::uint32_t background_colour = 0x14161b, ink_colour = 0xf1f3f5, faint_colour = 0x98a1ab;
inline constexpr std::uint32_t answer_colour = 0xffd43b, other_colour = 0x5c7cfa;  ///< of the bars

/// All of the window but the maps: heading, caption, titles and bars.
Picture digit_surroundings(int width, int height, const std::string& heading, const std::optional<Answer>& answer);

}  // namespace glgemm::tools
