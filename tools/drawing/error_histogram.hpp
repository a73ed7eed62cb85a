// How the errors of a product's elements are spread below their bounds, and above.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <glgemm/matrix.hpp>

namespace glgemm::tools {

/// Elements counted by |C - ref| over its bound, of glgemm::error_ratios(). Bins end at quarters of powers of ten, so that one
/// ends at 1: bin i holds what is above 10^((first + i) / 4) and at most 10^((first + i + 1) / 4).
struct ErrorBins {
  std::int64_t none = 0;     ///< without an error
  std::int64_t endless = 0;  ///< whose ratio is infinite or NaN
  int first = 0;
  std::vector<std::int64_t> bins;
  double worst = 0;
  std::int64_t worst_at = 0;  ///< in row-major order
  double median = 0;          ///< half of the elements have no greater one
};

/// @throws std::invalid_argument  the matrix has no elements
ErrorBins error_bins(const Matrix<float>& ratios);

/// A file of SVG: the bins, the worst and the median error, and the bound. The matrices of a batch stand below each other.
/// @throws std::invalid_argument  the matrix has no elements
std::string error_histogram(const Matrix<float>& ratios, const std::string& title, std::int64_t batch = 1);

}  // namespace glgemm::tools
