// What a convolution must give, by its definition.
#pragma once

#include <cstdint>
#include <glgemm/convolution.hpp>
#include <vector>

namespace glgemm::test {

std::int64_t elements(const TensorView& tensor);
std::int64_t volume(const Extents& size);
/// Where an element of a tensor lies, by the definition of its layout.
std::int64_t place(const TensorView& tensor, std::int64_t image, std::int64_t pixel, std::int64_t channel);

/// A convolution whose output has the size that follows.
Convolution completed(Convolution convolution);

/// alpha times the convolution, whose padding is given: a transposed one adds to where a plain one reads from.
std::vector<double> convolved(const Convolution& convolution, const std::vector<double>& input,
                              const std::vector<double>& filters);

}  // namespace glgemm::test
