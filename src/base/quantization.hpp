// What the library alone needs to know of quantised formats.
#pragma once

#include <cstddef>
#include <span>

#include <glgemm/quantization.hpp>

namespace glgemm {

/// Makes the scales that are floating-point numbers in a block 1: what random codes stand for are then multiples of 1/2, below
/// 2^13.
void set_unit_scale(const Quantization& quantization, std::span<std::byte> block);

/// How many arrays lie beside the codes: scales and zeros.
constexpr int arrays_apart(const Quantization& quantization) noexcept {
  return (scales_lie_apart(quantization) ? 1 : 0) + (quantization.zeros ? 1 : 0);
}

}  // namespace glgemm
