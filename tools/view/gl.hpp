// The shaders of glgemm-view, which write A and draw C.
#pragma once

#include <string_view>

#include "bench/current_gl.hpp"

namespace glgemm::tools {

/// Writes A for a phase, see Scene. Each invocation writes one 32-bit word of A.
inline constexpr std::string_view animate_shader = R"(
layout(local_size_x = 64) in;

struct Wave { uint row_frequency, row_offset, speed, column_frequency, column_offset; float amplitude; };
layout(std430, binding = 0) readonly buffer Waves { Wave waves[]; };
layout(std430, binding = 1) writeonly buffer A { uint words[]; };
uniform uint n, unit, phase, invocations_x;
uniform float scale;

float wave(uint angle) {
  precise float x = float(int(angle)) * (1.0 / 2147483648.0);
  precise float y = 4.0 * x * (1.0 - abs(x));
  return y;
}

float element(uint index) {
  uint i = index / n, p = index % n;
  precise float value = scale * wave(waves[p].row_frequency * (i * unit) + waves[p].row_offset + waves[p].speed * phase);
  return value;
}

void main() {
  uint word = gl_GlobalInvocationID.y * invocations_x + gl_GlobalInvocationID.x;
  if (word >= uint(words.length())) return;
#if defined TYPE_f32
  words[word] = floatBitsToUint(element(word));
#elif defined TYPE_f16
  words[word] = packHalf2x16(vec2(element(2u * word), element(2u * word + 1u)));
#elif defined TYPE_bf16
  uvec2 x = floatBitsToUint(vec2(element(2u * word), element(2u * word + 1u)));
  x = (x + 0x7fffu + ((x >> 16) & 1u)) >> 16;  // no NaN is here
  words[word] = x.x | x.y << 16;
#elif defined TYPE_i32
  words[word] = uint(int(floor(element(word) + 0.5)));
#elif defined TYPE_i8
  uint four = 0u;
  for (uint lane = 0u; lane < 4u; ++lane)
    four |= (uint(int(floor(element(4u * word + lane) + 0.5))) & 0xffu) << (8u * lane);
  words[word] = four;
#endif
}
)";

/// One triangle that covers the window.
inline constexpr std::string_view cover_shader = R"(
void main() { gl_Position = vec4(gl_VertexID == 1 ? 3.0 : -1.0, gl_VertexID == 2 ? 3.0 : -1.0, 0.0, 1.0); }
)";

/// Draws C, read from its buffer, and around it the picture that the host has drawn.
inline constexpr std::string_view map_shader = R"(
layout(std430, binding = 0) readonly buffer C { uint words[]; };
layout(std430, binding = 1) readonly buffer Colours { uint colours[257]; };  // the last one for NaN and infinity
uniform sampler2D surroundings;
uniform int height;
uniform ivec3 map;  // x, y, side
uniform uint n;
uniform float range;
out vec4 pixel;

float element(uint index) {
#if defined TYPE_f32
  return uintBitsToFloat(words[index]);
#elif defined TYPE_f16
  vec2 pair = unpackHalf2x16(words[index / 2u]);
  return index % 2u == 0u ? pair.x : pair.y;
#elif defined TYPE_bf16
  uint pair = words[index / 2u];
  return uintBitsToFloat(index % 2u == 0u ? pair << 16 : pair & 0xffff0000u);
#else
  return float(int(words[index]));
#endif
}

void main() {
  ivec2 at = ivec2(gl_FragCoord.x, height - 1 - int(gl_FragCoord.y));
  ivec2 inside = at - map.xy;
  if (any(lessThan(inside, ivec2(0))) || any(greaterThanEqual(inside, ivec2(map.z)))) {
    pixel = texelFetch(surroundings, at, 0);
    return;
  }
  uvec2 cell = uvec2(inside) * n / uint(map.z);
  float value = element(cell.y * n + cell.x);
  uint colour = isnan(value) || isinf(value) ? 256u : uint(255.0 * clamp(0.5 + 0.5 * value / range, 0.0, 1.0) + 0.5);
  pixel = vec4(unpackUnorm4x8(colours[colour]).bgr, 1.0);
}
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
