// Numbers of 16 and 8 bits: every value, and the conversions from float.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <glgemm/types.hpp>
#include <limits>
#include <random>
#include <vector>

using namespace glgemm;

namespace {

/// What is known of a format from its specification, apart from the code.
struct Format {
  Type type;
  int exponent_bits, fraction_bits;
  bool has_infinity;
  long double largest;
  friend bool operator==(const Format&, const Format&) = default;
};
const std::vector<Format> specified{{Type::f16, 5, 10, true, 65504},
                                    {Type::bf16, 8, 7, true, 0x1.fep127L},
                                    {Type::f8e4m3, 4, 3, false, 448},
                                    {Type::f8e5m2, 5, 2, true, 57344}};

/// What a host type says of its format. The largest exponent stands for infinity and NaN, or NaN has all bits set.
template <class T>
Format format_of(Type type) {
  const int exponent_bits = static_cast<int>(8 * sizeof(T)) - 1 - T::fraction_bits, bias = (1 << (exponent_bits - 1)) - 1;
  const bool has_infinity = std::isinf(float(T(std::numeric_limits<float>::infinity())));
  const long double last = std::ldexp(1.0L, has_infinity ? -T::fraction_bits : 1 - T::fraction_bits);
  return {type, exponent_bits, T::fraction_bits, has_infinity, std::ldexp(2 - last, has_infinity ? bias : bias + 1)};
}

/// The number that the bits are, from sign, exponent and fraction.
long double value_of(const Format& format, unsigned bits) {
  const unsigned sign = bits >> (format.exponent_bits + format.fraction_bits),
                 fraction = bits & ((1U << format.fraction_bits) - 1), largest_exponent = (1U << format.exponent_bits) - 1,
                 exponent = bits >> format.fraction_bits & largest_exponent;
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  long double magnitude = std::ldexp(static_cast<long double>(fraction), 1 - bias - format.fraction_bits);
  if (exponent > 0)
    magnitude =
        std::ldexp(1 + std::ldexp(static_cast<long double>(fraction), -format.fraction_bits), static_cast<int>(exponent) - bias);
  if (exponent == largest_exponent) {
    if (format.has_infinity) magnitude = fraction == 0 ? INFINITY : NAN;
    if (!format.has_infinity && fraction == (1U << format.fraction_bits) - 1) magnitude = NAN;
  }
  return sign == 1 ? -magnitude : magnitude;
}

/// Calls f(format, T()) for each format with its host type.
template <class F>
void for_each_format(F f) {
  for (const Type type : all_types)
    with_type(type, [&]<class T>(T x) {
      if constexpr (SmallFloat<T>) {
        CAPTURE(to_string(type));
        f(format_of<T>(type), x);
      }
    });
}

template <class T>
T from_bits(unsigned bits) {
  T x;
  x.bits = static_cast<typename T::Bits>(bits);
  return x;
}

}  // namespace

TEST_CASE("small floats: their specifications say what follows from the host types") {
  std::size_t compared = 0;
  for_each_format([&]<class T>(const Format& format, T) {
    for (const Format& expected : specified)
      if (expected.type == format.type) {
        CHECK(format == expected);
        ++compared;
      }
  });
  CHECK(compared == specified.size());
}

TEST_CASE("small floats: all bits are what sign, exponent and fraction say, and come back") {
  for_each_format([]<class T>(const Format& format, T) {
    CHECK(T::largest() == static_cast<float>(format.largest));
    for (unsigned bits = 0; bits < 1U << (8 * sizeof(T)); ++bits) {
      CAPTURE(bits);
      const long double expected = value_of(format, bits);
      const float value = from_bits<T>(bits);
      if (std::isnan(expected)) {
        REQUIRE(std::isnan(value));
        REQUIRE(std::isnan(static_cast<float>(T(value))));
      } else {
        REQUIRE(static_cast<long double>(value) == expected);
        REQUIRE(std::signbit(value) == std::signbit(expected));
        REQUIRE(T(value).bits == bits);
      }
    }
  });
}

TEST_CASE("small floats: conversions round to nearest even and overflow to infinity or NaN, or saturate") {
  for_each_format([]<class T>(const Format& format, T) {
    // The positive numbers in their order, and at the end the number that would follow the largest one.
    std::vector<long double> numbers;
    while (numbers.empty() || numbers.back() < format.largest)
      numbers.push_back(value_of(format, static_cast<unsigned>(numbers.size())));
    numbers.push_back(2 * numbers.back() - numbers[numbers.size() - 2]);
    const auto overflow = static_cast<unsigned>(numbers.size() - 1);  // the bits of infinity, or of NaN
    const auto sign = 1U << (8 * sizeof(T) - 1);
    const auto check = [&](float x) {
      CAPTURE(x);
      const auto magnitude = std::fabs(static_cast<long double>(x));
      const auto above = static_cast<unsigned>(std::lower_bound(numbers.begin(), numbers.end(), magnitude) - numbers.begin());
      unsigned nearest = std::min(above, overflow);
      if (above > 0 && above <= overflow) {
        const long double to_below = magnitude - numbers[above - 1], to_above = numbers[above] - magnitude;
        if (to_below < to_above || (to_below == to_above && above % 2 == 1)) nearest = above - 1;
      }
      REQUIRE(unsigned{T(x).bits} == (std::signbit(x) ? nearest | sign : nearest));
      REQUIRE(unsigned{saturate<T>(x).bits} ==
              (std::signbit(x) ? std::min(nearest, overflow - 1) | sign : std::min(nearest, overflow - 1)));
    };
    std::mt19937 random(1);
    for (std::size_t i = 0; i + 1 < numbers.size(); ++i) {
      const auto low = static_cast<float>(numbers[i]), middle = static_cast<float>((numbers[i] + numbers[i + 1]) / 2);
      for (const float x :
           {low, middle, std::nextafter(low, 0.0F), std::nextafter(middle, 0.0F), std::nextafter(middle, INFINITY)})
        check(i % 2 == 0 ? x : -x);
    }
    for (int i = 0; i < 20000; ++i)
      if (const auto any = std::bit_cast<float>(static_cast<std::uint32_t>(random())); !std::isnan(any)) check(any);
    for (const float x : {0.0F, -0.0F, 1e38F, -1e38F, INFINITY, -INFINITY, 0x1p-149F, -0x1p-149F}) check(x);
    for (const std::uint32_t nan : {0x7f800001U, 0xff800001U, 0x7fc00000U, 0xffffffffU}) {
      const auto x = std::bit_cast<float>(nan);
      CHECK(std::isnan(static_cast<float>(T(x))));
      CHECK(std::isnan(static_cast<float>(saturate<T>(x))));
    }
  });
}

TEST_CASE("small floats: examples of the OCP 8-bit Floating Point Specification") {
  // S.EEEE.MMM and S.EEEEE.MM, as the specification lists them.
  using E4M3 = float8_e4m3fn;
  CHECK(float(from_bits<E4M3>(0b0'1111'110)) == 448);
  CHECK(float(from_bits<E4M3>(0b0'0001'000)) == 0x1p-6F);
  CHECK(float(from_bits<E4M3>(0b0'0000'111)) == 0.875F * 0x1p-6F);
  CHECK(float(from_bits<E4M3>(0b0'0000'001)) == 0x1p-9F);
  CHECK(std::isnan(float(from_bits<E4M3>(0b0'1111'111))));
  CHECK(std::isnan(float(from_bits<E4M3>(0b1'1111'111))));
  CHECK(unsigned{E4M3(464.0F).bits} == 0b0'1111'110);
  CHECK(std::isnan(float(E4M3(465.0F))));
  CHECK(std::isnan(float(E4M3(-INFINITY))));
  CHECK(float(saturate<E4M3>(-INFINITY)) == -448);
  using E5M2 = float8_e5m2;
  CHECK(float(from_bits<E5M2>(0b0'11110'11)) == 57344);
  CHECK(float(from_bits<E5M2>(0b0'00001'00)) == 0x1p-14F);
  CHECK(float(from_bits<E5M2>(0b0'00000'11)) == 0.75F * 0x1p-14F);
  CHECK(float(from_bits<E5M2>(0b0'00000'01)) == 0x1p-16F);
  CHECK(float(from_bits<E5M2>(0b1'11111'00)) == -INFINITY);
  for (const unsigned fraction : {1U, 2U, 3U}) CHECK(std::isnan(float(from_bits<E5M2>(0b0'11111'00 | fraction))));
  CHECK(float(E5M2(61440.0F)) == INFINITY);
  CHECK(float(E5M2(61439.0F)) == 57344);
  CHECK(float(saturate<E5M2>(INFINITY)) == 57344);
}
