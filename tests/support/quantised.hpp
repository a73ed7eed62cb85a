// Quantised matrices of random codes, for tests on a device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <glgemm/matrix.hpp>
#include <glgemm/quantize.hpp>
#include <vector>

#include "base/quantization.hpp"
#include "support/gemm_cases.hpp"
#include "support/random.hpp"

namespace glgemm::test {

/// Each format, and of those with parameters a few that together have each value of each of them.
const std::vector<Quantization>& quantizations();

/// A matrix of random codes and zeros. If `exact`, its numbers are multiples of 1/2 below 2^13; else its scales are random as
/// well, at most 1/8 for codes of more than 4 bits.
QuantizedArrays random_quantised(const Quantization& quantization, std::int64_t rows, std::int64_t columns, bool exact,
                                 Random& random);

/// What it stands for, row after row.
std::vector<float> decoded(const QuantizedMatrix& matrix);
inline Matrix<float> numbers_of(const QuantizedMatrix& matrix) {
  return {matrix.rows, matrix.columns, decoded(matrix)};
}

}  // namespace glgemm::test
