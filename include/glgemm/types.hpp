// The types of elements.
#pragma once

#include <complex>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include <glgemm/export.hpp>
#include <glgemm/matrix.hpp>

namespace glgemm {

/// What the elements of a matrix are. c64 and c128 are NumPy's names for complex numbers of two floats and of two doubles.
enum class Type { f32, f64, f16, bf16, i32, u32, i8, c64, c128 };

/// The size of one element in bytes.
GLGEMM_EXPORT std::int64_t element_bytes(Type type) noexcept;
/// "f32" and so on, as on the command line.
GLGEMM_EXPORT std::string_view to_string(Type type) noexcept;
/// Reads what `to_string` writes.  @throws std::invalid_argument  the message lists the known types
GLGEMM_EXPORT Type parse_type(std::string_view text);
/// The type in which products of elements of `type` are summed, and of alpha and beta: f32 for f16 and bf16, i32 for i8, else the
/// type itself.
GLGEMM_EXPORT Type accumulator(Type type) noexcept;
GLGEMM_EXPORT bool is_complex(Type type) noexcept;
GLGEMM_EXPORT bool is_integer(Type type) noexcept;

/// The Type of a host type: float, double, half, bfloat16, std::int32_t, std::uint32_t, std::int8_t, std::complex<float> or
/// std::complex<double>.
template <class T>
constexpr Type type_of() noexcept {
  if constexpr (std::is_same_v<T, float>)
    return Type::f32;
  else if constexpr (std::is_same_v<T, double>)
    return Type::f64;
  else if constexpr (std::is_same_v<T, half>)
    return Type::f16;
  else if constexpr (std::is_same_v<T, bfloat16>)
    return Type::bf16;
  else if constexpr (std::is_same_v<T, std::int32_t>)
    return Type::i32;
  else if constexpr (std::is_same_v<T, std::uint32_t>)
    return Type::u32;
  else if constexpr (std::is_same_v<T, std::int8_t>)
    return Type::i8;
  else if constexpr (std::is_same_v<T, std::complex<float>>)
    return Type::c64;
  else {
    static_assert(std::is_same_v<T, std::complex<double>>, "glgemm has no such type");
    return Type::c128;
  }
}

}  // namespace glgemm
