// Quantised matrices on the host: each format decodes to the right bits, names read back, and what is wrong is refused.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <glgemm/quantization.hpp>
#include <limits>
#include <string>
#include <vector>

#include "base/quantization.hpp"
#include "support/messages.hpp"
#include "support/random.hpp"
#include "support/test_data.hpp"

using namespace glgemm;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

bool same_bits(const std::vector<float>& x, const std::vector<float>& y) {
  return x.size() == y.size() && (x.empty() || std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0);
}

std::vector<float> decoded(const QuantizedMatrix& matrix) {
  std::vector<float> result(static_cast<std::size_t>(matrix.rows * matrix.columns));
  dequantize(matrix, result.data());
  return result;
}

/// A matrix of random bytes, but for scales, which are numbers from 0.5 to 1 of either sign.
struct RandomMatrix {
  RandomMatrix(const Quantization& quantization, std::int64_t rows, std::int64_t columns) {
    const QuantizedBytes bytes = quantized_bytes(quantization, rows, columns);
    for (const auto& [array, size] : {std::pair(&codes, bytes.codes), {&zeros, bytes.zeros}})
      for (std::int64_t i = 0; i < size; ++i) array->push_back(static_cast<std::byte>(random.below(256)));
    while (static_cast<std::int64_t>(scales.size()) < bytes.scales)
      with_type(quantization.scales, [&]<class T>(T) {
        if constexpr (std::is_convertible_v<T, float>) {
          const T scale = static_cast<T>(static_cast<float>(std::copysign(0.75L + random.uniform() / 4, random.uniform())));
          const auto* const begin = reinterpret_cast<const std::byte*>(&scale);
          scales.insert(scales.end(), begin, begin + sizeof scale);
        }
      });
    matrix = {quantization, rows, columns, codes, scales, zeros};
  }
  test::Random random;
  std::vector<std::byte> codes, scales, zeros;
  QuantizedMatrix matrix;
};

/// Number `index` of an array of numbers of `bits` bits, as one long number that begins at its lowest bit.
int number_at(const std::vector<std::byte>& array, std::int64_t first_byte, std::int64_t index, int bits) {
  int result = 0;
  for (int bit = 0; bit < bits; ++bit) {
    const std::int64_t place = index * bits + bit;
    if ((array[static_cast<std::size_t>(first_byte + place / 8)] & static_cast<std::byte>(1 << (place % 8))) != std::byte{0})
      result += 1 << bit;
  }
  return result;
}

template <class T>
T array_at(const std::vector<std::byte>& array, std::int64_t index) {
  T result{};
  std::memcpy(&result, array.data() + static_cast<std::size_t>(index) * sizeof result, sizeof result);
  return result;
}

double number_at(const std::vector<std::byte>& array, Type type, std::int64_t index) {
  switch (type) {
    case Type::f32:
      return array_at<float>(array, index);
    case Type::f16:
      return array_at<half>(array, index);
    case Type::bf16:
      return array_at<bfloat16>(array, index);
    case Type::i8:
      return array_at<std::int8_t>(array, index);
    case Type::u8:
      return array_at<std::uint8_t>(array, index);
    case Type::f8e4m3:
      return array_at<float8_e4m3fn>(array, index);
    default:
      REQUIRE(type == Type::f8e5m2);
      return array_at<float8_e5m2>(array, index);
  }
}

/// An element of a matrix with its scales apart, by the definition.
double value_at(const RandomMatrix& x, std::int64_t row, std::int64_t k) {
  const Quantization& quantization = x.matrix.quantization;
  if (quantization.format != QuantizedFormat::nbits)
    return number_at(x.codes, quantization.codes, row * x.matrix.columns + k) *
           number_at(x.scales, quantization.scales, quantization.format == QuantizedFormat::per_row ? row : 0);
  const std::int64_t groups = (x.matrix.columns + quantization.group - 1) / quantization.group, group = k / quantization.group;
  const std::int64_t row_bytes = groups * quantization.group * quantization.bits / 8;
  const int code = number_at(x.codes, row * row_bytes, k, quantization.bits);
  const int zero = quantization.zeros ? number_at(x.zeros, row * ((groups * quantization.bits + 7) / 8), group, quantization.bits)
                                      : (quantization.bits == 4 ? 8 : 128);
  return (code - zero) * number_at(x.scales, quantization.scales, row * groups + group);
}

std::vector<Quantization> with_scales_apart() {
  std::vector<Quantization> result;
  for (const Type scales : {Type::f32, Type::f16, Type::bf16}) {
    for (const int bits : {4, 8})
      for (const int group : {16, 32, 128})
        for (const bool zeros : {false, true}) result.push_back(Quantization::nbits(bits, group, zeros, scales));
    for (const Type codes : {Type::i8, Type::u8, Type::f8e4m3, Type::f8e5m2}) {
      result.push_back(Quantization::per_row(codes, scales));
      result.push_back(Quantization::per_tensor(codes, scales));
    }
  }
  return result;
}

std::string refusal(const std::function<void()>& call) {
  return message_of<std::invalid_argument>(call);
}

}  // namespace

TEST_CASE("quantization: formats in blocks decode to ggml's bits") {
  int formats = 0;
  for (const QuantizedFormatInfo& row : quantized_format_table) {
    if (row.codes <= 1) continue;
    CAPTURE(row.name);
    ++formats;
    const Quantization quantization = parse_quantization(row.name);
    const std::string file = "quantised/" + std::string(row.name);
    const std::vector<std::byte> blocks = test_data<std::byte>(file + ".blocks");
    const std::vector<float> expected = test_data<float>(file + ".f32");
    const std::int64_t count = static_cast<std::int64_t>(blocks.size()) / row.bytes;
    REQUIRE(count == 64);
    for (const std::int64_t rows : {1, 4, 64})  // their blocks lie one after the other, however many rows
      CHECK(same_bits(decoded({quantization, rows, count / rows * row.codes, blocks}), expected));
    // The last block of each row in part.
    std::vector<float> shorter;
    const std::int64_t whole = count / 4 * row.codes;
    for (auto begin = expected.begin(); begin != expected.end(); begin += whole)
      shorter.insert(shorter.end(), begin, begin + whole - 5);
    CHECK(same_bits(decoded({quantization, 4, whole - 5, blocks}), shorter));
  }
  CHECK(formats >= 9);
}

TEST_CASE("quantization: formats with their scales apart decode as defined") {
  for (const Quantization& quantization : with_scales_apart()) {
    CAPTURE(to_string(quantization));
    const RandomMatrix x(quantization, 3, 80);  // of groups of 128 a part
    const std::vector<float> values = decoded(x.matrix);
    std::vector<float> expected;
    for (std::int64_t row = 0; row < 3; ++row)
      for (std::int64_t k = 0; k < 80; ++k) expected.push_back(static_cast<float>(value_at(x, row, k)));
    for (std::size_t i = 0; i < values.size(); ++i) {
      CAPTURE(i);
      CHECK((values[i] == expected[i] || (std::isnan(values[i]) && std::isnan(expected[i]))));
    }
  }
}

TEST_CASE("quantization: a part of a row is that of the whole") {
  for (const Quantization& quantization :
       {Quantization(QuantizedFormat::q6_k), Quantization::nbits(4, 32, true), Quantization::per_row()}) {
    CAPTURE(to_string(quantization));
    const RandomMatrix x(quantization, 5, 512);
    const std::vector<float> whole = decoded(x.matrix);
    for (int i = 0; i < 100; ++i) {
      const std::int64_t row = x.matrix.rows - 1 - i % 5, first = (i * 37) % 512, count = (i * 11) % (513 - first);
      std::vector<float> part(static_cast<std::size_t>(count) + 1, 7.0F);
      dequantize_row(x.matrix, row, first, count, part.data());
      CHECK(part.back() == 7);
      part.pop_back();
      CHECK(same_bits(part, {whole.begin() + row * 512 + first, whole.begin() + row * 512 + first + count}));
    }
  }
}

TEST_CASE("quantization: a scale that is infinite is that of f32") {
  std::vector<std::byte> block(34);
  block[1] = std::byte{0x7c};
  block[2] = std::byte{2};
  block[4] = std::byte{0xff};
  const std::vector<float> values = decoded({QuantizedFormat::q8_0, 1, 3, block});
  CHECK(values[0] == infinity);
  CHECK(std::isnan(values[1]));
  CHECK(values[2] == -infinity);
  // The greatest exponent of mxfp4 is a number's too.
  std::vector<std::byte> greatest(17, std::byte{0x21});
  greatest[0] = std::byte{0xff};
  CHECK(decoded({QuantizedFormat::mxfp4, 1, 17, greatest}).front() == 0x1p127F);
  CHECK(decoded({QuantizedFormat::mxfp4, 1, 17, greatest}).back() == infinity);
}

TEST_CASE("quantization: a block's row says where all its scales are: twice as large, they stand for twice the numbers") {
  for (const QuantizedFormatInfo& row : quantized_format_table) {
    if (row.codes <= 1) continue;
    CAPTURE(row.name);
    RandomMatrix x(parse_quantization(row.name), 8, row.codes);
    const auto with_scales = [&](float size) {
      for (std::size_t row_at = 0; row_at < x.codes.size(); row_at += static_cast<std::size_t>(row.bytes))
        set_scales(x.matrix.quantization, std::span(x.codes).subspan(row_at, static_cast<std::size_t>(row.bytes)),
                   [&](int i) { return size * static_cast<float>(1 << i % 2); });
      return decoded(x.matrix);
    };
    const std::vector<float> once = with_scales(2), twice = with_scales(4);
    for (std::size_t i = 0; i < once.size(); ++i) CHECK(twice[i] == 2 * once[i]);
    CHECK(std::ranges::all_of(once, [](float each) { return std::fabs(each) < 0x1p15F && each * 2 == std::floor(each * 2); }));
    CHECK(std::ranges::count(once, 0.0F) < std::ssize(once) / 2);
  }
}

TEST_CASE("quantization: names read back") {
  for (const QuantizedFormatInfo& row : quantized_format_table)
    if (row.name != "nbits") CHECK(to_string(parse_quantization(row.name)) == row.name);
  for (const Quantization& quantization : with_scales_apart()) CHECK(parse_quantization(to_string(quantization)) == quantization);
  CHECK(to_string(Quantization::nbits(4, 128, true, Type::f16)) == "nbits:bits=4,group=128,zeros=1,scales=f16");
  CHECK(to_string(Quantization::per_row(Type::f8e4m3)) == "per_row:codes=f8e4m3");
  CHECK_FALSE(parse_quantization("none"));
  std::string known;
  for (const QuantizedFormatInfo& row : quantized_format_table) known += (known.empty() ? "" : ", ") + std::string(row.name);
  CHECK(contains(known, "none, q8_0, q4_0, q4_1, q5_0, q5_1, q4_k, q5_k, q6_k, mxfp4, nbits, per_row, per_tensor"));
  CHECK(refusal([] { parse_quantization("q3"); }) == "unknown format \"q3\"; known formats: " + known);
  CHECK(refusal([] { parse_quantization("nbits:bit=4"); }) ==
        "quantization: unknown member \"bit\"; known members: bits, group, zeros, scales, codes");
  CHECK(refusal([] { parse_quantization("nbits:bits=4x,group=32"); }) == "quantization: bits=4x is not a number");
  CHECK(refusal([] { parse_quantization("nbits:bits=4,group="); }) == "quantization: group= is not a number");
  CHECK(refusal([] { parse_quantization("nbits:bits=4,group=32,zeros=2"); }) == "quantization: zeros=2 is neither 0 nor 1");
  CHECK(contains(refusal([] { parse_quantization("per_row:codes=i7"); }), "unknown type \"i7\""));
  CHECK(refusal([] { parse_quantization("q4_0:bits=4"); }) ==
        "quantization: q4_0 has no members, and another member is not at its default");
}

TEST_CASE("quantization: what does not go together is refused") {
  CHECK(refusal([] { parse_quantization("nbits"); }) == "quantization: nbits has codes of 4 or 8 bits, and bits is 0");
  CHECK(refusal([] { validate(Quantization::nbits(5, 32)); }) == "quantization: nbits has codes of 4 or 8 bits, and bits is 5");
  for (const int group : {48, 8, 0, -16, std::numeric_limits<int>::min()})
    CHECK(refusal([&] { validate(Quantization::nbits(4, group)); }) ==
          "quantization: nbits has groups of 16, 32, 64 and so on, and group is " + std::to_string(group));
  CHECK(refusal([] { validate(Quantization::nbits(4, 32, false, Type::i8)); }) ==
        "quantization: scales are f32, f16 or bf16, and not i8");
  CHECK(refusal([] { validate(Quantization::per_row(Type::i32)); }) ==
        "quantization: codes are i8, u8, f8e4m3 or f8e5m2, and not i32");
  Quantization x = Quantization::per_row();
  x.zeros = true;
  CHECK(refusal([&] { validate(x); }) == "quantization: per_row has codes and scales, and another member is not at its default");
  CHECK(refusal([] { validate(static_cast<QuantizedFormat>(99)); }) == "quantization: there is no format 99");
  CHECK(refusal([] { validate(static_cast<QuantizedFormat>(-1)); }) == "quantization: there is no format -1");
}

TEST_CASE("quantization: sizes") {
  const auto bytes = [](const Quantization& x, std::int64_t rows, std::int64_t columns) {
    const QuantizedBytes result = quantized_bytes(x, rows, columns);
    return std::vector<std::int64_t>{result.codes, result.scales, result.zeros};
  };
  using Sizes = std::vector<std::int64_t>;
  CHECK(bytes(QuantizedFormat::q6_k, 3, 512) == Sizes{3 * 2 * 210, 0, 0});
  CHECK(bytes(QuantizedFormat::q4_0, 3, 33) == Sizes{3 * 2 * 18, 0, 0});  // whole blocks
  CHECK(bytes(Quantization::nbits(4, 32, true, Type::f16), 5, 96) == Sizes{5 * 48, 5 * 3 * 2, 5 * 2});
  CHECK(bytes(Quantization::nbits(8, 32), 5, 96) == Sizes{5 * 96, 5 * 3 * 4, 0});
  CHECK(bytes(Quantization::per_row(Type::i8, Type::bf16), 5, 7) == Sizes{35, 10, 0});
  CHECK(bytes(Quantization::per_tensor(), 5, 7) == Sizes{35, 4, 0});
  CHECK(bytes(QuantizedFormat::q8_0, 0, 7) == Sizes{0, 0, 0});
  CHECK(refusal([] { quantized_bytes({}, 1, 1); }) == "quantization: a matrix that is not quantised has no codes");
  CHECK(refusal([] { quantized_bytes(QuantizedFormat::q8_0, -1, 1); }) == "quantization: -1x1 is not a size");
  CHECK(refusal([] { quantized_bytes(QuantizedFormat::q8_0, std::int64_t{1} << 40, std::int64_t{1} << 40); }) ==
        "quantization: 1099511627776x1099511627776 elements of q8_0 take more bytes than 64 bits count");
}

TEST_CASE("quantization: no element outside is read") {
  const RandomMatrix x(Quantization::nbits(4, 16, true), 3, 40);
  float to[40];
  QuantizedMatrix shorter = x.matrix;
  shorter.codes = shorter.codes.first(71);
  CHECK(refusal([&] { dequantize(shorter, to); }) == "quantization: the codes take 72 bytes, and the array has 71");
  shorter = x.matrix;
  shorter.scales = {};
  CHECK(refusal([&] { dequantize_row(shorter, 0, 0, 1, to); }) == "quantization: the scales take 36 bytes, and the array has 0");
  shorter = x.matrix;
  shorter.zeros = shorter.zeros.first(5);
  CHECK(refusal([&] { dequantize_row(shorter, 0, 0, 1, to); }) == "quantization: the zeros take 6 bytes, and the array has 5");
  CHECK(refusal([&] { dequantize_row(x.matrix, 3, 0, 1, to); }) == "quantization: row 3 of 3 rows");
  CHECK(refusal([&] { dequantize_row(x.matrix, -1, 0, 1, to); }) == "quantization: row -1 of 3 rows");
  CHECK(refusal([&] { dequantize_row(x.matrix, 0, 39, 2, to); }) ==
        "quantization: 2 elements from column 39 on leave a row of 40");
  CHECK(contains(refusal([&] { dequantize_row(x.matrix, 0, 1, std::numeric_limits<std::int64_t>::max(), to); }),
                 "leave a row of 40"));
}
