// Compares every element of C with its reference.
#include <glgemm/verify.hpp>

#include "verify/judge.hpp"

namespace glgemm {

using namespace verify;

template <class T, class C>
bool is_exact_problem(const Matrix<T>& a, const Matrix<T>& b, const Terms<T, C>& terms) {
  require_shapes<T, C>("is_exact_problem", a, b, nullptr, terms);
  const Matrix<C> none;
  return Judge(lower(a, b, none, terms)).exact();
}

template <class T, class C>
Check check_full(const Matrix<T>& a, const Matrix<T>& b, const Matrix<C>& c, const Terms<T, C>& terms) {
  require_shapes("check_full", a, b, &c, terms);
  const auto p = lower(a, b, c, terms);
  const Judge judge(p);
  Findings findings(judge.exact() ? "exact" : "bound", p);
  judge_rows(p, 0, p.m(), judge, findings);
  return findings.finish();
}

template <class T, class C>
Matrix<float> error_ratios(const Matrix<T>& a, const Matrix<T>& b, const Matrix<C>& c, const Terms<T, C>& terms) {
  require_shapes("error_ratios", a, b, &c, terms);
  const auto p = lower(a, b, c, terms);
  const Judge judge(p);
  Matrix<float> ratios(c.rows(), c.columns());
  for_each_reference(p, 0, p.m(), [&](std::int64_t i, std::int64_t j, const auto& reference) {
    ratios(i, j) = static_cast<float>(judge(i, j, reference).ratio);
  });
  return ratios;
}

}  // namespace glgemm

#define GLGEMM_FOR_TYPES(T, C)                                                                                              \
  template GLGEMM_VERIFY_EXPORT bool is_exact_problem(const Matrix<T>&, const Matrix<T>&, const Terms<T, C>&);              \
  template GLGEMM_VERIFY_EXPORT Check check_full(const Matrix<T>&, const Matrix<T>&, const Matrix<C>&, const Terms<T, C>&); \
  template GLGEMM_VERIFY_EXPORT Matrix<float> error_ratios(const Matrix<T>&, const Matrix<T>&, const Matrix<C>&,            \
                                                           const Terms<T, C>&);
#include "verify/instantiate.hpp"
