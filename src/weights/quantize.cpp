// Quantising. Compiled without contraction: a fused multiply-add rounds once.
#include <glgemm/quantize.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <span>
#include <stdexcept>

#include "base/elements.hpp"
#include "base/quantization.hpp"
#include "base/rounding.hpp"
#include "base/text.hpp"

namespace glgemm {
namespace {

using Format = QuantizedFormat;
using Group = std::span<const float>;

template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) {
  throw std::invalid_argument("quantize: " + fmt::format(text, std::forward<Args>(args)...));
}

/// Stores a scale, and returns what it is after rounding.
float store_scale(std::byte* to, Type type, float scale) {
  store_element(to, type, scale);
  const float stored = with_type(type, [&]<class T>(T x) {
    std::memcpy(&x, to, sizeof x);
    return to_number<float>(x).real();
  });
  if (!std::isfinite(stored)) refuse("{} is beyond the scales' type {}", scale, to_string(type));
  return stored;
}

/// 1 / scale, or 0 where that is infinite.
float reciprocal(float scale) {
  const float result = 1 / scale;
  return std::isfinite(result) ? result : 0.0F;
}

/// The first of the elements of the greatest magnitude; 0 where none is greater.
float extreme(Group x) {
  float result = 0;
  for (const float each : x)
    if (std::fabs(each) > std::fabs(result)) result = each;
  return result;
}

int truncated(float x, int greatest) {
  return std::min(greatest, static_cast<int>(x));
}

void set_bits(std::byte& byte, int bits) {
  byte |= static_cast<std::byte>(bits);
}

/// Code k of twice as many as `bytes`: its low 4 bits among those at `low`, a fifth one among those at `high`.
void store_code(std::byte* low, int k, int code, std::byte* high = nullptr, int bytes = 16) {
  set_bits(low[k % bytes], (code & 15) << (k / bytes * 4));
  if (high) set_bits(high[k / 8], (code >> 4) << (k % 8));
}

// ---- ggml's formats: a block of zeros in, with the codes and scales of its numbers out

void quantize_q8_0(Group x, std::byte* block) {
  const float scale = std::fabs(extreme(x)) / 127, factor = reciprocal(scale);
  store_scale(block, Type::f16, scale);
  for (std::size_t k = 0; k < x.size(); ++k) block[2 + k] = static_cast<std::byte>(static_cast<int>(std::round(x[k] * factor)));
}

/// Codes about a zero in the middle.
void quantize_symmetric(Group x, int bits, std::byte* scale_at, std::byte* high, std::byte* low) {
  const int middle = 1 << (bits - 1);
  const float scale = extreme(x) / static_cast<float>(-middle), factor = reciprocal(scale),
              offset = static_cast<float>(middle) + 0.5F;
  store_scale(scale_at, Type::f16, scale);
  for (int k = 0; k < 32; ++k)
    store_code(low, k, truncated(x[static_cast<std::size_t>(k)] * factor + offset, 2 * middle - 1), high);
}

/// Codes from the minimum on.
void quantize_from_minimum(Group x, int bits, std::byte* block, std::byte* high, std::byte* low) {
  const auto [least, greatest] = std::minmax_element(x.begin(), x.end());
  const int greatest_code = (1 << bits) - 1;
  const float scale = (*greatest - *least) / static_cast<float>(greatest_code), factor = reciprocal(scale);
  store_scale(block, Type::f16, scale);
  store_scale(block + 2, Type::f16, *least);
  for (int k = 0; k < 32; ++k)
    store_code(low, k, truncated((x[static_cast<std::size_t>(k)] - *least) * factor + 0.5F, greatest_code), high);
}

/// Stores the E2M1 codes that are nearest to numbers, of equals the first.
void store_e2m1(Group x, float scale, std::byte* low) {
  for (std::size_t k = 0; k < x.size(); ++k) {
    int nearest = 0;
    const auto distance = [&](int code) { return std::fabs(e2m1_numbers[code] * scale - x[k]); };
    for (int code = 1; code < 16; ++code)
      if (distance(code) < distance(nearest)) nearest = code;
    store_code(low, static_cast<int>(k), nearest, nullptr, static_cast<int>(x.size()) / 2);
  }
}

void quantize_mxfp4(Group x, std::byte* block) {
  const float greatest = std::fabs(extreme(x));
  // The logarithm is rounded to a float: below a power of two it may be that power's.
  const float exponent = greatest > 0 ? std::floor(static_cast<float>(std::log2(static_cast<double>(greatest)))) : -125;
  const int stored = std::max(0, static_cast<int>(exponent) - 2 + 127);
  block[0] = static_cast<std::byte>(stored);
  store_e2m1(x, std::ldexp(1.0F, stored - 127), block + 1);
}

/// A positive number as f8e4m3, halves rounded up; from 248 on the greatest, 448.
std::uint8_t to_e4m3(float x) {
  if (x < 0x1p-6F) return static_cast<std::uint8_t>(std::min(7, static_cast<int>(x * 512 + 0.5F)));
  const std::uint32_t rounded = (std::bit_cast<std::uint32_t>(x) + (1U << 19)) >> 20, rebias = (127 - 7) << 3;
  return static_cast<std::uint8_t>(rounded < rebias + 0x78 ? rounded - rebias : 0x7e);
}

void quantize_nvfp4(Group x, std::byte* block) {
  for (std::size_t group = 0; group < 4; ++group) {
    const Group part = x.subspan(16 * group, 16);
    const std::uint8_t scale = to_e4m3(std::fabs(extreme(part)) / 6);
    block[group] = static_cast<std::byte>(scale);
    store_e2m1(part, nvfp4_scale(scale), block + 4 + 8 * group);
  }
}

/// The code of the nearest number, of two that are equally near the greater one.
int nearest_iq4_nl(float x) {
  const auto* const above = std::upper_bound(std::begin(iq4_nl_numbers), std::end(iq4_nl_numbers), x);
  const int code = static_cast<int>(above - std::begin(iq4_nl_numbers));
  if (code == 0 || code == 16) return std::min(code, 15);
  return x - static_cast<float>(above[-1]) < static_cast<float>(above[0]) - x ? code - 1 : code;
}

/// The codes by the scale that makes the extreme -127; then the scale that is best for them, where large numbers count more.
void quantize_iq4_nl(Group x, std::byte* block) {
  const float greatest = extreme(x), factor = std::fabs(greatest) < 1e-15F ? 0.0F : 1 / (greatest / -127);
  float products = 0, squares = 0;
  for (int k = 0; k < 32; ++k) {
    const float number = x[static_cast<std::size_t>(k)], weight = number * number;
    const int code = nearest_iq4_nl(factor * number);
    const auto stored = static_cast<float>(iq4_nl_numbers[code]);
    products += weight * stored * number;
    squares += weight * stored * stored;
    store_code(block + 2, k, code);
  }
  store_scale(block, Type::f16, factor != 0 && squares > 0 ? products / squares : 0.0F);
}

using QuantizeBlock = void (*)(Group, std::byte*);
QuantizeBlock quantizer_of(Format format) {
  switch (format) {
    case Format::q8_0:
      return quantize_q8_0;
    case Format::q4_0:
      return [](Group x, std::byte* block) { quantize_symmetric(x, 4, block, nullptr, block + 2); };
    case Format::q4_1:
      return [](Group x, std::byte* block) { quantize_from_minimum(x, 4, block, nullptr, block + 4); };
    case Format::q5_0:
      return [](Group x, std::byte* block) { quantize_symmetric(x, 5, block, block + 2, block + 6); };
    case Format::q5_1:
      return [](Group x, std::byte* block) { quantize_from_minimum(x, 5, block, block + 4, block + 8); };
    case Format::mxfp4:
      return quantize_mxfp4;
    case Format::iq4_nl:
      return quantize_iq4_nl;
    case Format::nvfp4:
      return quantize_nvfp4;
    default:
      refuse("there is no quantiser for {}", info(format).name);
  }
}

// ---- Scales apart

/// A group of nbits: codes from `codes` on, its scale, and its zero, which is returned.
int quantize_group(Group x, const Quantization& quantization, std::byte* codes, std::byte* scale_at) {
  const int greatest_code = (1 << quantization.bits) - 1, middle = 1 << (quantization.bits - 1);
  float least = *std::min_element(x.begin(), x.end()), greatest = *std::max_element(x.begin(), x.end());
  float scale = -(std::fabs(greatest) > std::fabs(least) ? greatest : least) / static_cast<float>(middle);
  int zero = middle;
  if (quantization.zeros) {
    least = std::min(least, 0.0F);
    greatest = std::max(greatest, 0.0F);
    scale = (greatest - least) / static_cast<float>(greatest_code);
    zero = scale > 0 ? static_cast<int>(std::clamp(std::round(-least / scale), 0.0F, static_cast<float>(greatest_code))) : 0;
  }
  const float factor = reciprocal(store_scale(scale_at, quantization.scales, scale));
  for (std::size_t k = 0; k < x.size(); ++k) {
    const float code = std::clamp(std::round(x[k] * factor + static_cast<float>(zero)), 0.0F, static_cast<float>(greatest_code));
    if (quantization.bits == 8)
      codes[k] = static_cast<std::byte>(static_cast<int>(code));
    else
      set_bits(codes[k / 2], static_cast<int>(code) << (k % 2 * 4));
  }
  return zero;
}

/// Elements with one scale for all of them.
void quantize_together(Group x, const Quantization& quantization, std::byte* codes, std::byte* scale_at) {
  with_type(quantization.codes, [&]<class T>(T) {
    if constexpr (sizeof(T) == 1) {
      float greatest_code = 0;
      if constexpr (SmallFloat<T>)
        greatest_code = T::largest();
      else
        greatest_code = std::numeric_limits<T>::max();
      if (std::is_unsigned_v<T>)
        for (const float each : x)
          if (each < 0) refuse("{} is negative, which codes of u8 without a zero cannot be", each);
      const float scale = store_scale(scale_at, quantization.scales, std::fabs(extreme(x)) / greatest_code);
      for (const float each : x) {
        const float quotient = reciprocal(scale) == 0 ? 0.0F : std::clamp(each / scale, -greatest_code, greatest_code);
        *codes++ = std::bit_cast<std::byte>(
            to_element<T>(std::complex<float>(std::is_integral_v<T> ? std::nearbyint(quotient) : quotient)));
      }
    }
  });
}

/// Calls use(the numbers of a block, how many blocks lie before it) for all blocks of a row of the result.
template <class Use>
void for_each_block(const QuantizedArrays& result, std::int64_t row, const float* x, Use use) {
  const std::int64_t size = block_codes(result.quantization), blocks = ceil_div(result.columns, size);
  std::vector<float> padded(static_cast<std::size_t>(size));
  for (std::int64_t block = 0; block < blocks; ++block) {
    const std::int64_t first = block * size, count = std::min(size, result.columns - first);
    std::fill(std::copy_n(x + row * result.columns + first, count, padded.begin()), padded.end(), 0.0F);
    use(Group(padded), row * blocks + block);
  }
}

}  // namespace

QuantizedArrays quantize(const Quantization& quantization, std::int64_t rows, std::int64_t columns, const float* x) {
  const QuantizedBytes bytes = quantized_bytes(quantization, rows, columns);
  QuantizedArrays result{.quantization = quantization, .rows = rows, .columns = columns};
  const auto zeros = [](std::int64_t count) { return std::vector<std::byte>(static_cast<std::size_t>(count)); };
  result.codes = zeros(bytes.codes);
  result.scales = zeros(bytes.scales);
  result.zeros = zeros(bytes.zeros);
  for (std::int64_t i = 0; i < rows * columns; ++i)
    if (!std::isfinite(x[i])) refuse("element {}, {} is {}", i / columns, i % columns, x[i]);

  const std::int64_t block = block_bytes(quantization), scale = element_bytes(quantization.scales);
  if (quantization.format == Format::per_tensor) {
    quantize_together({x, static_cast<std::size_t>(rows * columns)}, quantization, result.codes.data(), result.scales.data());
  } else if (quantization.format == Format::per_row) {
    for (std::int64_t row = 0; row < rows; ++row)
      quantize_together({x + row * columns, static_cast<std::size_t>(columns)}, quantization, result.codes.data() + row * columns,
                        result.scales.data() + row * scale);
  } else if (quantization.format == Format::nbits) {
    const std::int64_t groups = ceil_div(columns, quantization.group), row_zeros = ceil_div(groups * quantization.bits, 8);
    for (std::int64_t row = 0; row < rows; ++row)
      for_each_block(result, row, x, [&](Group numbers, std::int64_t place) {
        const int zero =
            quantize_group(numbers, quantization, result.codes.data() + place * block, result.scales.data() + place * scale);
        const std::int64_t bit = place % groups * quantization.bits;
        if (quantization.zeros) set_bits(result.zeros[static_cast<std::size_t>(row * row_zeros + bit / 8)], zero << (bit % 8));
      });
  } else {
    const QuantizeBlock quantize_block = quantizer_of(quantization.format);
    for (std::int64_t row = 0; row < rows; ++row)
      for_each_block(result, row, x,
                     [&](Group numbers, std::int64_t place) { quantize_block(numbers, result.codes.data() + place * block); });
  }
  return result;
}

}  // namespace glgemm
