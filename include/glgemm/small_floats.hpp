// Floating-point numbers of 16 and 8 bits, which C++20 does not have.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include <glgemm/language.hpp>

namespace glgemm {

/// What the largest exponent of a format means.
enum class LargestExponent {
  special,  ///< infinity and NaN, as in IEEE 754
  numbers   ///< numbers, but for NaN, which has all bits set except the sign; the format has no infinity
};

/// A number in 1 sign bit, `exponent` bits and `fraction` bits, with subnormal numbers.
///
/// From float it rounds to nearest even; NaN stays NaN. A number beyond largest() becomes infinity, or NaN where the format has
/// no infinity, so that an overflow shows: the non-saturating mode of the OCP 8-bit Floating Point Specification. saturate() is
/// its saturating mode. To float it is exact.
template <int exponent, int fraction, LargestExponent meaning = LargestExponent::special>
struct FloatFormat {
  using Bits = std::conditional_t<(exponent + fraction > 7), std::uint16_t, std::uint8_t>;
  static constexpr int fraction_bits = fraction;
  static constexpr int bias = (1 << (exponent - 1)) - 1;

  Bits bits = 0;

  FloatFormat() = default;
  constexpr explicit FloatFormat(float value) : bits(static_cast<Bits>(round(std::bit_cast<std::uint32_t>(value)))) {}
  constexpr operator float() const { return widen(bits); }

  /// The largest number.
  static constexpr float largest() { return widen(first_special - 1u); }

 private:
  static constexpr int shift = 23 - fraction;                               // from this fraction to a float's
  static constexpr std::uint32_t all = (1u << (exponent + fraction)) - 1u;  // all bits but the sign
  static constexpr std::uint32_t sign_bit = all + 1u;
  static constexpr std::uint32_t fraction_mask = (1u << fraction) - 1u;
  static constexpr bool has_infinity = meaning == LargestExponent::special;
  static constexpr std::uint32_t first_special = has_infinity ? all & ~fraction_mask : all;  // infinity or NaN
  static constexpr std::uint32_t nan = first_special | 1u << (fraction - 1);
  static constexpr std::uint32_t rebias = static_cast<std::uint32_t>(127 - bias) << 23;
  static constexpr bool is_short_float = exponent == 8;  // it is a float's upper bits

  static constexpr float widen(std::uint32_t x) {
    if constexpr (is_short_float) return std::bit_cast<float>(x << shift);
    const std::uint32_t sign = (x & sign_bit) << (31 - exponent - fraction), magnitude = x & all;
    if (magnitude >= first_special) return std::bit_cast<float>(sign | 0x7f800000u | (magnitude & fraction_mask) << shift);
    // Shifted into place, the exponent is too small by the difference of the biases. A multiplication corrects that, for
    // subnormal numbers as well.
    const float scaled = std::bit_cast<float>(magnitude << shift) * std::bit_cast<float>(rebias + 0x3f800000u);
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(scaled) | sign);
  }

  static constexpr std::uint32_t round(std::uint32_t x) {
    const std::uint32_t sign = (x >> (31 - exponent - fraction)) & sign_bit, magnitude = x & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return sign | nan | (is_short_float ? magnitude >> shift : 0u);
    if (is_short_float || magnitude >= rebias + 0x00800000u) {
      const std::uint32_t rounded = (magnitude - rebias + (1u << (shift - 1)) - 1u + ((magnitude >> shift) & 1u)) >> shift;
      return sign | (rounded < first_special ? rounded : first_special);
    }
    // A subnormal number counts in units of 2^(1 - bias - fraction).
    const std::uint32_t cut = static_cast<std::uint32_t>(151 - bias - fraction) - (magnitude >> 23);
    if (cut > 24u) return sign;
    const std::uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    const std::uint32_t whole = mantissa >> cut, rest = mantissa & ((1u << cut) - 1u), half_way = 1u << (cut - 1u);
    return sign | (rest > half_way || (rest == half_way && (whole & 1u)) ? whole + 1u : whole);
  }
};

/// Whether T is one of the types of this header.
template <class T>
concept SmallFloat = requires {
  typename T::Bits;
  T::fraction_bits;
};

/// IEEE 754's binary16: 5 exponent and 10 fraction bits.
struct half : FloatFormat<5, 10> {
  using FloatFormat::FloatFormat;
};

/// The upper 16 bits of a float: 8 exponent and 7 fraction bits.
struct bfloat16 : FloatFormat<8, 7> {
  using FloatFormat::FloatFormat;
};

/// E4M3 of the OCP 8-bit Floating Point Specification: 4 exponent and 3 fraction bits, up to 448, and no infinity.
struct float8_e4m3fn : FloatFormat<4, 3, LargestExponent::numbers> {
  using FloatFormat::FloatFormat;
};

/// E5M2 of the OCP 8-bit Floating Point Specification: 5 exponent and 2 fraction bits, up to 57344, and infinities.
struct float8_e5m2 : FloatFormat<5, 2> {
  using FloatFormat::FloatFormat;
};

/// Rounds to nearest even; a number beyond T::largest(), infinity included, becomes T::largest() with its sign. NaN stays NaN.
template <SmallFloat T>
constexpr T saturate(float value) {
  constexpr float largest = T::largest();
  return T(value > largest ? largest : value < -largest ? -largest : value);
}

}  // namespace glgemm
