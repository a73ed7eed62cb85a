// The matrices of glgemm-view's product and the picture around the map of C: see scene.hpp.
#include "view/scene.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <stdexcept>

#include <fmt/core.h>

namespace glgemm::tools {
namespace {

constexpr int margin = 28;
constexpr int top = 104;  ///< of the map: above are heading and caption
constexpr int gap = 20;
constexpr int bar_width = 22;
constexpr int labels = 96;  ///< the width of the numbers beside the bar

std::uint32_t unit(const Scene& scene) {
  return static_cast<std::uint32_t>((std::uint64_t{1} << 32) / static_cast<std::uint64_t>(scene.n));
}

float element(const Scene& scene, float value) {
  return is_integer(scene.type) ? std::floor(value + 0.5f) : value;
}

template <class T>
std::vector<std::byte> convert_to(const Matrix<float>& matrix) {
  std::vector<std::byte> bytes((static_cast<std::size_t>(matrix.size()) * sizeof(T) + 3) / 4 * 4);
  std::byte* to = bytes.data();
  for (const float value : matrix.elements()) {
    const T element(static_cast<T>(value));
    std::memcpy(to, &element, sizeof(T));
    to += sizeof(T);
  }
  return bytes;
}

}  // namespace

Scene make_scene(std::int64_t n, Type type) {
  if (n < 1) throw std::invalid_argument(fmt::format("a product of {0}x{0} matrices cannot be shown", n));
  if (std::find(shown_types.begin(), shown_types.end(), type) == shown_types.end()) {
    std::string shown;
    for (const Type one : shown_types) shown += fmt::format("{}{}", shown.empty() ? "" : ", ", to_string(one));
    throw std::invalid_argument(
        fmt::format("elements of type {} cannot be shown; of these they can: {}", to_string(type), shown));
  }
  Scene scene{.n = n, .type = type, .c_type = is_type_of_c(type, type) ? type : accumulator(type), .waves = {}};
  std::mt19937 engine(7);  // its numbers are equal on all systems; the numbers of a distribution need not be
  const auto random = [&engine] { return static_cast<std::uint32_t>(engine()); };
  double power = 0, greatest = 0;
  for (std::int64_t p = 0; p < n; ++p) {
    Wave wave;
    wave.row_frequency = 1 + random() % 9;
    wave.column_frequency = 1 + random() % 9;
    wave.row_offset = random();
    wave.column_offset = random();
    const std::uint32_t speed = 1 + random() % 3;
    wave.speed = random() % 2 ? speed : 0 - speed;
    const double frequency = std::hypot(wave.row_frequency, wave.column_frequency);
    wave.amplitude = static_cast<float>(std::pow(frequency, -1.7));
    power += static_cast<double>(wave.amplitude) * static_cast<double>(wave.amplitude);
    greatest = std::max(greatest, static_cast<double>(wave.amplitude));
    scene.waves.push_back(wave);
  }
  // The mean square of wave() is 8/15. C is a sum of many independent products of two waves, so nearly all of its elements are
  // within 3 standard deviations. The scale makes 3 standard deviations 1.
  const double deviation = 8.0 / 15.0 * std::sqrt(power);
  double scale = 1 / (3 * deviation);
  if (is_integer(type)) {
    scene.scale = 127;
    scale = 127 / greatest;
    scene.range = std::round(127 * scale * 3 * deviation);
  }
  for (Wave& wave : scene.waves) wave.amplitude = static_cast<float>(scale * static_cast<double>(wave.amplitude));
  return scene;
}

float wave(std::uint32_t angle) noexcept {
  const float x = static_cast<float>(static_cast<std::int32_t>(angle)) * 0x1p-31f;
  return 4 * x * (1 - std::abs(x));
}

Matrix<float> scene_a(const Scene& scene, std::uint32_t phase) {
  Matrix<float> a(scene.n, scene.n);
  for (std::int64_t i = 0; i < scene.n; ++i)
    for (std::int64_t p = 0; p < scene.n; ++p) {
      const Wave& w = scene.waves[static_cast<std::size_t>(p)];
      const std::uint32_t angle =
          w.row_frequency * (static_cast<std::uint32_t>(i) * unit(scene)) + w.row_offset + w.speed * phase;
      a(i, p) = element(scene, scene.scale * wave(angle));
    }
  return a;
}

Matrix<float> scene_b(const Scene& scene) {
  Matrix<float> b(scene.n, scene.n);
  for (std::int64_t p = 0; p < scene.n; ++p)
    for (std::int64_t j = 0; j < scene.n; ++j) {
      const Wave& w = scene.waves[static_cast<std::size_t>(p)];
      b(p, j) = element(scene,
                        w.amplitude * wave(w.column_frequency * (static_cast<std::uint32_t>(j) * unit(scene)) + w.column_offset));
    }
  return b;
}

std::vector<std::byte> convert(const Matrix<float>& matrix, Type type) {
  return with_type(type, [&]<class T>(T) { return convert_to<T>(matrix); });
}

MapArea map_area(int width, int height, std::int64_t n) noexcept {
  std::int64_t side = std::max(0, std::min(width - 2 * margin - gap - bar_width - labels, height - top - margin));
  if (side >= 4 * n) side -= side % n;
  return {margin, top, static_cast<int>(side)};
}

Picture surroundings(int width, int height, const Scene& scene, const std::string& heading, const std::string& caption) {
  Picture picture{width, height,
                  std::vector<unsigned char>(3 * static_cast<std::size_t>(width) * static_cast<std::size_t>(height))};
  fill(picture, 0, 0, width, height, background_colour);
  draw_text(picture, margin, 26, heading, 3, ink_colour);
  draw_text(picture, margin, 66, caption, 2, faint_colour);
  const MapArea map = map_area(width, height, scene.n);
  const int bar_x = map.x + map.side + gap, label_x = bar_x + bar_width + gap / 2;
  for (int row = 0; row < map.side; ++row) fill(picture, bar_x, map.y + row, bar_width, 1, colour(1 - (row + 0.5) / map.side));
  if (map.side >= 60) {
    draw_text(picture, label_x, map.y, fmt::format("{:.7g}", scene.range), 2, ink_colour);
    draw_text(picture, label_x, map.y + map.side / 2 - 8, "0", 2, faint_colour);
    draw_text(picture, label_x, map.y + map.side - 16, fmt::format("{:.7g}", -scene.range), 2, ink_colour);
  }
  return picture;
}

}  // namespace glgemm::tools
