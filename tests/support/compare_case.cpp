// A case's C is compared with the reference, which is computed on the host in long double.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>
#include <type_traits>

#include <glgemm/verify.hpp>

#include "base/elements.hpp"
#include "support/context.hpp"
#include "support/gemm_cases.hpp"
#include "verify/activation.hpp"

namespace glgemm::test {

Number load(const std::byte* from, Type type) {
  return with_type(type, [&]<class T>(T value) {
    std::memcpy(&value, from, sizeof value);
    return to_number<long double>(value);
  });
}

void store(std::byte* to, Type type, Number x) {
  with_type(type, [&]<class T>(T) {
    const T value = to_element<T>(x);
    std::memcpy(to, &value, sizeof value);
  });
}

bool flushes_subnormals(Type type) {
  const auto flushes = []<class T>(T) {
    constexpr T least = std::numeric_limits<T>::min();
    const T root = std::sqrt(least) / 16;  // whose square is subnormal
    PlanOptions naive;
    naive.kernel = parse_kernel("naive");
    const Matrix<T> a{{least / 4, 0}, {0, root}}, b{{8, 0}, {0, root}};
    const Matrix<T> c = engine().multiply(a, b, naive);
    return c(0, 0) == 0 || c(1, 1) == 0;
  };
  static const bool in_f32 = flushes(0.0f);
  if (type != Type::f64 && type != Type::c128) return in_f32;
  static const bool in_f64 = flushes(0.0);
  return in_f64;
}

namespace {

long double unit_roundoff(Type type) {
  return with_type(type, []<class T>(T x) -> long double {
    if constexpr (SmallFloat<T>)
      return std::ldexp(0.5L, -T::fraction_bits);
    else if constexpr (requires { x.real(); })
      return std::numeric_limits<typename T::value_type>::epsilon() / 2;
    else
      return std::numeric_limits<T>::epsilon() / 2;
  });
}

/// What a product or a sum may lose by underflow: less than the least number that the device keeps.
long double least_result(Type type) {
  return with_type(type, [type]<class T>(T x) -> long double {
    if constexpr (SmallFloat<T>)
      return 0;  // nothing is computed in it
    else if constexpr (requires { x.real(); })
      return least_result(type == Type::c128 ? Type::f64 : Type::f32);
    else if constexpr (std::is_integral_v<T>)
      return 0;
    else
      return flushes_subnormals(type) ? std::numeric_limits<T>::min() : std::numeric_limits<T>::denorm_min();
  });
}

/// op(X) of an item, as it was before the product.
Matrix<Number> numbers(const Case& x, const CaseMatrix& from, std::int64_t z, Op op = Op::none) {
  const bool transposed = op != Op::none;
  Matrix<Number> result(transposed ? from.view.columns : from.view.rows, transposed ? from.view.rows : from.view.columns);
  const std::byte* const memory = x.memory[from.memory].data();
  const std::int64_t item = from.items[static_cast<std::size_t>(z)];
  for (std::int64_t i = 0; i < result.rows(); ++i)
    for (std::int64_t j = 0; j < result.columns(); ++j) {
      const std::int64_t row = transposed ? j : i, column = transposed ? i : j;
      const Number value = from.view.quantization ? Number(from.decoded[static_cast<std::size_t>(from.index(item, row, column))])
                                                  : load(memory + from.at(item, row, column), from.view.type);
      result(i, j) = op == Op::conjugate_transpose ? std::conj(value) : value;
    }
  return result;
}

template <class T>
Matrix<T> rounded(const Matrix<Number>& x) {
  Matrix<T> result(x.rows(), x.columns());
  std::transform(x.elements().begin(), x.elements().end(), result.elements().begin(), to_element<T, long double>);
  return result;
}

/// What C is to be, for an item.
class Reference {
 public:
  Reference(const Case& x, std::int64_t item)
      : x_(x),
        alpha_(x.alpha_of(item)),
        beta_(x.beta_of(item)),
        sum_type_(sum_type(x.key.a.type, x.key.b.type)),
        u_(unit_roundoff(sum_type_)),
        underflow_(x.exact ? 0 : least_result(sum_type_)),
        a_(numbers(x, x.a, item, x.op_a)),
        b_(numbers(x, x.b, item, x.op_b)) {
    if (beta_ != Number(0)) c0_ = numbers(x, x.c, item);
    if (x.has_d) d_ = numbers(x, x.residual(), item);
    if (x.bias_kind != Bias::none) bias_ = numbers(x, x.bias, 0);
    if (x.promise == Precision::reproducible) find_promised_bits();
  }

  /// Whether element (i, j), which was found there, is right. If not, `expected` and `bound` say what it should be.
  bool accepts(const std::byte* found_bytes, std::int64_t i, std::int64_t j, Number& expected, long double& bound) const {
    const Type type = x_.key.c_type;
    const auto size = static_cast<std::size_t>(element_bytes(type));
    if (!promised_.empty()) {
      const std::byte* const bits = promised_.data() + static_cast<std::size_t>(i * x_.n + j) * size;
      expected = load(bits, type);
      bound = 0;
      return std::memcmp(bits, found_bytes, size) == 0;
    }
    find(i, j, expected, bound);
    const Number found = load(found_bytes, type);
    if (x_.exact) {
      Bytes bits(size);
      store(bits.data(), type, expected);
      bound = 0;
      return load(bits.data(), type) == found;
    }
    if (type != sum_type_) bound += unit_roundoff(type) * (std::abs(expected) + bound) + 0x1p-25L;
    if (std::isinf(found.real())) {  // an exponential may overflow
      Bytes largest(size);
      store(largest.data(), type, expected + bound);
      return load(largest.data(), type) == found;
    }
    return std::abs(found - expected) <= bound;
  }

 private:
  Number bias_of(std::int64_t i, std::int64_t j) const { return bias_(0, x_.bias_kind == Bias::for_each_row ? i : j); }

  /// The element without C's rounding, and how far a right one may be from it.
  void find(std::int64_t i, std::int64_t j, Number& sum, long double& bound) const {
    sum = 0;
    long double size = 0;
    for (std::int64_t p = 0; p < x_.k && alpha_ != Number(0); ++p) {
      sum += a_(i, p) * b_(p, j);
      size += std::abs(a_(i, p)) * std::abs(b_(p, j));
    }
    sum *= alpha_;
    size *= std::abs(alpha_);
    const auto add = [&](Number term) {
      sum += term;
      size += std::abs(term);
    };
    if (beta_ != Number(0)) add(beta_ * c0_(i, j));
    if (x_.has_d) add(d_(i, j));
    const bool has_bias = x_.bias_kind != Bias::none;
    if (has_bias) add(bias_of(i, j));
    const auto steps = static_cast<long double>(x_.k + 8);
    bound = steps * (u_ * size + underflow_) * (is_complex(x_.key.a.type) ? 4 : 1);
    if (x_.promise == Precision::extended)  // a product's rounding error may underflow as well
      bound = (4 + x_.has_d + has_bias) * u_ * size + steps * (underflow_ + 0x1p-126L);
    if (x_.activation.kind() == ActivationKind::none) return;
    const long double before = sum.real();
    sum = verify::activation_value(x_.activation, before);
    bound = verify::carried(x_.activation, before, bound) +
            (x_.exact ? 0 : 16 * u_ * verify::activation_scale(x_.activation, before));
  }

  /// Finds the bits that Precision::reproducible promises: C's elements, row by row.
  void find_promised_bits() {
    const auto size = static_cast<std::size_t>(element_bytes(x_.key.c_type));
    promised_.resize(static_cast<std::size_t>(x_.m * x_.n) * size);
    with_type(sum_type_, [&]<class A>(A) {  // elements of A and B are numbers of this type too
      if constexpr (std::is_same_v<A, accumulator_t<A>>) {
        Terms<A, A> terms;
        terms.alpha = to_element<A>(alpha_);
        const Matrix<A> before = rounded<A>(c0_);
        if (beta_ != Number(0)) {
          terms.beta = to_element<A>(beta_);
          terms.c0 = &before;
        }
        const Matrix<A> c = canonical_product<A, A>(rounded<A>(a_), rounded<A>(b_), terms);
        for (std::int64_t i = 0; i < x_.m; ++i)
          for (std::int64_t j = 0; j < x_.n; ++j) {
            A value = c(i, j);
            if (x_.has_d) value = value + to_element<A>(d_(i, j));
            if (x_.bias_kind != Bias::none) value = value + to_element<A>(bias_of(i, j));
            if constexpr (std::is_floating_point_v<A>) value = verify::activation_value(x_.activation, value);
            store(promised_.data() + static_cast<std::size_t>(i * x_.n + j) * size, x_.key.c_type, to_number<long double>(value));
          }
      }
    });
  }

  const Case& x_;
  Number alpha_, beta_;
  Type sum_type_;
  long double u_, underflow_;
  Matrix<Number> a_, b_;          ///< op(A) and op(B)
  Matrix<Number> c0_, d_, bias_;  ///< where the product reads them
  Bytes promised_;                ///< empty where no bits are promised
};

}  // namespace

std::string compare_case(const Case& x, std::vector<Bytes> got) {
  Bytes& c = got[x.c.memory];
  for (std::int64_t z = 0; z < x.batch; ++z) {
    const Reference reference(x, z);
    for (std::int64_t i = 0; i < x.m; ++i)
      for (std::int64_t j = 0; j < x.n; ++j) {
        const std::size_t at = x.c.at(x.c.items[static_cast<std::size_t>(z)], i, j);
        Number expected;
        long double bound = 0;
        if (!reference.accepts(c.data() + at, i, j, expected, bound)) {
          std::ostringstream what;
          what << "C(" << i << ", " << j << ") of item " << z << " is " << load(c.data() + at, x.key.c_type) << " and not "
               << expected << " within " << bound;
          return what.str();
        }
        // What is no element of C must be as it was.
        std::copy_n(x.memory[x.c.memory].data() + at, element_bytes(x.key.c_type), c.data() + at);
      }
  }
  return got == x.memory ? "" : "bytes that are no elements of C have changed";
}

}  // namespace glgemm::test
