// Makes quantised matrices on the host: from floats. Any thread. Link glgemm::weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <glgemm/export.hpp>
#include <glgemm/quantization.hpp>

namespace glgemm {

/// A quantised matrix with arrays of its own.
struct QuantizedArrays {
  Quantization quantization;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::vector<std::byte> codes{};
  std::vector<std::byte> scales{};
  std::vector<std::byte> zeros{};

  /// The same matrix; it points into these arrays.
  operator QuantizedMatrix() const noexcept { return {quantization, rows, columns, codes, scales, zeros}; }
};

/// Quantises a row-major matrix without gaps. Where a row ends within a block, the block is that of the row with zeros behind it.
///
///   q8_0, q4_0, q4_1, q5_0, q5_1, mxfp4
///          the bits of ggml's reference quantisers (quantize_row_*_ref of ggml 0.27), where those are defined
///   nbits  as onnxruntime does for MatMulNBits (BlockwiseQuantizer of its q4_dq.cpp). With h = 2^(bits - 1), x the group's
///   number of
///          greatest magnitude, and scales rounded to their type: scale = -x / h, code = clamp(round(x / scale) + h). With zeros:
///          scale = (max - min) / (2 h - 1), zero = round(-min / scale), where max >= 0 >= min
///   per_row, per_tensor
///          as ONNX's QuantizeLinear: scale = max |x| / (the greatest code), code = x / scale, rounded to nearest even
///
/// Where a scale is so small that its reciprocal is infinite, all codes of its group mean zero.
/// @throws std::invalid_argument  q4_k, q5_k and q6_k, for which there is no quantiser here; a number that is infinite or NaN; a
/// scale
///                                beyond the range of its type; a negative number for codes of u8
GLGEMM_WEIGHTS_EXPORT QuantizedArrays quantize(const Quantization& quantization, std::int64_t rows, std::int64_t columns,
                                               const float* x);

}  // namespace glgemm
