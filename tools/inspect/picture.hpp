// What the pictures of plans have in common.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "drawing/drawing.hpp"
#include "inspect/numbers.hpp"

namespace glgemm::tools {

constexpr double panel_width = 470;
constexpr std::size_t panel_characters = 68;  ///< of text, across a panel
constexpr double text_line = 17;

/// "1.5 MiB".
inline std::string binary_bytes_text(std::int64_t bytes) {
  constexpr std::array<const char*, 5> units{"bytes", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < units.size(); ++unit) value /= 1024;
  return decimal(unit == 0 ? value : std::round(value * 100) / 100) + " " + units.at(unit);
}

/// Lengths as they are drawn: in proportion where that leaves the shortest one legible, else by a power that does.
class Proportions {
 public:
  explicit Proportions(std::initializer_list<std::int64_t> lengths) {
    double least = 1e300, most = 1;
    for (const std::int64_t length : lengths) {
      least = std::min(least, static_cast<double>(std::max<std::int64_t>(1, length)));
      most = std::max(most, static_cast<double>(length));
    }
    constexpr double widest = 6;
    if (most / least > widest) power_ = std::log(widest) / std::log(most / least);
  }
  double operator()(std::int64_t length) const {
    return std::pow(static_cast<double>(std::max<std::int64_t>(1, length)), power_);
  }
  bool true_to_scale() const { return power_ == 1; }

 private:
  double power_ = 1;
};

/// Lines below each other, the long ones wrapped.  @return where they end
inline double lines_of_text(Drawing& picture, double x, double y, const std::vector<std::string>& lines,
                            std::size_t most = panel_characters) {
  for (std::string line : lines)
    while (!line.empty()) {
      const std::size_t space = line.size() <= most ? std::string::npos : line.rfind(' ', most);
      picture.text({x, y += text_line}, line.substr(0, space));
      line = space == std::string::npos ? "" : "  " + line.substr(space + 1);
    }
  return y;
}

/// What is moved or stored, and its bytes as a bar in one of the classes of Drawing.
struct BytesRow {
  const char* name;
  std::int64_t bytes;
  const char* classes;
};
/// Bars below each other, under a title.  @return where they end
inline double draw_bars(Drawing& picture, const std::vector<BytesRow>& rows) {
  picture.text({0, 14}, "Bytes", "title");
  std::int64_t most = 1;
  for (const BytesRow& row : rows) most = std::max(most, row.bytes);
  double y = 22;
  for (const BytesRow& row : rows) {
    picture.text({110, y + 13}, row.name, {}, Drawing::Anchor::end);
    const double width = row.bytes == 0 ? 0 : std::max(1.0, 240 * static_cast<double>(row.bytes) / static_cast<double>(most));
    picture.rectangle({118, y + 2, width, 14}, row.classes, grouped(row.bytes) + " bytes");
    picture.text({126 + width, y + 13}, binary_bytes_text(row.bytes));
    y += 20;
  }
  return y;
}

}  // namespace glgemm::tools
