#include "support/quantised.hpp"

namespace glgemm::test {

namespace {

/// A scale of either sign whose size does not vary by more than 2.
Number draw_scale(Random& random) {
  const long double size = (3 + random.uniform()) / 32;
  return random.coin() ? size : -size;
}

}  // namespace

QuantizedArrays random_quantised(const Quantization& quantization, std::int64_t rows, std::int64_t columns, bool exact,
                                 Random& random) {
  const QuantizedBytes bytes = quantized_bytes(quantization, rows, columns);
  QuantizedArrays result{quantization, rows, columns};
  result.codes.resize(static_cast<std::size_t>(bytes.codes));
  result.scales.resize(static_cast<std::size_t>(bytes.scales));
  result.zeros.resize(static_cast<std::size_t>(bytes.zeros));
  for (Bytes* const array : {&result.codes, &result.zeros})
    for (std::byte& each : *array) each = static_cast<std::byte>(random.below(256));
  const bool apart = scales_lie_apart(quantization);
  if (apart && quantization.format != QuantizedFormat::nbits && !is_integer(quantization.codes))  // random bytes may be NaN
    for (std::byte& code : result.codes)
      store(&code, quantization.codes, exact ? Number(static_cast<long double>(random.below(13) - 6)) : Number(random.uniform()));
  for (std::int64_t i = 0; i < bytes.codes && !apart; i += block_bytes(quantization)) {
    const std::span block(result.codes.data() + i, static_cast<std::size_t>(block_bytes(quantization)));
    set_scales(quantization, block, [&](int) { return exact ? 1.0F : static_cast<float>(draw_scale(random).real()); });
  }
  for (std::int64_t i = 0; i < bytes.scales; i += element_bytes(quantization.scales))
    store(result.scales.data() + i, quantization.scales,
          exact ? Number(static_cast<long double>(1 + random.below(2))) : draw_scale(random));
  return result;
}

std::vector<float> decoded(const QuantizedMatrix& matrix) {
  std::vector<float> result(static_cast<std::size_t>(matrix.rows * matrix.columns));
  dequantize(matrix, result.data());
  return result;
}

}  // namespace glgemm::test
