// What `bench` and `tune` measure alike: random products, a C that no check accepts, times and their quantiles.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <glgemm/verify.hpp>

#include "product/product.hpp"
#include "product/shapes.hpp"

namespace glgemm::tools {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;

inline double milliseconds_since(Clock::time_point begin) {
  return Milliseconds(Clock::now() - begin).count();
}

/// The value below which the part `p` of the values lies, 0.5 for the median; between two values, in proportion.
double quantile(std::vector<double> values, double p);
double median(const std::vector<double>& values);

/// Whether the GPU's time for a product is plausible beside the host's time around the call: no longer, and shorter by no more
/// than the call's own costs. Some drivers' timestamps are wrong for compute.
bool clocks_agree(double gpu_ms, double host_ms);

/// Poison: C is filled with it, so that an element that was not written fails its check. NaN, or a large odd integer.
template <class C>
C poison() {
  if constexpr (std::is_integral_v<C>)
    return static_cast<C>(0x5bd1e995);
  else if constexpr (requires(C x) { x.imag(); })
    return {poison<typename C::value_type>(), poison<typename C::value_type>()};
  else
    return std::numeric_limits<C>::quiet_NaN();
}
template <class C>
Matrix<C> poisoned(std::int64_t rows, std::int64_t columns) {
  Matrix<C> c(rows, columns);
  std::fill(c.elements().begin(), c.elements().end(), poison<C>());
  return c;
}

/// Writes the arrays of a quantised matrix, and to `numbers` what they stand for: the numbers there, quantised (their magnitudes
/// where codes have no sign); or random codes and scales in a format without a quantiser.
void quantize_to(StoredMatrix& stored, Matrix<float>& numbers, std::uint64_t seed);

/// The numbers in the given format, if that is another than theirs: rounded to it, or quantised. `numbers` become what the result
/// stands for.
template <class T>
std::optional<StoredMatrix> store(const ElementFormat& format, Matrix<T>& numbers, std::uint64_t seed) {
  if (format == ElementFormat{type_of<T>()}) return std::nullopt;
  StoredMatrix stored{format, numbers.rows(), numbers.columns()};
  stored.bytes.resize(static_cast<std::size_t>(stored.rows * storage_bytes(format, stored.columns)));
  if constexpr (std::is_same_v<T, float>)
    if (format.quantization) {
      quantize_to(stored, numbers, seed);
      return stored;
    }
  with_type(format.type, [&]<class E>(E) {
    if constexpr ((std::is_integral_v<T> && std::is_integral_v<E>) || (std::is_same_v<T, float> && SmallFloat<E>))
      for (std::size_t i = 0; i < numbers.elements().size(); ++i) {
        const auto element = static_cast<E>(numbers.elements()[i]);
        std::memcpy(stored.bytes.data() + i * sizeof(E), &element, sizeof(E));
        numbers.elements()[i] = static_cast<T>(element);
      }
  });
  return stored;
}

/// A product of `shape`. `fill(rows, columns, seed)` makes A with `seed` and B with `seed` + 1.
template <class T, class F>
HostProduct<T> product_of(const Shape& shape, std::int64_t batch, std::uint64_t seed, const F& fill) {
  HostProduct<T> p;
  p.op_a = shape.op_a;
  p.op_b = shape.op_b;
  p.batch = batch;
  const auto operand = [&](std::int64_t rows, std::int64_t columns, Op op, std::uint64_t its_seed) {
    if (op != Op::none) std::swap(rows, columns);
    return fill(batch * rows, columns, its_seed);
  };
  p.a = operand(shape.m, shape.k, shape.op_a, seed);
  p.b = operand(shape.k, shape.n, shape.op_b, seed + 1);
  return p;
}
template <class T>
HostProduct<T> random_product(const Shape& shape, std::int64_t batch, std::uint64_t seed) {
  return product_of<T>(shape, batch, seed, random_matrix<T>);
}
/// Has the device get A and B in these formats.
template <class T>
void store_as(const Formats& formats, HostProduct<T>& p) {
  p.stored_a = store(formats.a, p.a, 4);
  p.stored_b = store(formats.b, p.b, 5);
  p.quantized = formats.a.quantization || formats.b.quantization;
}

/// A product for a check that takes milliseconds where the shape is small: of integers whose sums are all exact, and with a C
/// that is added to, which shows that C was written at all.
template <class T>
HostProduct<T> exact_product(const Shape& shape, const Formats& formats, std::int64_t batch, std::uint64_t seed) {
  using C = accumulator_t<T>;
  // Every sum is an integer below 2^23, complex ones included.
  const double most = std::sqrt(static_cast<double>(1 << 22) / static_cast<double>(shape.k + 1));
  const int largest = static_cast<int>(std::clamp(most, 1.0, 100.0));
  HostProduct<T> p = product_of<T>(shape, std::min<std::int64_t>(batch, 7), seed,
                                   [&](std::int64_t rows, std::int64_t columns, std::uint64_t its_seed) {
                                     return random_integer_matrix<T>(rows, columns, largest, its_seed);
                                   });
  p.beta = C(1);
  p.c0 = random_integer_matrix<C>(p.batch * shape.m, shape.n, 100, seed + 2);
  store_as(formats, p);
  return p;
}

}  // namespace glgemm::tools
