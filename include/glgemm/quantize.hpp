// Makes quantised matrices on the host, from floats and from the arrays of GPTQ and AWQ. Any thread. Link glgemm::weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
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

/// Quantises a row-major matrix without gaps. A row that ends within a block counts as if zeros filled the block.
///
///   blocks the bits of ggml's reference quantisers, quantize_row_*_ref of ggml 0.27, for formats that have one in quantize.cpp
///   nbits  the bits of onnxruntime's quantiser for MatMulNBits, in q4_dq.cpp of onnxruntime 1.23. Without zeros, let x be the
///          number of the greatest magnitude and h = 2^(bits - 1): scale = -x / h. With zeros, let max >= 0 >= min:
///          scale = (max - min) / (2 h - 1), zero = round(-min / scale). Then code = clamp(round(x / scale) + zero)
///   per_row, per_tensor
///          as ONNX's QuantizeLinear: scale = max |x| / (the greatest code), code = x / scale, rounded to nearest even
///
/// Scales are first rounded to their type. Where the reciprocal of one is infinite, its codes stand for zeros.
/// nvfp4 has scales of at most 448, as in ggml: a number beyond 2688 becomes 2688.
/// @throws std::invalid_argument  a format for which there is no quantiser here; a number that is infinite or NaN; a scale beyond
///                                the range of its type; a negative number for codes of u8
GLGEMM_WEIGHTS_EXPORT QuantizedArrays quantize(const Quantization& quantization, std::int64_t rows, std::int64_t columns,
                                               const float* x);

/// A layer's weight W of k x n, packed as files of GPTQ and AWQ have it: little-endian, and perhaps misaligned. Each word of 32
/// bits has 32 / bits codes, the first in the lowest bits. Element i, j of W is (code - zero) * scale, with the code i, j, and
/// with the zero and scale i / group, j.
struct PackedLayer {
  std::int64_t k = 0;
  std::int64_t n = 0;
  std::int64_t group = 0;  ///< how many codes along k share a scale; it divides k
  std::span<const std::byte> qweight{};
  std::span<const std::byte> qzeros{};
  std::span<const std::byte> scales{};  ///< k / group x n
  std::span<const std::byte> g_idx{};   ///< empty, or k numbers of 32 bits, each the group of its i: i / group
  Type scales_type = Type::f16;
};

/// What GPTQ's files store of a zero: GPTQModel's checkpoint_format says "gptq" or "gptq_v2".
enum class GptqZeros {
  less_one,  ///< the zero less 1, and the greatest code for 0: "gptq", or no such entry
  themselves
};

/// The transpose of a layer's weight, n x k, as nbits with zeros: the A of a product. Codes and scales stay the same. Where the
/// group is no power of two, the result has groups of the greatest one that divides it.
///
/// GPTQ packs codes along k, and zeros along n: qweight is k * bits / 32 x n words, qzeros k / group x n * bits / 32.
/// AWQ packs both along n, in 4 bits: qweight is k x n / 8 words, qzeros k / group x n / 8. Nibble i of a word is column
/// (0, 2, 4, 6, 1, 3, 5, 7)[i] of its eight.
/// @throws std::invalid_argument  an array is too short; sizes that words do not hold; a group that is no multiple of 16; a g_idx
///                                that permutes k
GLGEMM_WEIGHTS_EXPORT QuantizedArrays from_gptq(const PackedLayer& layer, int bits = 4, GptqZeros zeros = GptqZeros::less_one);
GLGEMM_WEIGHTS_EXPORT QuantizedArrays from_awq(const PackedLayer& layer);

}  // namespace glgemm
