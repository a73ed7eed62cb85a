// How products are lowered to the three types that the checks compute with, and their references.
//
// Halves become float, integers std::uint32_t. A complex product becomes a real one of twice the inner size,
// [Re A, -Im A; Im A, Re A] [Re B; Im B] = [Re AB; Im AB], rows and columns interleaved.
#pragma once

#include <glgemm/verify.hpp>

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <stdexcept>
#include <type_traits>

#include "base/text.hpp"

namespace glgemm::verify {

constexpr double infinity = std::numeric_limits<double>::infinity();

template <class T>
constexpr bool is_complex_v = std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;

/// The type of the numbers that elements of T are lowered to.
template <class T>
using lowered_t =
    std::conditional_t<std::is_integral_v<T>, std::uint32_t,
                       std::conditional_t<std::is_same_v<T, double> || std::is_same_v<T, std::complex<double>>, double, float>>;

/// The type in which references of R's are computed.
template <class R>
using reference_t =
    std::conditional_t<std::is_same_v<R, float>, double, std::conditional_t<std::is_same_v<R, double>, long double, R>>;

inline std::size_t index(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

template <class T>
std::span<const T> row(const Matrix<T>& x, std::int64_t i) {
  return x.elements().subspan(index(i * x.columns()), index(x.columns()));
}

struct Size {
  std::int64_t rows;
  std::int64_t columns;
};

template <class T>
Size size_of(const Matrix<T>& x, Op op) {
  return op == Op::none ? Size{x.rows(), x.columns()} : Size{x.columns(), x.rows()};
}

inline std::string operand_text(const char* name, Op op, const Size& size) {
  const bool is_plain = op == Op::none;
  return fmt::format("{}{}{} is {}", is_plain ? "" : "op(", name, is_plain ? "" : ")", size_text(size.rows, size.columns));
}

template <class T>
void require_inner(const char* who, const Matrix<T>& a, Op op_a, const Matrix<T>& b, Op op_b) {
  const Size sa = size_of(a, op_a), sb = size_of(b, op_b);
  if (sa.columns != sb.rows)
    throw std::invalid_argument(fmt::format("{}: {} and {}: the inner sizes {} and {} differ", who, operand_text("A", op_a, sa),
                                            operand_text("B", op_b, sb), sa.columns, sb.rows));
}

template <class T, class C>
void require_shapes(const char* who, const Matrix<T>& a, const Matrix<T>& b, const Matrix<C>* c, const Terms<T, C>& terms) {
  require_inner(who, a, terms.op_a, b, terms.op_b);
  const Size sa = size_of(a, terms.op_a), sb = size_of(b, terms.op_b);
  const auto require = [&](const char* name, const Matrix<C>& x) {
    if (x.rows() != sa.rows || x.columns() != sb.columns)
      throw std::invalid_argument(fmt::format(
          "{}: {}, {} and {}: {} must be {}", who, operand_text("A", terms.op_a, sa), operand_text("B", terms.op_b, sb),
          operand_text(name, Op::none, size_of(x, Op::none)), name, size_text(sa.rows, sb.columns)));
  };
  if (c) require("C", *c);
  if (terms.digits < 0 || (terms.digits > 0 && std::is_integral_v<T>))
    throw std::invalid_argument(fmt::format("{}: C of {} digits{}", who, terms.digits,
                                            terms.digits > 0 ? ", and products of integers are compared exactly" : ""));
  if (terms.beta == accumulator_t<T>(0)) return;
  if (!terms.c0) throw std::invalid_argument(fmt::format("{}: beta is not 0, and there is no C0", who));
  require("C0", *terms.c0);
}

/// A matrix as it was given, or a copy that was lowered.
template <class R>
class Given {
 public:
  explicit Given(const Matrix<R>& given) : given_(&given) {}
  explicit Given(Matrix<R>&& own) : own_(std::move(own)) {}
  const Matrix<R>& operator*() const { return given_ ? *given_ : own_; }

 private:
  const Matrix<R>* given_ = nullptr;
  Matrix<R> own_;
};

template <class R, class T>
Given<R> converted(const Matrix<T>& x) {
  if constexpr (std::is_same_v<T, R>) {
    return Given<R>(x);
  } else {
    Matrix<R> values(x.rows(), x.columns());
    std::ranges::transform(x.elements(), values.elements().begin(), [](T value) { return static_cast<R>(value); });
    return Given<R>(std::move(values));
  }
}

/// Complex elements have each part in a row of its own; elements of `a` have [Re, -Im; Im, Re], interleaved.
template <class T>
Given<lowered_t<T>> lower(const Matrix<T>& x, bool a = false) {
  using R = lowered_t<T>;
  if constexpr (is_complex_v<T>) {
    Matrix<R> parts(2 * x.rows(), a ? 2 * x.columns() : x.columns());
    for (std::int64_t i = 0; i < x.rows(); ++i)
      for (std::int64_t j = 0; j < x.columns(); ++j) {
        const T value = x(i, j);
        const std::int64_t column = a ? 2 * j : j;
        parts(2 * i, column) = value.real();
        parts(2 * i + 1, column) = value.imag();
        if (a) {
          parts(2 * i, column + 1) = -value.imag();
          parts(2 * i + 1, column + 1) = value.real();
        }
      }
    return Given<R>(std::move(parts));
  } else {
    return converted<R>(x);
  }
}

template <class T>
Given<lowered_t<T>> lower(const Matrix<T>& x, Op op, bool a) {
  if (op == Op::none) return lower(x, a);
  Matrix<T> applied = apply_op(op, x);
  if constexpr (std::is_same_v<T, lowered_t<T>>)
    return Given<T>(std::move(applied));
  else
    return lower(applied, a);
}

template <class A>
std::array<lowered_t<A>, 2> lower(A scalar) {
  if constexpr (is_complex_v<A>)
    return {scalar.real(), scalar.imag()};
  else
    return {static_cast<lowered_t<A>>(scalar), 0};
}

/// How a C of fewer bits than the accumulator is rounded once more, and what that adds to the bound. Else nothing.
struct Narrow {
  double roundoff = 0;
  double least = 0;             ///< half the distance between its subnormal numbers
  double overflows = infinity;  ///< the least number that rounds to infinity
  float (*round)(float) = nullptr;
};

template <class C>
Narrow narrow() {
  if constexpr (SmallFloat<C>) {
    const double roundoff = std::ldexp(1, -1 - C::fraction_bits);
    // Half-way from the largest number to what would be the next.
    const double overflows = std::ldexp(2 - roundoff, C::bias);
    return {roundoff, std::ldexp(roundoff, 1 - C::bias), overflows, [](float x) { return static_cast<float>(C(x)); }};
  } else {
    return {};
  }
}

/// A product in the type that the checks compute with. A has `parts` rows for each row of C, as has C.
template <class R>
struct Lowered {
  Given<R> a, b, c, c0;
  int parts;
  std::array<R, 2> alpha, beta;
  bool read_c0;
  bool is_signed;
  Narrow narrow;
  Precision precision;
  bool quantized;
  int digits;
  bool tf32;          ///< A and B may have been rounded to it
  bool matrix_cores;  ///< may have summed it

  std::int64_t m() const { return (*c).rows() / parts; }
  std::int64_t n() const { return (*c).columns(); }
  std::int64_t k() const { return (*a).columns(); }
};

template <class T, class C>
Lowered<lowered_t<T>> lower(const Matrix<T>& a, const Matrix<T>& b, const Matrix<C>& c, const Terms<T, C>& terms) {
  using A = accumulator_t<T>;
  const bool sum = terms.alpha != A(0), read = terms.beta != A(0);
  constexpr int parts = is_complex_v<T> ? 2 : 1;
  using R = lowered_t<T>;
  return {sum ? lower(a, terms.op_a, true) : Given<R>(Matrix<R>(parts * size_of(a, terms.op_a).rows, 0)),
          sum ? lower(b, terms.op_b, false) : Given<R>(Matrix<R>(0, size_of(b, terms.op_b).columns)),
          lower(c),
          read ? lower(*terms.c0) : Given<R>(Matrix<R>()),
          parts,
          lower(terms.alpha),
          lower(terms.beta),
          read,
          std::is_signed_v<T>,
          narrow<C>(),
          terms.precision,
          terms.quantized,
          terms.digits,
          terms.precision == Precision::fast && std::is_same_v<T, float>,
          terms.matrix_cores && (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>)};
}

/// A real sum, and the sum of the magnitudes of its terms; integers need no magnitudes.
template <class D>
struct Reference {
  D value = 0;
  D magnitude = 0;
};

/// The parts of an element of C: one, or the real and the imaginary one.
template <class D>
using Element = std::array<Reference<D>, 2>;

template <class D>
D absolute(D x) {
  if constexpr (std::is_floating_point_v<D>)
    return std::fabs(x);
  else
    return x;
}

/// sum += scalar * x, for both parts.
template <class D, class R>
void add_scaled(Element<D>& sum, const std::array<R, 2>& scalar, const Element<D>& x, int parts) {
  const auto add = [](Reference<D>& to, D factor, const Reference<D>& y) {
    to.value += factor * y.value;
    to.magnitude += absolute(factor) * y.magnitude;
  };
  const D real = scalar[0], imaginary = scalar[1];
  add(sum[0], real, x[0]);
  if (parts == 1) return;
  add(sum[1], real, x[1]);
  if (imaginary == 0) return;  // 0 times an infinity of the other part would be NaN
  add(sum[0], D(0) - imaginary, x[1]);
  add(sum[1], imaginary, x[0]);
}

/// alpha * sum + beta * c0, for an element or for a sum over some.
template <class R, class D>
Element<D> combine(const Lowered<R>& p, const Element<D>& sum, const Element<D>& c0) {
  Element<D> result{};
  add_scaled(result, p.alpha, sum, p.parts);
  if (p.read_c0) add_scaled(result, p.beta, c0, p.parts);
  return result;
}

/// The reference of element (i, j), from its sum.
template <class R, class D>
Element<D> combine(const Lowered<R>& p, const Element<D>& sum, std::int64_t i, std::int64_t j) {
  Element<D> c0{};
  if (p.read_c0)
    for (int part = 0; part < p.parts; ++part) {
      const D value = (*p.c0)(i * p.parts + part, j);
      c0[index(part)] = {value, absolute(value)};
    }
  return combine(p, sum, c0);
}

}  // namespace glgemm::verify
