// The arrays of GPTQ and AWQ as nbits.
#include <glgemm/quantize.hpp>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "base/text.hpp"

namespace glgemm {
namespace {

using Bytes = std::span<const std::byte>;

/// Code `index` of an array of words. The words are little-endian, so that it is the same as of an array of bytes.
int code_at(Bytes array, std::int64_t index, int bits) {
  const std::int64_t bit = index * bits;
  return static_cast<int>(array[static_cast<std::size_t>(bit / 8)]) >> (bit % 8) & ((1 << bits) - 1);
}

class Packed {
 public:
  Packed(const char* caller, const PackedLayer& layer, int bits) : caller_(caller), layer_(layer), bits_(bits) {
    if (bits != 4 && bits != 8) refuse("codes have 4 or 8 bits, and not {}", bits);
    const std::int64_t word = 32 / bits;
    if (layer.k <= 0 || layer.n <= 0 || layer.k % word != 0 || layer.n % word != 0)
      refuse("words of {} codes do not hold {}", word, size_text(layer.k, layer.n));
    if (layer.group <= 0 || layer.k % layer.group != 0 || layer.group % 16 != 0)
      refuse("groups of {} are no multiple of 16, or do not divide {}", layer.group, layer.k);
    const QuantizedBytes bytes = quantized_bytes(result_format(), layer.n, layer.k);  // which refuses sizes that are too large
    require("qweight", layer.qweight, bytes.codes);
    require("qzeros", layer.qzeros, layer.k / layer.group * layer.n * bits / 8);
    require("scales", layer.scales, layer.k / layer.group * layer.n * element_bytes(layer.scales_type));
    if (layer.g_idx.empty()) return;
    require("g_idx", layer.g_idx, layer.k * 4);
    for (std::int64_t i = 0; i < layer.k; ++i) {
      std::int64_t stored = 0;
      for (int byte = 3; byte >= 0; --byte)
        stored = stored << 8 | static_cast<int>(layer.g_idx[static_cast<std::size_t>(4 * i + byte)]);
      if (stored != i / layer.group)
        refuse("g_idx permutes k: element {} is of group {}, and not of {}; glgemm has no such format", i, stored,
               i / layer.group);
    }
  }

  /// @param code  the code of (i, j)
  /// @param zero  the zero of (group, j)
  template <class Code, class Zero>
  QuantizedArrays as_nbits(Code code, Zero zero) const {
    const auto [k, n, group, qweight, qzeros, scales, g_idx, scales_type] = layer_;
    const QuantizedBytes bytes = quantized_bytes(result_format(), n, k);
    QuantizedArrays result{.quantization = result_format(), .rows = n, .columns = k};
    result.codes.resize(static_cast<std::size_t>(bytes.codes));
    result.scales.resize(static_cast<std::size_t>(bytes.scales));
    result.zeros.resize(static_cast<std::size_t>(bytes.zeros));
    const auto store = [bits = bits_](std::vector<std::byte>& to, std::int64_t row_byte, std::int64_t index, int value) {
      to[static_cast<std::size_t>(row_byte + index * bits / 8)] |= static_cast<std::byte>(value << (index * bits % 8));
    };
    // Some of k at a time: both matrices are then gone through along their rows, near enough.
    for (std::int64_t begin = 0; begin < k; begin += 64)
      for (std::int64_t j = 0; j < n; ++j)
        for (std::int64_t i = begin; i < std::min(k, begin + 64); ++i) store(result.codes, j * k * bits_ / 8, i, code(i, j));
    const std::int64_t scale = element_bytes(scales_type), groups = k / result.quantization.group;
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t each = 0; each < groups; ++each) {
        const std::int64_t packed = each * result.quantization.group / group;
        store(result.zeros, j * (bytes.zeros / n), each, zero(packed, j));
        std::memcpy(result.scales.data() + (j * groups + each) * scale, scales.data() + (packed * n + j) * scale,
                    static_cast<std::size_t>(scale));
      }
    return result;
  }

 private:
  Quantization result_format() const {
    return Quantization::nbits(bits_, static_cast<int>(layer_.group & -layer_.group), true, layer_.scales_type);
  }
  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) const {
    throw std::invalid_argument(fmt::format("{}: {}", caller_, fmt::format(text, std::forward<Args>(args)...)));
  }
  void require(const char* name, Bytes array, std::int64_t needed) const {
    if (static_cast<std::int64_t>(array.size()) < needed)
      refuse("{} takes {} bytes, and the array has {}", name, needed, array.size());
  }

  const char* caller_;
  const PackedLayer& layer_;
  int bits_;
};

}  // namespace

QuantizedArrays from_gptq(const PackedLayer& layer, int bits, GptqZeros zeros) {
  const Packed packed("from_gptq", layer, bits);
  const int less = zeros == GptqZeros::less_one ? 1 : 0;
  const std::int64_t word = 32 / bits;
  return packed.as_nbits(
      [&](std::int64_t i, std::int64_t j) { return code_at(layer.qweight, (i / word * layer.n + j) * word + i % word, bits); },
      [&](std::int64_t group, std::int64_t j) {
        return (code_at(layer.qzeros, group * layer.n + j, bits) + less) % (1 << bits);
      });
}

QuantizedArrays from_awq(const PackedLayer& layer) {
  const Packed packed("from_awq", layer, 4);
  const auto at = [&](Bytes array, std::int64_t row, std::int64_t j) {
    constexpr int nibble_of_column[] = {0, 4, 1, 5, 2, 6, 3, 7};
    return code_at(array, row * layer.n + j / 8 * 8 + nibble_of_column[j % 8], 4);
  };
  return packed.as_nbits([&](std::int64_t i, std::int64_t j) { return at(layer.qweight, i, j); },
                         [&](std::int64_t group, std::int64_t j) { return at(layer.qzeros, group, j); });
}

}  // namespace glgemm
