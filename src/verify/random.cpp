// Random matrices that are the same on every machine.
#include <glgemm/verify.hpp>

#include "base/elements.hpp"
#include "verify/lowered.hpp"
#include "verify/random.hpp"

namespace glgemm {

using namespace verify;

namespace {

template <class T>
T random_element(Random& random) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(random() >> 32);
  else if constexpr (std::is_same_v<T, double>)
    return static_cast<double>(random() >> 11) * 0x1p-52 - 1;
  else if constexpr (is_complex_v<T>) {
    using R = typename T::value_type;
    const R real = random_element<R>(random);
    return T(real, random_element<R>(random));
  } else
    return T(static_cast<float>(random() >> 40) * 0x1p-23F - 1);
}

template <class T>
T random_integer(std::int64_t largest, Random& random) {
  const auto draw = [&] { return static_cast<double>(random.below(2 * largest + 1) - largest); };
  const double real = draw();
  return to_element<T>(std::complex<double>(real, is_complex_v<T> ? draw() : 0));
}

}  // namespace

template <class T>
Matrix<T> random_matrix(std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  Matrix<T> x(rows, columns);
  Random random(seed);
  for (T& value : x.elements()) value = random_element<T>(random);
  return x;
}

template <class T>
Matrix<T> random_integer_matrix(std::int64_t rows, std::int64_t columns, int largest, std::uint64_t seed) {
  if (largest < 0)
    throw std::invalid_argument(fmt::format("random_integer_matrix: the largest magnitude is {}, below 0", largest));
  Matrix<T> x(rows, columns);
  Random random(seed);
  for (T& value : x.elements()) value = random_integer<T>(largest, random);
  return x;
}

}  // namespace glgemm

#define GLGEMM_FOR_TYPE(T)                                                                          \
  template GLGEMM_VERIFY_EXPORT Matrix<T> random_matrix(std::int64_t, std::int64_t, std::uint64_t); \
  template GLGEMM_VERIFY_EXPORT Matrix<T> random_integer_matrix(std::int64_t, std::int64_t, int, std::uint64_t);
#include "verify/instantiate.hpp"
