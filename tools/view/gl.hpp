// The shaders of glgemm-view.
#pragma once

#include <string_view>

#include "bench/current_gl.hpp"

namespace glgemm::tools {

/// One triangle that covers the window.
inline constexpr std::string_view cover_shader = R"(
void main() { gl_Position = vec4(gl_VertexID == 1 ? 3.0 : -1.0, gl_VertexID == 2 ? 3.0 : -1.0, 0.0, 1.0); }
)";

/// Draws a MapPanel of floats, read from their buffer, and where none of its cells lies the picture that the host has drawn.
inline constexpr std::string_view panel_shader = R"(
layout(std430, binding = 0) readonly buffer Elements { float elements[]; };
layout(std430, binding = 1) readonly buffer Colours { uint colours[257]; };  // the last one for NaN and infinity
uniform sampler2D surroundings;
uniform int height, cell, gap, columns, channels, size, line;
uniform ivec2 corner;
uniform vec2 range;
out vec4 pixel;

void main() {
  ivec2 at = ivec2(gl_FragCoord.x, height - 1 - int(gl_FragCoord.y));
  pixel = texelFetch(surroundings, at, 0);
  ivec2 inside = at - corner;
  int pitch = cell * size + gap;
  ivec2 map = inside / pitch, within = inside % pitch, position = within / cell;
  int channel = map.y * columns + map.x;
  if (any(lessThan(inside, ivec2(0))) || map.x >= columns || channel >= channels || any(greaterThanEqual(position, ivec2(size))) ||
      any(lessThan(within % cell, ivec2(line))))
    return;
  float value = elements[(position.y * size + position.x) * channels + channel];
  float share = clamp((value - range.x) / (range.y - range.x), 0.0, 1.0);
  uint colour = isnan(value) || isinf(value) ? 256u : uint(255.0 * share + 0.5);
  pixel = vec4(unpackUnorm4x8(colours[colour]).bgr, 1.0);
}
)";

}  // namespace glgemm::tools
