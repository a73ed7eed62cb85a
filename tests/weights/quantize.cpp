// Quantising: ggml's bits for ggml's formats, the nearest codes for the others, and what cannot be quantised is refused.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <glgemm/quantize.hpp>
#include <limits>
#include <string>
#include <vector>

#include "support/messages.hpp"
#include "support/random.hpp"
#include "support/test_data.hpp"

using namespace glgemm;

namespace {

std::vector<float> random_numbers(std::int64_t count, float offset = 0) {
  test::Random random;
  std::vector<float> result;
  for (std::int64_t i = 0; i < count; ++i) result.push_back(offset + static_cast<float>(random.uniform()));
  return result;
}

std::vector<float> restored(const QuantizedMatrix& matrix) {
  std::vector<float> result(static_cast<std::size_t>(matrix.rows * matrix.columns));
  dequantize(matrix, result.data());
  return result;
}

std::string refusal_of(const Quantization& quantization, std::vector<float> x) {
  return message_of<std::invalid_argument>([&] { quantize(quantization, 1, static_cast<std::int64_t>(x.size()), x.data()); });
}

/// The scale of element k of row `row`.
float scale_at(const QuantizedArrays& x, std::int64_t row, std::int64_t k) {
  const std::int64_t blocks = (x.columns + block_codes(x.quantization) - 1) / block_codes(x.quantization);
  const std::int64_t place = x.quantization.format == QuantizedFormat::nbits     ? row * blocks + k / x.quantization.group
                             : x.quantization.format == QuantizedFormat::per_row ? row
                                                                                 : 0;
  return with_type(x.quantization.scales, [&]<class T>(T value) {
    std::memcpy(&value, x.scales.data() + static_cast<std::size_t>(place) * sizeof value, sizeof value);
    if constexpr (std::is_convertible_v<T, float>) return static_cast<float>(value);
    return std::numeric_limits<float>::quiet_NaN();
  });
}

}  // namespace

TEST_CASE("quantize: ggml's formats have the bits of its quantisers") {
  const std::vector<float> numbers = test_data<float>("quantised/numbers.f32");
  int formats = 0;
  for (const QuantizedFormatInfo& row : quantized_format_table) {
    if (row.codes <= 1) continue;
    CAPTURE(row.name);
    const QuantizedFormat format = parse_quantization(row.name).format;
    if (contains(refusal_of(format, {1.0F}), "there is no quantiser for " + std::string(row.name))) continue;
    ++formats;
    const std::vector<std::byte> expected = test_data<std::byte>("quantised/" + std::string(info(format).name) + ".quantised");
    const std::size_t blocks = expected.size() / static_cast<std::size_t>(info(format).bytes);
    REQUIRE(blocks * static_cast<std::size_t>(row.codes) == numbers.size());
    const QuantizedArrays whole = quantize(format, 4, static_cast<std::int64_t>(numbers.size()) / 4, numbers.data());
    REQUIRE(whole.codes.size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      CAPTURE(i / static_cast<std::size_t>(info(format).bytes));
      CHECK(whole.codes[i] == expected[i]);
    }
  }
  CHECK(formats >= 8);
}

TEST_CASE("quantize: nbits has the bits of onnxruntime's quantiser") {
  for (const Quantization& quantization :
       {Quantization::nbits(4, 16, true), Quantization::nbits(4, 64), Quantization::nbits(8, 16),
        Quantization::nbits(8, 64, true), Quantization::nbits(8, 32, true, Type::f16)}) {
    CAPTURE(to_string(quantization));
    std::vector<float> numbers = test_data<float>("quantised/numbers.f32");
    if (quantization.scales == Type::f16)
      for (float& each : numbers) each = half(each);
    const QuantizedArrays x = quantize(quantization, 4, static_cast<std::int64_t>(numbers.size()) / 4, numbers.data());
    std::vector<std::byte> bytes = x.codes;
    bytes.insert(bytes.end(), x.scales.begin(), x.scales.end());
    bytes.insert(bytes.end(), x.zeros.begin(), x.zeros.end());
    const std::string name = std::to_string(quantization.bits) + "-" + std::to_string(quantization.group) + "-" +
                             (quantization.zeros ? "1-" : "0-") + std::string(to_string(quantization.scales));
    const std::vector<std::byte> expected = test_data<std::byte>("quantised/nbits-" + name + ".quantised");
    REQUIRE(bytes.size() == expected.size());
    CHECK(std::mismatch(bytes.begin(), bytes.end(), expected.begin()).first - bytes.begin() == std::ssize(bytes));
  }
}

TEST_CASE("quantize: each code is the nearest") {
  std::vector<Quantization> list;
  for (const Type scales : {Type::f32, Type::f16, Type::bf16}) {
    for (const int bits : {4, 8})
      for (const int group : {16, 64})
        for (const bool zeros : {false, true}) list.push_back(Quantization::nbits(bits, group, zeros, scales));
    list.push_back(Quantization::per_row(Type::i8, scales));
    list.push_back(Quantization::per_tensor(Type::i8, scales));
    list.push_back(Quantization::per_row(Type::u8, scales));
  }
  for (const Quantization& quantization : list) {
    CAPTURE(to_string(quantization));
    const bool positive = quantization.codes == Type::u8 || quantization.zeros;
    const std::vector<float> x = random_numbers(std::int64_t{7} * 80, positive ? 1.5F : 0.0F);  // of groups of 64 a part
    const QuantizedArrays quantized = quantize(quantization, 7, 80, x.data());
    const std::vector<float> back = restored(quantized);
    double worst = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float scale = scale_at(quantized, static_cast<std::int64_t>(i) / 80, static_cast<std::int64_t>(i) % 80);
      const float greatest = *std::max_element(x.begin(), x.end(), [](float a, float b) { return std::fabs(a) < std::fabs(b); });
      // Half a code; without zeros the greatest number on the other side is a code beyond the last; what the scale lost in
      // rounding.
      const bool may_clamp = quantization.format == QuantizedFormat::nbits && !quantization.zeros && x[i] * scale > 0;
      const double lost = (quantization.scales == Type::f32   ? 1e-6
                           : quantization.scales == Type::f16 ? 0x1p-11
                                                              : 0x1p-8) *
                          std::fabs(greatest);
      const double error = std::fabs(double{x[i]} - back[i]), bound = std::fabs(scale) * (may_clamp ? 1.001 : 0.5) + lost;
      worst = std::max(worst, error / bound);
    }
    CHECK(worst <= 1);
    CHECK(worst > 0.3);
  }
}

TEST_CASE("quantize: what is representable comes back") {
  for (const QuantizedFormat format : {QuantizedFormat::q8_0, QuantizedFormat::q4_0, QuantizedFormat::q4_1, QuantizedFormat::q5_0,
                                       QuantizedFormat::q5_1, QuantizedFormat::mxfp4, QuantizedFormat::nvfp4}) {
    CAPTURE(info(format).name);
    const std::vector<float> x = test_data<float>("quantised/" + std::string(info(format).name) + ".f32");
    const std::int64_t columns = static_cast<std::int64_t>(x.size());
    const std::vector<float> once = restored(quantize(format, 1, columns, x.data()));
    const std::vector<float> twice = restored(quantize(format, 1, columns, once.data()));
    int changed = 0;  // q4_1 and q5_1 round their values; a block whose greatest code is not the first may get another scale
    for (std::size_t i = 0; i < x.size(); ++i) changed += once[i] != twice[i];
    CHECK(changed <= static_cast<int>(x.size()) / 20);
  }
  std::vector<float> whole;
  for (int i = -128; i < 128; ++i) whole.push_back(static_cast<float>(i));
  CHECK(restored(quantize(Quantization::nbits(8, 256), 1, 256, whole.data())) == whole);
  CHECK(restored(quantize(Quantization::nbits(8, 256, true), 1, 256, whole.data())) == whole);
  for (float& each : whole) each += 128;
  CHECK(restored(quantize(Quantization::per_tensor(Type::u8), 1, 256, whole.data())) == whole);
}

TEST_CASE("quantize: numbers of 8 bits with one scale") {
  const float x[] = {448, -1, 0.4375F, 1.0625F, 0, 57344, 3, 5};
  const std::vector<float> by_row = restored(quantize(Quantization::per_row(Type::f8e4m3), 2, 4, x));
  CHECK(std::vector(by_row.begin(), by_row.begin() + 4) ==
        std::vector<float>{448, -1, 0.4375F, 1});  // a tie goes to the even one
  CHECK(by_row[5] == 57344);
  CHECK(restored(quantize(Quantization::per_tensor(Type::f8e5m2), 2, 4, x)) ==
        std::vector<float>{448, -1, 0.4375F, 1, 0, 57344, 3, 5});
}

TEST_CASE("quantize: zeros, and scales that vanish") {
  const std::vector<float> none(64), tiny(64, 1e-44F);
  for (const Quantization& quantization :
       {Quantization(QuantizedFormat::q8_0), Quantization(QuantizedFormat::q4_0), Quantization(QuantizedFormat::q5_1),
        Quantization(QuantizedFormat::mxfp4), Quantization(QuantizedFormat::iq4_nl), Quantization(QuantizedFormat::nvfp4),
        Quantization::nbits(4, 32), Quantization::nbits(8, 32, true, Type::f16), Quantization::per_row(),
        Quantization::per_tensor(Type::f8e4m3, Type::f16)}) {
    CAPTURE(to_string(quantization));
    CHECK(restored(quantize(quantization, 2, 32, none.data())) == none);
    for (const float each : restored(quantize(quantization, 2, 32, tiny.data()))) CHECK(std::fabs(each) <= 1e-38F);
    CHECK(quantize(quantization, 0, 32, nullptr).codes.empty());
    CHECK(quantize(quantization, 3, 0, nullptr).codes.empty());
  }
}

TEST_CASE("quantize: a part of a block has zeros behind it") {
  const std::vector<float> x = random_numbers(std::int64_t{3} * 40);
  std::vector<float> padded;
  for (int row = 0; row < 3; ++row) {
    padded.insert(padded.end(), x.begin() + row * 40, x.begin() + row * 40 + 40);
    padded.resize(padded.size() + 24);
  }
  for (const Quantization& quantization : {Quantization(QuantizedFormat::q8_0), Quantization(QuantizedFormat::q5_1),
                                           Quantization(QuantizedFormat::nvfp4), Quantization::nbits(4, 32, true)}) {
    const QuantizedArrays part = quantize(quantization, 3, 40, x.data()), whole = quantize(quantization, 3, 64, padded.data());
    CHECK(part.codes == whole.codes);
    CHECK(part.scales == whole.scales);
    CHECK(part.zeros == whole.zeros);
  }
}

TEST_CASE("quantize: what cannot be quantised is refused") {
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> x(256, 1.0F);
  CHECK(refusal_of(QuantizedFormat::q4_k, x) == "quantize: there is no quantiser for q4_k");
  CHECK(contains(refusal_of(QuantizedFormat::q6_k, x), "no quantiser for q6_k"));
  CHECK(contains(refusal_of({}, x), "not quantised"));
  x[100] = -infinity;
  CHECK(refusal_of(QuantizedFormat::q8_0, x) == "quantize: element 0, 100 is -inf");
  x[100] = std::numeric_limits<float>::quiet_NaN();
  CHECK(contains(refusal_of(Quantization::per_row(), x), "element 0, 100 is nan"));
  x[100] = -0.5F;
  CHECK(refusal_of(Quantization::per_row(Type::u8), x) ==
        "quantize: -0.5 is negative, which codes of u8 without a zero cannot be");
  x[100] = 1e7F;
  CHECK(contains(refusal_of(QuantizedFormat::q8_0, x), "is beyond the scales' type f16"));
  CHECK(contains(refusal_of(Quantization::nbits(8, 32, true, Type::f16), {x.begin() + 96, x.end()}), "(nothing was thrown)"));
  x[101] = -3e38F;
  x[102] = 3e38F;
  CHECK(contains(refusal_of(Quantization::nbits(8, 32, true), x), "inf is beyond the scales' type f32"));
}
