// GPTQ's and AWQ's arrays: packed here as their definitions say, they stand for the same numbers as nbits.
#include <doctest/doctest.h>

#include <functional>
#include <glgemm/quantize.hpp>
#include <string>
#include <vector>

#include "support/messages.hpp"
#include "support/random.hpp"

using namespace glgemm;

namespace {

/// Codes, zeros and scales by themselves, and the numbers that they stand for.
struct Layer {
  Layer(std::int64_t rows, std::int64_t columns, std::int64_t of_group, int of_code)
      : k(rows), n(columns), group(of_group), bits(of_code) {
    test::Random random;
    for (std::int64_t i = 0; i < k * n; ++i) codes.push_back(static_cast<std::uint32_t>(random.below(1 << bits)));
    for (std::int64_t i = 0; i < k / group * n; ++i) {
      zeros.push_back(static_cast<std::uint32_t>(random.below(1 << bits)));
      scales.push_back(half(static_cast<float>(random.uniform())));
    }
  }
  std::uint32_t code(std::int64_t i, std::int64_t j) const { return codes[static_cast<std::size_t>(i * n + j)]; }
  std::uint32_t zero(std::int64_t g, std::int64_t j) const { return zeros[static_cast<std::size_t>(g * n + j)]; }
  /// W^T.
  std::vector<float> transposed() const {
    std::vector<float> result;
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t i = 0; i < k; ++i)
        result.push_back((static_cast<float>(code(i, j)) - static_cast<float>(zero(i / group, j))) *
                         scales[static_cast<std::size_t>(i / group * n + j)]);
    return result;
  }
  PackedLayer packed(const std::vector<std::uint32_t>& qweight, const std::vector<std::uint32_t>& qzeros) const {
    return {.k = k,
            .n = n,
            .group = group,
            .qweight = std::as_bytes(std::span(qweight)),
            .qzeros = std::as_bytes(std::span(qzeros)),
            .scales = std::as_bytes(std::span(scales))};
  }
  std::int64_t k, n, group;
  int bits;
  std::vector<std::uint32_t> codes, zeros;
  std::vector<half> scales;
};

/// Words of `bits` x 32 / bits numbers: number s of word (i, j) is value(i, j, s).
std::vector<std::uint32_t> words(std::int64_t rows, std::int64_t columns, int bits,
                                 const std::function<std::uint32_t(std::int64_t, std::int64_t, int)>& value) {
  std::vector<std::uint32_t> result;
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) {
      std::uint32_t word = 0;
      for (int s = 0; s < 32 / bits; ++s) word |= value(i, j, s) << (bits * s);
      result.push_back(word);
    }
  return result;
}

std::vector<float> numbers(const QuantizedMatrix& matrix) {
  std::vector<float> result(static_cast<std::size_t>(matrix.rows * matrix.columns));
  dequantize(matrix, result.data());
  return result;
}

}  // namespace

TEST_CASE("packed layers: GPTQ's") {
  for (const int bits : {4, 8})
    for (const std::int64_t group : {32, 96}) {
      CAPTURE(bits);
      CAPTURE(group);
      const Layer layer(192, 40, group, bits);
      const int word = 32 / bits;
      const auto qweight =
          words(192 / word, 40, bits, [&](std::int64_t i, std::int64_t j, int s) { return layer.code(i * word + s, j); });
      for (const auto& [format, less] : {std::pair(GptqZeros::less_one, 1U), {GptqZeros::themselves, 0U}}) {
        const auto qzeros = words(192 / group, 40 / word, bits, [&, lost = less](std::int64_t i, std::int64_t j, int s) {
          return (layer.zero(i, j * word + s) - lost) & ((1U << bits) - 1);
        });
        const QuantizedArrays result = from_gptq(layer.packed(qweight, qzeros), bits, format);
        CHECK(to_string(result.quantization) == "nbits:bits=" + std::to_string(bits) + ",group=32,zeros=1,scales=f16");
        CHECK(result.rows == 40);
        CHECK(numbers(result) == layer.transposed());
      }
    }
}

TEST_CASE("packed layers: AWQ's") {
  const Layer layer(128, 24, 64, 4);
  constexpr int order[] = {0, 2, 4, 6, 1, 3, 5, 7};
  const auto qweight = words(128, 3, 4, [&](std::int64_t i, std::int64_t j, int s) { return layer.code(i, 8 * j + order[s]); });
  const auto qzeros = words(2, 3, 4, [&](std::int64_t i, std::int64_t j, int s) { return layer.zero(i, 8 * j + order[s]); });
  CHECK(numbers(from_awq(layer.packed(qweight, qzeros))) == layer.transposed());
}

TEST_CASE("packed layers: what is no such layer is refused") {
  const Layer layer(64, 16, 32, 4);
  const std::vector<std::uint32_t> qweight(64 * 16 / 8), qzeros(2 * 16 / 8);
  std::vector<std::uint32_t> g_idx;
  for (std::uint32_t i = 0; i < 64; ++i) g_idx.push_back(i / 32);
  const auto refusal = [&](const std::function<void(PackedLayer&)>& change, int bits = 4) {
    PackedLayer packed = layer.packed(qweight, qzeros);
    packed.g_idx = std::as_bytes(std::span(g_idx));
    change(packed);
    return message_of<std::invalid_argument>([&] { from_gptq(packed, bits); });
  };
  CHECK(refusal([](PackedLayer&) {}) == "(nothing was thrown)");
  CHECK(refusal([](PackedLayer&) {}, 3) == "from_gptq: codes have 4 or 8 bits, and not 3");
  CHECK(refusal([](PackedLayer& x) { x.n = 12; }) == "from_gptq: words of 8 codes do not hold 64x12");
  CHECK(refusal([](PackedLayer& x) { x.k = -64; }) == "from_gptq: words of 8 codes do not hold -64x16");
  CHECK(refusal([](PackedLayer& x) { x.group = 8; }) == "from_gptq: groups of 8 are no multiple of 16, or do not divide 64");
  CHECK(refusal([](PackedLayer& x) { x.group = 48; }) == "from_gptq: groups of 48 are no multiple of 16, or do not divide 64");
  CHECK(refusal([](PackedLayer& x) { x.qweight = x.qweight.first(511); }) ==
        "from_gptq: qweight takes 512 bytes, and the array has 511");
  CHECK(refusal([](PackedLayer& x) { x.qzeros = x.qzeros.first(15); }) ==
        "from_gptq: qzeros takes 16 bytes, and the array has 15");
  CHECK(refusal([](PackedLayer& x) { x.scales = x.scales.first(63); }) ==
        "from_gptq: scales takes 64 bytes, and the array has 63");
  CHECK(refusal([](PackedLayer& x) { x.g_idx = x.g_idx.first(8); }) == "from_gptq: g_idx takes 256 bytes, and the array has 8");
  CHECK(contains(refusal([](PackedLayer& x) { x.n = std::int64_t{1} << 60; }), "take more bytes than 64 bits count"));
  CHECK(contains(refusal([](PackedLayer& x) { x.scales_type = Type::i8; }), "scales are f32, f16 or bf16, and not i8"));
  g_idx[40] = 0;
  CHECK(refusal([](PackedLayer&) {}) ==
        "from_gptq: g_idx permutes k: element 40 is of group 0, and not of 1; glgemm has no such format");
  PackedLayer packed = layer.packed(qweight, qzeros);
  packed.qzeros = {};
  CHECK(message_of<std::invalid_argument>([&] { from_awq(packed); }) == "from_awq: qzeros takes 16 bytes, and the array has 0");
}
