// Pictures of matrices: see image.hpp.
#include "drawing/image.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <new>
#include <numbers>
#include <stdexcept>

#define STB_IMAGE_WRITE_STATIC
#define STB_IMAGE_WRITE_IMPLEMENTATION
#include <fmt/core.h>
#include <stb/stb_easy_font.h>
#include <stb/stb_image_write.h>

#include "files/npy.hpp"

namespace glgemm::tools {
namespace {

constexpr std::int64_t max_cells = 2048;   ///< along a side: more are reduced
constexpr std::int64_t wanted_side = 600;  ///< pixels: smaller maps are enlarged to at least this
constexpr std::int64_t min_side = 48;      ///< pixels: a map of few rows or columns is stretched to this
constexpr int min_width = 560;             ///< pixels of the whole picture
constexpr int margin = 32;
constexpr int gap = 20;  ///< between the parts
constexpr int bar_width = 24;
constexpr std::uint32_t ink = 0x212529;
constexpr std::uint32_t faint_ink = 0x5c636a;

std::string number(double value) {
  return fmt::format("{:.6g}", value);
}

constexpr int line_height(int scale) {
  return 13 * scale;
}

/// The font has printable ASCII only.
std::string printable(std::string text) {
  for (char& c : text)
    if (c < ' ' || c > '~') c = '?';
  return text;
}

}  // namespace

void fill(Picture& picture, int x0, int y0, int width, int height, std::uint32_t rgb) {
  const int x1 = std::min(x0 + width, picture.width);
  const int y1 = std::min(y0 + height, picture.height);
  for (int y = std::max(y0, 0); y < y1; ++y)
    for (int x = std::max(x0, 0); x < x1; ++x) {
      unsigned char* pixel =
          &picture.rgb[3 * (static_cast<std::size_t>(y) * static_cast<std::size_t>(picture.width) + static_cast<std::size_t>(x))];
      pixel[0] = static_cast<unsigned char>(rgb >> 16);
      pixel[1] = static_cast<unsigned char>(rgb >> 8 & 0xff);
      pixel[2] = static_cast<unsigned char>(rgb & 0xff);
    }
}

// Text in stb's font: glyphs of rectangles, 7 units high above the line and 2 below, of `scale` pixels each.

int text_width(const std::string& text, int scale) {
  std::string copy = printable(text);
  stb_easy_font_spacing(0);
  return stb_easy_font_width(copy.data()) * scale;
}

void draw_text(Picture& picture, int x, int y, const std::string& text, int scale, std::uint32_t rgb) {
  struct Vertex {
    float x, y, z;
    std::array<unsigned char, 4> colour;
  };
  std::string copy = printable(text);
  std::vector<Vertex> vertices(4 * 32 * (copy.size() + 1));  // no glyph has as many as 32 rectangles
  const int quads =
      stb_easy_font_print(0, 0, copy.data(), nullptr, vertices.data(), static_cast<int>(vertices.size() * sizeof(Vertex)));
  for (int q = 0; q < quads; ++q) {
    const Vertex& from = vertices[static_cast<std::size_t>(4 * q)];
    const Vertex& to = vertices[static_cast<std::size_t>(4 * q + 2)];
    fill(picture, x + scale * static_cast<int>(from.x), y + scale * static_cast<int>(from.y),
         scale * static_cast<int>(to.x - from.x), scale * static_cast<int>(to.y - from.y), rgb);
  }
}

namespace {

/// The text in lines no wider than `width`, broken at spaces; a longer word loses its middle.
std::vector<std::string> wrapped(const std::string& text, int scale, int width) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    std::string word = text.substr(begin, end - begin);
    begin = end + 1;
    if (text_width(word, scale) > width) {
      std::size_t kept = word.size() / 2;
      const auto shortened = [&] { return word.substr(0, kept) + "..." + word.substr(word.size() - kept); };
      while (kept > 1 && text_width(shortened(), scale) > width) --kept;
      word = shortened();
    }
    if (!lines.empty() && text_width(lines.back() + ' ' + word, scale) <= width)
      lines.back() += ' ' + word;
    else
      lines.push_back(word);
  }
  return lines;
}

enum class Reduce { mean, greatest };

/// What the map shows: the matrix, or blocks of it. NaN stands for what has no colour.
struct Cells {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t block_rows = 1;
  std::int64_t block_columns = 1;
  std::vector<double> values;
};

Cells reduce(const Matrix<float>& matrix, Reduce how, double greatest_allowed) {
  Cells cells;
  // How many elements go into one cell along a side; a side that is short already is not reduced below what can be seen.
  const std::int64_t most = (std::max(matrix.rows(), matrix.columns()) + max_cells - 1) / max_cells;
  cells.block_rows = std::min(most, std::max<std::int64_t>(1, matrix.rows() / min_side));
  cells.block_columns = std::min(most, std::max<std::int64_t>(1, matrix.columns() / min_side));
  cells.rows = (matrix.rows() + cells.block_rows - 1) / cells.block_rows;
  cells.columns = (matrix.columns() + cells.block_columns - 1) / cells.block_columns;
  cells.values.reserve(static_cast<std::size_t>(cells.rows * cells.columns));
  for (std::int64_t i0 = 0; i0 < matrix.rows(); i0 += cells.block_rows)
    for (std::int64_t j0 = 0; j0 < matrix.columns(); j0 += cells.block_columns) {
      const std::int64_t i1 = std::min(i0 + cells.block_rows, matrix.rows());
      const std::int64_t j1 = std::min(j0 + cells.block_columns, matrix.columns());
      double sum = 0;
      double greatest = -std::numeric_limits<double>::infinity();
      bool shown = true;
      for (std::int64_t i = i0; i < i1; ++i)
        for (std::int64_t j = j0; j < j1; ++j) {
          const double value = matrix(i, j);
          shown = shown && std::isfinite(value) && value <= greatest_allowed;
          sum += value;
          greatest = std::max(greatest, value);
        }
      const double value = how == Reduce::mean ? sum / static_cast<double>((i1 - i0) * (j1 - j0)) : greatest;
      cells.values.push_back(shown ? value : std::numeric_limits<double>::quiet_NaN());
    }
  return cells;
}

struct Range {
  double least = 0;
  double greatest = 0;
};

/// The range of the finite values; 0 to 0 if there is none.
template <class Values>
Range range_of(const Values& values) {
  Range range{std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};
  for (const double value : values)
    if (std::isfinite(value)) {
      range.least = std::min(range.least, value);
      range.greatest = std::max(range.greatest, value);
    }
  return range.least <= range.greatest ? range : Range{};
}

/// Pixels along one side for each cell: a whole number.
std::int64_t cell_pixels(std::int64_t cells, std::int64_t longest) {
  const std::int64_t even = (wanted_side + longest - 1) / longest;
  return cells * even >= min_side ? even : (min_side + cells - 1) / cells;
}

Picture draw(const Cells& cells, const Range& range, const std::string& title, const std::string& caption, const std::string& top,
             const std::string& bottom) {
  const std::int64_t longest = std::max(cells.rows, cells.columns);
  const int cell_width = static_cast<int>(cell_pixels(cells.columns, longest));
  const int cell_height = static_cast<int>(cell_pixels(cells.rows, longest));
  const int map_width = static_cast<int>(cells.columns) * cell_width;
  const int map_height = static_cast<int>(cells.rows) * cell_height;
  const int scale = std::max(map_width, map_height) > 1200 ? 3 : 2;
  const int title_scale = scale + 1;

  const int label_width = std::max(text_width(top, scale), text_width(bottom, scale));
  const int right = gap + bar_width + gap / 2 + label_width;
  const int width = std::max(margin + map_width + right + margin, min_width);
  const auto title_lines = wrapped(title, title_scale, width - 2 * margin);
  const auto caption_lines = wrapped(caption, scale, width - 2 * margin);
  const int title_height = static_cast<int>(title_lines.size()) * line_height(title_scale);
  const int caption_height = static_cast<int>(caption_lines.size()) * line_height(scale);
  // The bar is as high as the map, but not lower than its two labels.
  const int bar_height = std::max(map_height, 3 * line_height(scale));

  const int height = margin + title_height + caption_height + gap + bar_height + margin;
  Picture picture{width, height, {}};
  picture.rgb.assign(3 * static_cast<std::size_t>(width) * static_cast<std::size_t>(height), 0xff);

  int y = margin;
  for (const std::string& line : title_lines) {
    draw_text(picture, margin, y, line, title_scale, ink);
    y += line_height(title_scale);
  }
  for (const std::string& line : caption_lines) {
    draw_text(picture, margin, y, line, scale, faint_ink);
    y += line_height(scale);
  }
  y += gap;

  std::array<std::uint32_t, 256> colours{};
  for (std::size_t i = 0; i < colours.size(); ++i) colours[i] = colour(static_cast<double>(i) / (colours.size() - 1));
  const double span = range.greatest - range.least;
  const auto colour_at = [&](double part) { return colours[static_cast<std::size_t>(255 * (span > 0 ? part : 0.5) + 0.5)]; };
  const int map_x = margin;
  const int map_y = y + (bar_height - map_height) / 2;
  for (std::int64_t i = 0; i < cells.rows; ++i)
    for (std::int64_t j = 0; j < cells.columns; ++j) {
      const double value = cells.values[static_cast<std::size_t>(i * cells.columns + j)];
      const std::uint32_t rgb = std::isnan(value) ? out_of_range_colour : colour_at((value - range.least) / span);
      fill(picture, map_x + static_cast<int>(j) * cell_width, map_y + static_cast<int>(i) * cell_height, cell_width, cell_height,
           rgb);
    }

  const int bar_x = map_x + map_width + gap;
  for (int row = 0; row < bar_height; ++row) fill(picture, bar_x, y + row, bar_width, 1, colour_at(1 - (row + 0.5) / bar_height));
  const int label_x = bar_x + bar_width + gap / 2;
  if (top == bottom) {
    draw_text(picture, label_x, y + (bar_height - 9 * scale) / 2, top, scale, ink);
  } else {
    draw_text(picture, label_x, y, top, scale, ink);
    draw_text(picture, label_x, y + bar_height - 9 * scale, bottom, scale, ink);
  }
  return picture;
}

void require_elements(const Matrix<float>& matrix, const std::string& title) {
  if (matrix.size() == 0)
    throw std::invalid_argument("a picture of '" + title + "' cannot be drawn: a " + size_text(matrix.rows(), matrix.columns()) +
                                " matrix has no elements");
}

std::string count_text(std::int64_t count, const std::string& what) {
  return fmt::format("{} element{} {}", count, count == 1 ? "" : "s", what);
}

}  // namespace

std::uint32_t colour(double value) noexcept {
  // A path through Oklab (Bjoern Ottosson, "A perceptual color space for image processing", 2020), in which equal distances look
  // equal: the lightness grows evenly while the hue turns evenly from violet over blue and green to yellow. The chroma is a
  // parabola that stays within what sRGB can show.
  const double t = std::isnan(value) ? 0 : std::clamp(value, 0.0, 1.0);
  const double lightness = 0.28 + 0.66 * t;
  const double hue = (305 - 198 * t) * std::numbers::pi / 180;
  const double chroma = 0.14 - 0.20 * t + 0.25 * t * t;
  const double a = chroma * std::cos(hue);
  const double b = chroma * std::sin(hue);
  const double l = std::pow(lightness + 0.3963377774 * a + 0.2158037573 * b, 3);
  const double m = std::pow(lightness - 0.1055613458 * a - 0.0638541728 * b, 3);
  const double s = std::pow(lightness - 0.0894841775 * a - 1.2914855480 * b, 3);
  const std::array<double, 3> linear{4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
                                     -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
                                     -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s};
  std::uint32_t rgb = 0;
  for (const double channel : linear) {
    const double light = std::clamp(channel, 0.0, 1.0);
    const double encoded = light <= 0.0031308 ? 12.92 * light : 1.055 * std::pow(light, 1 / 2.4) - 0.055;
    rgb = rgb << 8 | static_cast<std::uint32_t>(std::lround(255 * encoded));
  }
  return rgb;
}

Picture heat_map(const Matrix<float>& values, const std::string& title) {
  require_elements(values, title);
  const Cells cells = reduce(values, Reduce::mean, std::numeric_limits<double>::infinity());
  const Range range = range_of(cells.values);
  std::string caption = size_text(values.rows(), values.columns());
  if (cells.block_rows * cells.block_columns > 1) {
    const Range elements = range_of(values.elements());
    caption += ", means of blocks of " + size_text(cells.block_rows, cells.block_columns) + "; elements from " +
               number(elements.least) + " to " + number(elements.greatest);
  }
  const auto lost = std::count_if(values.elements().begin(), values.elements().end(), [](float v) { return !std::isfinite(v); });
  if (lost > 0) caption += "; red: " + count_text(lost, "NaN or infinite");
  const bool any = lost < values.size();
  return draw(cells, range, title, caption, any ? number(range.greatest) : "none", any ? number(range.least) : "none");
}

Picture error_map(const Matrix<float>& ratios, const std::string& title) {
  require_elements(ratios, title);
  const Cells cells = reduce(ratios, Reduce::greatest, 1);
  const auto over = std::count_if(ratios.elements().begin(), ratios.elements().end(), [](float v) { return !(v <= 1); });
  const double greatest = range_of(cells.values).greatest;
  const bool to_bound = over > 0 || greatest == 0;
  const Range range{0, to_bound ? 1 : greatest};
  std::string caption = size_text(ratios.rows(), ratios.columns());
  if (cells.block_rows * cells.block_columns > 1)
    caption += ", greatest of blocks of " + size_text(cells.block_rows, cells.block_columns);
  const std::string bound = "the bound gamma_k |A||B|";
  if (over > 0)
    caption += "; red: " + count_text(over, "with an error over " + bound);
  else if (greatest > 0)
    caption += "; greatest error: " + number(greatest) + " of " + bound;
  else
    caption += "; no error";
  return draw(cells, range, title, caption, to_bound ? "1 (bound)" : number(range.greatest), "0");
}

void write_png(OutputFile& file, const Picture& picture) {
  std::vector<unsigned char> png;
  const auto append = [](void* context, void* data, int size) {
    auto& bytes = *static_cast<std::vector<unsigned char>*>(context);
    const auto* begin = static_cast<const unsigned char*>(data);
    bytes.insert(bytes.end(), begin, begin + size);
  };
  if (!stbi_write_png_to_func(append, &png, picture.width, picture.height, 3, picture.rgb.data(), 3 * picture.width))
    throw std::bad_alloc();
  file.write(png.data(), png.size());
}

}  // namespace glgemm::tools
