// What the codes of a quantised matrix stand for, and how they lie in memory. Any thread.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <glgemm/quantization_table.h>
#include <glgemm/export.hpp>
#include <glgemm/types.hpp>

namespace glgemm {

/// The formats, one for each row of quantization_table.h. Each element of a quantised matrix is a code of 4 to 8 bits:
///
///   value = scale of its group * (code - zero of its group) + offset of its group
///
/// In mxfp4, nvfp4 and iq4_nl a number of a table, one for each code, stands in place of code - zero.
///
/// A group is some successive elements along k. Formats whose row has more than one code have blocks of codes and scales, as in
/// .gguf files; these are ggml's formats of the same names. In the others, scales (and zeros) lie in arrays of their own:
///
///   nbits       codes of 4 or 8 bits, the low bits first, as ONNX's MatMulNBits has them
///   per_row     elements of 8 bits with one scale for each row
///   per_tensor  elements of 8 bits with one scale for all
enum class QuantizedFormat {
#define GLGEMM_ROW(name, NAME, number, ...) name = number,
  GLGEMM_QUANTIZED_FORMATS(GLGEMM_ROW)
#undef GLGEMM_ROW
};

/// What the floating-point scales in a block are: f16; f8e4m3, whose sign does not count; or f8e8m0, a byte e for 2^(e - 127).
enum class BlockScale { none, f16, f8e4m3, f8e8m0 };

/// A row of the table.
struct QuantizedFormatInfo {
  std::string_view name;
  int codes, bytes;
  int gguf;  ///< its number in .gguf files, -1 if they have none
  BlockScale scale;
  int scales_at, scales;  ///< at which byte of a block they begin, and how many there are
};
inline constexpr auto quantized_format_table = std::to_array<QuantizedFormatInfo>({
#define GLGEMM_ROW(name, NAME, number, codes, bytes, gguf, scale, scales_at, scales) \
  {#name, codes, bytes, gguf, BlockScale::scale, scales_at, scales},
    GLGEMM_QUANTIZED_FORMATS(GLGEMM_ROW)
#undef GLGEMM_ROW
});
constexpr const QuantizedFormatInfo& info(QuantizedFormat format) noexcept {
  return quantized_format_table[static_cast<std::size_t>(format)];
}

/// What the codes of an operand mean, and how they lie. A regular value; with the format `none` the operand's elements are
/// numbers of its Type, and it is false.
struct Quantization {
  QuantizedFormat format = QuantizedFormat::none;
  /// nbits: the bits of a code, 4 or 8.
  int bits = 0;
  /// nbits: how many codes along k share a scale, a power of two from 16 on. Each row has whole groups.
  int group = 0;
  /// nbits: each group has a zero of its own, with as many bits as a code; each row's zeros begin at a byte of their own. Else
  /// all zeros are 2^(bits - 1).
  bool zeros = false;
  /// nbits, per_row, per_tensor: the type of the scales, f32, f16 or bf16. nbits: a scale for each group, row after row.
  Type scales = Type::f32;
  /// per_row, per_tensor: what the codes are, i8, u8, f8e4m3 or f8e5m2.
  Type codes = Type::i8;

  constexpr Quantization() noexcept = default;
  /// One of the formats in blocks.
  constexpr Quantization(QuantizedFormat block_format) noexcept : format(block_format) {}
  static constexpr Quantization nbits(int bits, int group, bool zeros = false, Type scales = Type::f32) noexcept {
    Quantization result(QuantizedFormat::nbits);
    result.bits = bits;
    result.group = group;
    result.zeros = zeros;
    result.scales = scales;
    return result;
  }
  static constexpr Quantization per_row(Type codes = Type::i8, Type scales = Type::f32) noexcept {
    Quantization result(QuantizedFormat::per_row);
    result.codes = codes;
    result.scales = scales;
    return result;
  }
  static constexpr Quantization per_tensor(Type codes = Type::i8, Type scales = Type::f32) noexcept {
    Quantization result = per_row(codes, scales);
    result.format = QuantizedFormat::per_tensor;
    return result;
  }

  constexpr explicit operator bool() const noexcept { return format != QuantizedFormat::none; }
  friend constexpr auto operator<=>(const Quantization&, const Quantization&) noexcept = default;
};

/// The codes of a block, which lie together along k: rows, and parts of a matrix, begin at a multiple of so many elements. 1
/// without quantisation.
constexpr std::int64_t block_codes(const Quantization& quantization) noexcept {
  const int codes = info(quantization.format).codes;
  return codes > 0 ? codes : quantization.format == QuantizedFormat::nbits ? quantization.group : 1;
}
/// The bytes of a block: of its codes, and of its scales where they lie in it. For a quantised matrix alone.
constexpr std::int64_t block_bytes(const Quantization& quantization) noexcept {
  const int bytes = info(quantization.format).bytes;
  return bytes > 0 ? bytes : std::int64_t{quantization.group} * quantization.bits / 8;
}
/// Whether scales (and zeros) lie in arrays of their own.
constexpr bool scales_lie_apart(const Quantization& quantization) noexcept {
  return quantization && info(quantization.format).codes <= 1;
}

/// "q4_0", "nbits:bits=4,group=128,zeros=1,scales=f16", "per_row:codes=f8e4m3"; "none". Members at their defaults are left out
/// but for bits and group.
GLGEMM_EXPORT std::string to_string(const Quantization& quantization);
/// Reads what `to_string` writes.
/// @throws std::invalid_argument  an unknown format or member; the message lists the known ones
GLGEMM_EXPORT Quantization parse_quantization(std::string_view text);
/// @throws std::invalid_argument  members that do not go together: bits of 5, a group of 48, scales of i8
GLGEMM_EXPORT void validate(const Quantization& quantization);

/// A quantised matrix in the host's memory: `rows` rows of `columns` elements along k, each row in whole blocks, one after the
/// other.
struct QuantizedMatrix {
  Quantization quantization;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::span<const std::byte> codes{};
  std::span<const std::byte> scales{};  ///< of formats whose scales lie apart: nbits, rows x groups; per_row, rows; per_tensor, 1
  std::span<const std::byte> zeros{};   ///< nbits with zeros: rows x ceil(groups * bits / 8) bytes
};
/// The bytes that the arrays of a matrix of that size have; 0 for those that its format does not have.
struct QuantizedBytes {
  std::int64_t codes = 0;
  std::int64_t scales = 0;
  std::int64_t zeros = 0;
};
/// @throws std::invalid_argument  what `validate` refuses, the format `none`, a negative size, or more bytes than 64 bits count
GLGEMM_EXPORT QuantizedBytes quantized_bytes(const Quantization& quantization, std::int64_t rows, std::int64_t columns);
/// The bytes of each array that lie before what belongs to an element of a matrix of so many columns: before its block, its
/// scale, and the byte that has its zero. For sizes that `quantized_bytes` takes.
constexpr QuantizedBytes bytes_before(const Quantization& quantization, std::int64_t columns, std::int64_t row,
                                      std::int64_t column) noexcept {
  const std::int64_t codes = block_codes(quantization), blocks = columns / codes + (columns % codes > 0), block = column / codes;
  QuantizedBytes result{.codes = (row * blocks + block) * block_bytes(quantization)};
  const std::int64_t scale = element_bytes(quantization.scales);
  if (quantization.format == QuantizedFormat::nbits) result.scales = (row * blocks + block) * scale;
  if (quantization.format == QuantizedFormat::per_row) result.scales = row * scale;
  if (quantization.zeros) result.zeros = row * ((blocks * quantization.bits + 7) / 8) + block * quantization.bits / 8;
  return result;
}

/// Writes what the elements from `first_column` on, `count` of them, of a row stand for: in f32, each operation rounded, as
/// shaders decode them. A scale that is infinite or NaN gives what f32 makes of it.
/// @throws std::invalid_argument  outside the matrix, or an array is too short; the message has both sizes
GLGEMM_EXPORT void dequantize_row(const QuantizedMatrix& matrix, std::int64_t row, std::int64_t first_column, std::int64_t count,
                                  float* to);
/// Writes all of it, row-major without gaps.
GLGEMM_EXPORT void dequantize(const QuantizedMatrix& matrix, float* to);

}  // namespace glgemm
