// Quantised matrices on the host: names, sizes, and the decoding of each format. Compiled without contraction: a fused
// multiply-add rounds once.
#include "base/quantization.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "base/elements.hpp"
#include "base/rounding.hpp"
#include "base/text.hpp"

namespace glgemm {
namespace {

using Format = QuantizedFormat;
using Bytes = const std::uint8_t*;

template <class... Args>
[[noreturn]] void refuse_quantization(fmt::format_string<Args...> text, Args&&... args) {
  throw std::invalid_argument("quantization: " + fmt::format(text, std::forward<Args>(args)...));
}

// ---- Names

int parse_member(std::string_view name, std::string_view value) {
  int number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc{} || end != value.data() + value.size()) refuse_quantization("{}={} is not a number", name, value);
  return number;
}

void set_member(Quantization& quantization, std::string_view name, std::string_view value) {
  if (name == "bits")
    quantization.bits = parse_member(name, value);
  else if (name == "group")
    quantization.group = parse_member(name, value);
  else if (name == "zeros" && (value == "0" || value == "1"))
    quantization.zeros = value == "1";
  else if (name == "zeros")
    refuse_quantization("zeros={} is neither 0 nor 1", value);
  else if (name == "scales")
    quantization.scales = parse_type(value);
  else if (name == "codes")
    quantization.codes = parse_type(value);
  else
    refuse_quantization("unknown member \"{}\"; known members: bits, group, zeros, scales, codes", name);
}

/// The same without what its format does not have.
Quantization without_foreign_members(const Quantization& x) {
  if (x.format == Format::nbits) return Quantization::nbits(x.bits, x.group, x.zeros, x.scales);
  if (x.format == Format::per_row) return Quantization::per_row(x.codes, x.scales);
  if (x.format == Format::per_tensor) return Quantization::per_tensor(x.codes, x.scales);
  return x.format;
}

std::string_view members_of(Format format) {
  if (format == Format::nbits) return "bits, group, zeros and scales";
  return format == Format::per_row || format == Format::per_tensor ? "codes and scales" : "no members";
}

// ---- Decoding, and where scales lie. A block begins at `b`, and k counts its codes.

float f16(Bytes b) {
  return std::bit_cast<half>(static_cast<std::uint16_t>(b[0] | b[1] << 8));
}
float product(float scale, int code) {
  return scale * static_cast<float>(code);
}
/// Twice as many codes of 4 bits as bytes: the first half are the low halves of the bytes, the others the high halves.
int nibble(Bytes b, int k, int bytes = 16) {
  return b[k % bytes] >> (k / bytes * 4) & 15;
}
/// The same with a fifth bit for each from 32 bits of their own.
int five_bits(Bytes high, Bytes b, int k) {
  return nibble(b, k) | (high[k / 8] >> (k % 8) & 1) << 4;
}
/// q4_k and q5_k, whose scales and minima of 6 bits are alike.
float of_scale_and_minimum(Bytes b, int group, int code) {
  const Bytes packed = b + 4;
  int scale = packed[group % 4] & 63, minimum = packed[group % 4 + 4] & 63;
  if (group >= 4) {
    scale = (packed[group + 4] & 15) | packed[group - 4] >> 6 << 4;
    minimum = packed[group + 4] >> 4 | packed[group] >> 6 << 4;
  }
  return product(product(f16(b), scale), code) - product(f16(b + 2), minimum);
}
/// The nibbles of q4_k and q5_k: two groups share 32 bytes.
int nibble_of_group(Bytes b, int k) {
  return b[k / 64 * 32 + k % 32] >> (k / 32 % 2 * 4) & 15;
}

template <Format format>
float decode(Bytes b, int k) = delete;

template <>
float decode<Format::q8_0>(Bytes b, int k) {
  return product(f16(b), std::bit_cast<std::int8_t>(b[2 + k]));
}
template <>
float decode<Format::q4_0>(Bytes b, int k) {
  return product(f16(b), nibble(b + 2, k) - 8);
}
template <>
float decode<Format::q4_1>(Bytes b, int k) {
  return product(f16(b), nibble(b + 4, k)) + f16(b + 2);
}
template <>
float decode<Format::q5_0>(Bytes b, int k) {
  return product(f16(b), five_bits(b + 2, b + 6, k) - 16);
}
template <>
float decode<Format::q5_1>(Bytes b, int k) {
  return product(f16(b), five_bits(b + 4, b + 8, k)) + f16(b + 2);
}
template <>
float decode<Format::q4_k>(Bytes b, int k) {
  return of_scale_and_minimum(b, k / 32, nibble_of_group(b + 16, k));
}
template <>
float decode<Format::q5_k>(Bytes b, int k) {
  return of_scale_and_minimum(b, k / 32, nibble_of_group(b + 48, k) | (b[16 + k % 32] >> (k / 32) & 1) << 4);
}
template <>
float decode<Format::q6_k>(Bytes b, int k) {
  const int half_block = k / 128, part = k % 128 / 32, l = k % 32;
  const int low = b[64 * half_block + 32 * (part % 2) + l] >> (part / 2 * 4) & 15;
  const int high = b[128 + 32 * half_block + l] >> (2 * part) & 3;
  return product(product(f16(b + 208), std::bit_cast<std::int8_t>(b[192 + k / 16])), (low | high << 4) - 32);
}
template <>
float decode<Format::mxfp4>(Bytes b, int k) {
  return std::ldexp(e2m1_numbers[nibble(b + 1, k)], b[0] - 127);
}
template <>
float decode<Format::iq4_nl>(Bytes b, int k) {
  return product(f16(b), iq4_nl_numbers[nibble(b + 2, k)]);
}
template <>
float decode<Format::nvfp4>(Bytes b, int k) {
  const int group = k / 16;
  return nvfp4_scale(b[group]) * e2m1_numbers[nibble(b + 4 + 8 * group, k % 16, 8)];
}

/// Element `index` of an array, of one of the types of scales and codes.
float element(Type type, Bytes array, std::int64_t index) {
  return with_type(type, [&]<class T>(T x) {
    std::memcpy(&x, array + index * static_cast<std::int64_t>(sizeof x), sizeof x);
    return to_number<float>(x).real();
  });
}
/// Number `index` of some that lie one after the other, the low bits first.
int packed(Bytes array, std::int64_t index, int bits) {
  return bits == 8 ? array[index] : array[index / 2] >> (index % 2 * 4) & 15;
}

/// The arrays of a matrix, and how many blocks a row has.
struct Arrays {
  explicit Arrays(const QuantizedMatrix& x)
      : codes(bytes(x.codes)),
        scales(bytes(x.scales)),
        zeros(bytes(x.zeros)),
        blocks(ceil_div(x.columns, block_codes(x.quantization))) {}
  static Bytes bytes(std::span<const std::byte> span) { return reinterpret_cast<Bytes>(span.data()); }
  Bytes codes, scales, zeros;
  std::int64_t blocks;
};

/// Element k of a row.
template <Format format>
float decode(const Quantization& x, const Arrays& arrays, std::int64_t columns, std::int64_t row, std::int64_t k) {
  constexpr QuantizedFormatInfo facts = info(format);
  if constexpr (facts.codes > 1) {
    return decode<format>(arrays.codes + (row * arrays.blocks + k / facts.codes) * facts.bytes,
                          static_cast<int>(k % facts.codes));
  } else if constexpr (format == Format::nbits) {
    const std::int64_t group = k / x.group;
    const int zero =
        x.zeros ? packed(arrays.zeros + row * ceil_div(arrays.blocks * x.bits, 8), group, x.bits) : 1 << (x.bits - 1);
    const int code = packed(arrays.codes + row * arrays.blocks * block_bytes(x), k, x.bits);
    return product(element(x.scales, arrays.scales, row * arrays.blocks + group), code - zero);
  } else {
    return element(x.codes, arrays.codes, row * columns + k) *
           element(x.scales, arrays.scales, format == Format::per_row ? row : 0);
  }
}

template <Format format>
void decode_row(const QuantizedMatrix& matrix, std::int64_t row, std::int64_t first, std::int64_t count, float* to) {
  if constexpr (format != Format::none) {
    const Arrays arrays(matrix);
    for (std::int64_t k = first; k < first + count; ++k)
      *to++ = decode<format>(matrix.quantization, arrays, matrix.columns, row, k);
  }
}

void require_array(const char* name, std::span<const std::byte> array, std::int64_t needed) {
  if (static_cast<std::int64_t>(array.size()) < needed)
    refuse_quantization("the {} take {} bytes, and the array has {}", name, needed, array.size());
}

/// Call it for a matrix whose arrays are long enough.
void decode_row(const QuantizedMatrix& matrix, std::int64_t row, std::int64_t first, std::int64_t count, float* to) {
  switch (matrix.quantization.format) {
#define GLGEMM_ROW(name, ...) \
  case Format::name:          \
    return decode_row<Format::name>(matrix, row, first, count, to);
    GLGEMM_QUANTIZED_FORMATS(GLGEMM_ROW)
#undef GLGEMM_ROW
  }
}

}  // namespace

std::string to_string(const Quantization& quantization) {
  std::string text(info(quantization.format).name);
  auto add = [&text, separator = ':'](std::string_view name, auto value) mutable {
    text += fmt::format("{}{}={}", separator, name, value);
    separator = ',';
  };
  const Quantization plain(quantization.format);
  if (quantization.format == Format::nbits) {
    add("bits", quantization.bits);
    add("group", quantization.group);
  }
  if (quantization.zeros) add("zeros", 1);
  if (quantization.codes != plain.codes) add("codes", to_string(quantization.codes));
  if (quantization.scales != plain.scales) add("scales", to_string(quantization.scales));
  return text;
}

Quantization parse_quantization(std::string_view text) {
  const std::string_view name = text.substr(0, text.find(':'));
  const QuantizedFormatInfo& row = find_named(quantized_format_table, name, &QuantizedFormatInfo::name, "format", "formats");
  Quantization result(static_cast<Format>(&row - quantized_format_table.data()));
  text.remove_prefix(std::min(text.size(), name.size() + 1));
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    const std::string_view member = item.substr(0, item.find('='));
    set_member(result, member, item.substr(std::min(item.size(), member.size() + 1)));
  }
  validate(result);
  return result;
}

void validate(const Quantization& quantization) {
  const int number = static_cast<int>(quantization.format);
  if (number < 0 || number >= static_cast<int>(quantized_format_table.size()))
    refuse_quantization("there is no format {}", number);
  const std::string_view name = info(quantization.format).name;
  if (without_foreign_members(quantization) != quantization)
    refuse_quantization("{} has {}, and another member is not at its default", name, members_of(quantization.format));
  if (quantization.format == Format::nbits) {
    if (quantization.bits != 4 && quantization.bits != 8)
      refuse_quantization("{} has codes of 4 or 8 bits, and bits is {}", name, quantization.bits);
    if (quantization.group < 16 || !std::has_single_bit(static_cast<unsigned>(quantization.group)))
      refuse_quantization("{} has groups of 16, 32, 64 and so on, and group is {}", name, quantization.group);
  }
  const auto one_of = [](Type type, std::initializer_list<Type> list) {
    return std::find(list.begin(), list.end(), type) != list.end();
  };
  if (!one_of(quantization.scales, {Type::f32, Type::f16, Type::bf16}))
    refuse_quantization("scales are f32, f16 or bf16, and not {}", to_string(quantization.scales));
  if (!one_of(quantization.codes, {Type::i8, Type::u8, Type::f8e4m3, Type::f8e5m2}))
    refuse_quantization("codes are i8, u8, f8e4m3 or f8e5m2, and not {}", to_string(quantization.codes));
}

void set_scales(const Quantization& quantization, std::span<std::byte> block, const std::function<float(int)>& scale) {
  const QuantizedFormatInfo& format = info(quantization.format);
  std::byte* to = block.data() + format.scales_at;
  for (int i = 0; i < format.scales; ++i) {
    const float value = scale(i);
    if (format.scale == BlockScale::f16)
      store_element(to, Type::f16, value), to += 2;
    else if (format.scale == BlockScale::f8e4m3)
      store_element(to++, Type::f8e4m3, std::fabs(value));
    else
      *to++ = static_cast<std::byte>(127 + std::ilogb(value));
  }
}

QuantizedBytes quantized_bytes(const Quantization& quantization, std::int64_t rows, std::int64_t columns) {
  validate(quantization);
  if (!quantization) refuse_quantization("a matrix that is not quantised has no codes");
  if (rows < 0 || columns < 0) refuse_quantization("{} is not a size", size_text(rows, columns));
  const std::int64_t blocks = ceil_div(columns, block_codes(quantization)), scale = element_bytes(quantization.scales);
  if (std::max(saturating_product({rows, blocks, block_bytes(quantization)}),
               saturating_product({rows, quantization.format == Format::nbits ? blocks : 1, scale})) ==
      std::numeric_limits<std::int64_t>::max())
    refuse_quantization("{} elements of {} take more bytes than 64 bits count", size_text(rows, columns),
                        to_string(quantization));
  QuantizedBytes result = bytes_before(quantization, columns, rows, 0);
  if (quantization.format == Format::per_tensor) result.scales = scale;
  return result;
}

QuantizedBytes bytes_beside(const Quantization& quantization, std::int64_t ld, std::int64_t codes) {
  const std::int64_t rows = codes / ld, rest = codes % ld;
  QuantizedBytes result = quantized_bytes(quantization, rows, ld);
  if (rest > 0) {
    const QuantizedBytes last = quantized_bytes(quantization, 1, rest);
    result.scales = quantization.format == QuantizedFormat::per_tensor ? last.scales : result.scales + last.scales;
    result.zeros += last.zeros;
  }
  return {.scales = result.scales, .zeros = result.zeros};
}

void require_arrays(const QuantizedMatrix& matrix) {
  const QuantizedBytes needed = quantized_bytes(matrix.quantization, matrix.rows, matrix.columns);
  require_array("codes", matrix.codes, needed.codes);
  require_array("scales", matrix.scales, needed.scales);
  require_array("zeros", matrix.zeros, needed.zeros);
}

void dequantize_row(const QuantizedMatrix& matrix, std::int64_t row, std::int64_t first_column, std::int64_t count, float* to) {
  require_arrays(matrix);
  if (row < 0 || row >= matrix.rows) refuse_quantization("row {} of {} rows", row, matrix.rows);
  if (first_column < 0 || count < 0 || first_column > matrix.columns - count)
    refuse_quantization("{} elements from column {} on leave a row of {}", count, first_column, matrix.columns);
  decode_row(matrix, row, first_column, count, to);
}

void dequantize(const QuantizedMatrix& matrix, float* to) {
  require_arrays(matrix);
  for (std::int64_t row = 0; row < matrix.rows; ++row) decode_row(matrix, row, 0, matrix.columns, to + row * matrix.columns);
}

}  // namespace glgemm
