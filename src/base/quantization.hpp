// What the library alone needs to know of quantised formats.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include <glgemm/quantization.hpp>

namespace glgemm {

/// What codes of 4 bits stand for in formats that have a table: E2M1, whose code 8 is 0 without a sign, and ggml's IQ4_NL.
inline constexpr float e2m1_numbers[] = {0, 0.5F, 1, 1.5F, 2, 3, 4, 6, 0, -0.5F, -1, -1.5F, -2, -3, -4, -6};
inline constexpr int iq4_nl_numbers[] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

/// A scale of nvfp4: f8e4m3 whose sign does not count. ggml takes 0x7f for 0, and 0xff for a number.
constexpr float nvfp4_scale(std::uint8_t bits) noexcept {
  return bits == 0x7f ? 0.0F : 256.0F * static_cast<float>(std::bit_cast<half>(static_cast<std::uint16_t>((bits & 0x7f) << 7)));
}

/// Writes the scales of a block that are floating-point numbers, scale(i) as number i; without its sign where they have none,
/// and its power of two where they are such. With powers of two from 1 on, random codes stand for multiples of 1/2, below 2^13
/// times the largest one.
void set_scales(const Quantization& quantization, std::span<std::byte> block, const std::function<float(int)>& scale);

/// The bytes from the first one on of the scales, and of the zeros, that belong to so many successive codes, in rows of `ld`
/// codes. The first code begins a row. A part of a matrix has less than whole rows at its end.
QuantizedBytes bytes_beside(const Quantization& quantization, std::int64_t ld, std::int64_t codes);

/// @throws std::invalid_argument  an array is too short; the message has both sizes
void require_arrays(const QuantizedMatrix& matrix);

/// The codes of which items of a batch, whose rows are `ld` codes apart, begin at a multiple.
constexpr std::int64_t item_codes(const Quantization& quantization, std::int64_t ld) noexcept {
  return quantization.format == QuantizedFormat::per_row ? ld : block_codes(quantization);
}

/// How many arrays lie beside the codes: scales and zeros.
constexpr int arrays_apart(const Quantization& quantization) noexcept {
  return (scales_lie_apart(quantization) ? 1 : 0) + (quantization.zeros ? 1 : 0);
}

}  // namespace glgemm
