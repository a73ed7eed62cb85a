// Pictures of matrices: heat maps with a title and a colour bar, written as PNG.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <glgemm/matrix.hpp>

#include "files/files.hpp"

namespace glgemm::tools {

/// Pixels, row after row from the top, three bytes (red, green, blue) each.
struct Picture {
  int width = 0;
  int height = 0;
  std::vector<unsigned char> rgb;
};

/// Fills a rectangle of the picture, as far as it lies in it; colours are 0xRRGGBB.
void fill(Picture& picture, int x0, int y0, int width, int height, std::uint32_t rgb);
/// Draws a line of text (what is not printable ASCII is drawn as ?) from its upper left corner on, in glyphs that are 9 * scale
/// pixels high, what reaches below the line included. It is cut off at the picture's edge.
void draw_text(Picture& picture, int x, int y, const std::string& text, int scale, std::uint32_t rgb);
int text_width(const std::string& text, int scale);

/// A heat map of the elements, row 0 at the top, from the least (dark violet) to the greatest (yellow); elements that are not
/// finite are red, and their number is stated. Small matrices are enlarged by whole factors, those over 2048 reduced: a cell then
/// is the mean of a block of elements.
/// @throws std::invalid_argument  the matrix has no elements
Picture heat_map(const Matrix<float>& values, const std::string& title);

/// A heat map of error_ratios() (glgemm/verify.hpp): from no error to the greatest, or to the bound if that is passed or there is
/// no error at all; elements that are not within the bound are red, and their number is stated. Where it is reduced a cell is the
/// greatest of a block.
/// @throws std::invalid_argument  the matrix has no elements
Picture error_map(const Matrix<float>& ratios, const std::string& title);

/// The colour for a value from 0 to 1, clamped: 0xRRGGBB.
std::uint32_t colour(double value) noexcept;
/// The colour of what has none on the scale: NaN, infinity, an error over its bound.
inline constexpr std::uint32_t out_of_range_colour = 0xe03131;

/// @throws FileError  as OutputFile::write
void write_png(OutputFile& file, const Picture& picture);

}  // namespace glgemm::tools
