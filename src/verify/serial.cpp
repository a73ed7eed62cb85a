// The serial triple loop that products are compared with. Compiled without contraction: a fused multiply-add rounds once.
#include <glgemm/verify.hpp>

#include "base/canonical.hpp"
#include "verify/lowered.hpp"

namespace glgemm {

using namespace verify;

template <class T>
Matrix<T> apply_op(Op op, const Matrix<T>& x) {
  if (op == Op::none) return x;
  Matrix<T> result = transpose(x);
  if constexpr (is_complex_v<T>)
    if (op == Op::conjugate_transpose)
      for (T& value : result.elements()) value = std::conj(value);
  return result;
}

template <class T>
Matrix<accumulator_t<T>> multiply_serial(const Matrix<T>& a_given, const Matrix<T>& b_given, std::int64_t first_row,
                                         std::int64_t last_row) {
  require_inner("multiply_serial", a_given, Op::none, b_given, Op::none);
  if (last_row == -1) last_row = a_given.rows();
  if (first_row < 0 || first_row > last_row || last_row > a_given.rows())
    throw std::invalid_argument(
        fmt::format("multiply_serial: rows {} to {} are not rows of C, which has {}", first_row, last_row, a_given.rows()));
  using A = accumulator_t<T>;
  const Given<A> a_operand = converted<A>(a_given), b_operand = converted<A>(b_given);
  const Matrix<A>&a = *a_operand, &b = *b_operand;
  Matrix<A> c(last_row - first_row, b.columns());
  for (std::int64_t i = first_row; i < last_row; ++i)
    for (std::int64_t j = 0; j < b.columns(); ++j) {
      A sum(0);
      for (std::int64_t p = 0; p < a.columns(); ++p) sum = canonical::sum(sum, canonical::product(a(i, p), b(p, j)));
      c(i - first_row, j) = sum;
    }
  return c;
}

}  // namespace glgemm

#define GLGEMM_FOR_TYPE(T)                                                                                                 \
  template GLGEMM_VERIFY_EXPORT Matrix<T> apply_op(Op, const Matrix<T>&);                                                  \
  template GLGEMM_VERIFY_EXPORT Matrix<accumulator_t<T>> multiply_serial(const Matrix<T>&, const Matrix<T>&, std::int64_t, \
                                                                         std::int64_t);
#include "verify/instantiate.hpp"
