// The operations of the products that Precision::reproducible and Precision::extended promise, one by one, as the shaders do
// them. A file that includes this is compiled without contraction: a fused multiply-add rounds once.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <glgemm/types.hpp>

namespace glgemm::canonical {

template <class A>
A product(A x, A y) {
  if constexpr (requires { typename A::value_type; })
    return {x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real()};
  else if constexpr (std::is_integral_v<A>)
    return static_cast<A>(static_cast<std::uint32_t>(x) * static_cast<std::uint32_t>(y));
  else
    return x * y;
}

template <class A>
A sum(A x, A y) {
  if constexpr (std::is_integral_v<A>)
    return static_cast<A>(static_cast<std::uint32_t>(x) + static_cast<std::uint32_t>(y));
  else
    return x + y;
}

/// A sum that is not complete yet, as the elements of `Running` are added to it. First the sum of Precision::reproducible.
template <class A>
struct Plain {
  A total{};
  void add_product(A x, A y) { total = sum(total, product(x, y)); }
  void add(const Plain& other) { total = sum(total, other.total); }
  A rounded() const { return total; }
};

/// That of Precision::extended in doubles.
struct Doubled {
  double total = 0;
  void add_product(float x, float y) { total += static_cast<double>(x) * static_cast<double>(y); }
  void add(const Doubled& other) { total += other.total; }
  float rounded() const { return static_cast<float>(total); }
};

/// That of Precision::extended in two floats: add_product() and add() of sums.glsl.
struct Pair {
  float total = 0, rest = 0;

  void add_product(float x, float y) {
    const float both = x * y;
    const float x_high = upper(x), x_low = x - x_high, y_high = upper(y), y_low = y - y_high;
    const float error = ((x_high * y_high - both) + x_high * y_low + x_low * y_high) + x_low * y_low;
    const float next = total + both, added = next - total;
    const float lost = (total - (next - added)) + (both - added);
    rest = rest + (lost + error);
    total = next;
  }
  void add(const Pair& other) {
    const float both = total + other.total, added = both - total;
    const float left = ((total - (both - added)) + (other.total - added)) + (rest + other.rest);
    const float high = both + left, low = left - (high - both);
    *this = is_finite(both) ? Pair{high, low} : Pair{both, 0};
  }
  float rounded() const { return is_finite(total) ? total + rest : total; }

 private:
  static float upper(float x) { return std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & 0xfffff000u); }
  static bool is_finite(float x) { return std::abs(x) <= std::numeric_limits<float>::max(); }
};

}  // namespace glgemm::canonical
