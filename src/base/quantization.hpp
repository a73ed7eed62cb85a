// What the library alone needs to know of quantised formats.
#pragma once

#include <cstddef>
#include <span>

#include <glgemm/quantization.hpp>

namespace glgemm {

/// Writes the scales of a block that are floating-point numbers: the codes' scale, and the offsets' scale where there are
/// some. With powers of two from 1 on, random codes stand for multiples of 1/2, below 2^13 times the larger one.
void set_scales(const Quantization& quantization, std::span<std::byte> block, float scale, float of_offsets);

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
