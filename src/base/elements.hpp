// Numbers as elements of a type, and back.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <glgemm/types.hpp>

namespace glgemm {

/// x as an element: rounded to nearest for floating-point types, wrapped for integers, without the imaginary part for real types.
template <class T, class R>
T to_element(std::complex<R> x) {
  if constexpr (requires { typename T::value_type; })
    return T(static_cast<typename T::value_type>(x.real()), static_cast<typename T::value_type>(x.imag()));
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<std::int64_t>(x.real()));
  else if constexpr (std::is_floating_point_v<T>)
    return static_cast<T>(x.real());
  else
    return T(static_cast<float>(x.real()));
}

/// Writes x to memory as an element of that type.
inline void store_element(std::byte* to, Type type, std::complex<double> x) {
  with_type(type, [&]<class T>(T) {
    const T value = to_element<T>(x);
    std::memcpy(to, &value, sizeof value);
  });
}

/// An element as a number, exactly.
template <class R, class T>
std::complex<R> to_number(T x) {
  if constexpr (requires { typename T::value_type; })
    return std::complex<R>(x);
  else
    return static_cast<R>(x);
}

}  // namespace glgemm
