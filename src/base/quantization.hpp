// What the library alone needs to know of quantised formats.
#pragma once

#include <cstddef>
#include <span>

#include <glgemm/quantization.hpp>

namespace glgemm {

/// Makes the scales that are floating-point numbers in a block 1: what random codes stand for are then multiples of 1/2, below
/// 2^13.
void set_unit_scale(const Quantization& quantization, std::span<std::byte> block);

/// The bytes from the first one on of the scales, and of the zeros, that belong to so many successive codes, in rows of `ld`
/// codes. The first code begins a row. A part of a matrix has less than whole rows at its end.
QuantizedBytes bytes_beside(const Quantization& quantization, std::int64_t ld, std::int64_t codes);

/// The bytes of each array that lie before the block of a code, or before the row's scale where that is one. `column` is a
/// multiple of a block's codes, and of those whose zeros fill a byte.
QuantizedBytes bytes_before(const Quantization& quantization, std::int64_t columns, std::int64_t row, std::int64_t column);

/// @throws std::invalid_argument  an array is too short; the message has both sizes
void require_arrays(const QuantizedMatrix& matrix);

/// How many arrays lie beside the codes: scales and zeros.
constexpr int arrays_apart(const Quantization& quantization) noexcept {
  return (scales_lie_apart(quantization) ? 1 : 0) + (quantization.zeros ? 1 : 0);
}

}  // namespace glgemm
