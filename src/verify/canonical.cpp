// The product that Precision::reproducible promises, on the host. Compiled without contraction: a fused multiply-add rounds once.
#include <glgemm/verify.hpp>

#include <algorithm>

#include "base/canonical.hpp"
#include "verify/lowered.hpp"

namespace glgemm {

using canonical::product;
using canonical::sum;
using namespace verify;

namespace {

/// C's row i before alpha: along the row, so that the compiler can vectorise it; each element is added up by itself.
template <class A, class T>
void sum_row(const Matrix<T>& a, const Matrix<T>& b, std::int64_t i, std::vector<A>& total, std::vector<A>& block) {
  std::fill(total.begin(), total.end(), A(0));
  for (std::int64_t begin = 0; begin < a.columns(); begin += canonical_block) {
    std::fill(block.begin(), block.end(), A(0));
    for (std::int64_t p = begin; p < std::min(a.columns(), begin + canonical_block); ++p) {
      const A factor = static_cast<A>(a(i, p));
      for (std::size_t j = 0; j < block.size(); ++j)
        block[j] = sum(block[j], product(factor, static_cast<A>(b(p, static_cast<std::int64_t>(j)))));
    }
    for (std::size_t j = 0; j < total.size(); ++j) total[j] = sum(total[j], block[j]);
  }
}

}  // namespace

template <class T, class C>
Matrix<C> canonical_product(const Matrix<T>& a_given, const Matrix<T>& b_given, const Terms<T, C>& terms) {
  require_shapes<T, C>("canonical_product", a_given, b_given, nullptr, terms);
  using A = accumulator_t<T>;
  const Matrix<T> a = apply_op(terms.op_a, a_given), b = apply_op(terms.op_b, b_given);
  Matrix<C> c(a.rows(), b.columns());
  std::vector<A> total(index(b.columns())), block(total.size());
  for (std::int64_t i = 0; i < c.rows(); ++i) {
    sum_row(a, b, i, total, block);
    for (std::int64_t j = 0; j < c.columns(); ++j) {
      A value = terms.alpha == A(0) ? A(0) : product(terms.alpha, total[index(j)]);
      if (terms.beta != A(0)) value = sum(value, product(terms.beta, static_cast<A>((*terms.c0)(i, j))));
      c(i, j) = static_cast<C>(value);
    }
  }
  return c;
}

}  // namespace glgemm

#define GLGEMM_FOR_TYPES(T, C) \
  template GLGEMM_VERIFY_EXPORT Matrix<C> canonical_product(const Matrix<T>&, const Matrix<T>&, const Terms<T, C>&);
#include "verify/instantiate.hpp"
