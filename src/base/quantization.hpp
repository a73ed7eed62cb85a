// What the library alone needs to know of quantised formats.
#pragma once

#include <cstddef>
#include <span>

#include <glgemm/quantization.hpp>

namespace glgemm {

/// Makes the scales that are floating-point numbers in a block 1: what random codes stand for are then multiples of 1/2, below
/// 2^13.
void set_unit_scale(const Quantization& quantization, std::span<std::byte> block);

}  // namespace glgemm
