// What glgemm-view shows, without OpenGL: the matrices of its product, and the picture around the map of C.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <glgemm/inspect.hpp>
#include <glgemm/matrix.hpp>

#include "drawing/image.hpp"

namespace glgemm::tools {

/// One value of the inner index p, as the shader reads it too (std430): it contributes a standing wave to C. Angles, frequencies
/// and speeds count in turns of 2^32 and wrap, so that the shader has exactly the host's elements.
struct Wave {
  std::uint32_t row_frequency = 0;     ///< waves along a column of C
  std::uint32_t row_offset = 0;        ///< an angle
  std::uint32_t speed = 0;             ///< turns for each turn of the phase
  std::uint32_t column_frequency = 0;  ///< waves along a row of C
  std::uint32_t column_offset = 0;
  float amplitude = 0;
};

/// The types that the viewer's shaders write and read.
inline constexpr std::array shown_types{Type::f32, Type::f16, Type::bf16, Type::i32, Type::i8};

/// C = A B, n x n each: with unit = 2^32 / n,
/// A(i, p) = scale wave(row_frequency_p i unit + row_offset_p + speed_p phase), B(p, j) = amplitude_p wave(column_frequency_p j
/// unit + column_offset_p); elements of integer types are rounded: floor(x + 1/2).
struct Scene {
  std::int64_t n = 0;
  Type type = Type::f32;    ///< of A and B: one of shown_types
  Type c_type = Type::f32;  ///< i32 for i8, else as `type`
  float scale = 1;
  double range = 1;  ///< elements of C from -range to range have a colour of their own
  std::vector<Wave> waves;
};

/// @throws std::invalid_argument  n is less than 1, or another type
Scene make_scene(std::int64_t n, Type type);

/// From frame to frame where --frames is given: 600 frames make the scene repeat.
inline constexpr std::uint32_t phase_step = 7158278;

/// A sine of parabolas, of period 2^32, from -1 to 1. Multiplications and one subtraction: every machine gets the same bits.
float wave(std::uint32_t angle) noexcept;

/// A before it is converted to the scene's type; for integer types, integers.
Matrix<float> scene_a(const Scene& scene, std::uint32_t phase);
/// B before it is converted to the scene's type.
Matrix<float> scene_b(const Scene& scene);
/// The elements in the type, one after the other, and zeros to a multiple of 4 bytes.
std::vector<std::byte> convert(const Matrix<float>& matrix, Type type);

inline constexpr std::uint32_t background_colour = 0x14161b, ink_colour = 0xf1f3f5, faint_colour = 0x98a1ab;

/// The square of the window in which C is drawn, in pixels from the upper left corner.
struct MapArea {
  int x = 0;
  int y = 0;
  int side = 0;  ///< a multiple of n where each element has 4 pixels; 0 in a window that is too small
};
MapArea map_area(int width, int height, std::int64_t n) noexcept;

/// All of the window but the map: heading, caption and a colour bar.
Picture surroundings(int width, int height, const Scene& scene, const std::string& heading, const std::string& caption);

}  // namespace glgemm::tools
