// cblas_sgemm, cblas_dgemm, cblas_cgemm and cblas_zgemm, with 32- and with 64-bit integers.
#include "blas/cblas.hpp"

#include <complex>

namespace glgemm::blas {
namespace {

template <class T, class I>
struct CCall {
  int layout, op_a, op_b;
  I m, n, k;
  CScalar<T> alpha;
  const CElement<T>* a;
  I lda;
  const CElement<T>* b;
  I ldb;
  CScalar<T> beta;
  CElement<T>* c;
  I ldc;

  Product product() const {
    return by_columns(layout, {type_of<T>(), operation_of(op_a), operation_of(op_b), m, n, k, pointer_to(alpha), a, lda, b, ldb,
                               pointer_to(beta), c, ldc});
  }
  Wrong first_wrong(const Product& product) const { return first_wrong_of_c(layout, op_a, op_b, product); }
  template <class Pass>
  void multiply(Routine& routine, bool has_next, const Pass& pass) const {
    multiply_one(routine, has_next, *this, pass);
  }
};

}  // namespace

#define GLGEMM_BLAS_C(name, T, I)                                                                                                \
  extern "C" GLGEMM_BLAS_EXPORT void name(int layout, int op_a, int op_b, I m, I n, I k, CScalar<T> alpha, const CElement<T>* a, \
                                          I lda, const CElement<T>* b, I ldb, CScalar<T> beta, CElement<T>* c, I ldc) {          \
    using Ways = Entry<#name, CCall<T, I>, decltype(name)>;                                                                      \
    if (is_small<T>(m, n, k)) [[likely]]                                                                                         \
      return Ways::target()(layout, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);                                   \
    Ways::slow(layout, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);                                                \
  }

// OpenBLAS ends its names for 64-bit integers with 64_, MKL and the reference with _64.
#define GLGEMM_BLAS_C_NAMES(letter, T)                    \
  GLGEMM_BLAS_C(cblas_##letter##gemm, T, PlainInteger)    \
  GLGEMM_BLAS_C(cblas_##letter##gemm64_, T, std::int64_t) \
  GLGEMM_BLAS_C(cblas_##letter##gemm_64, T, std::int64_t)
GLGEMM_BLAS_C_NAMES(s, float)
GLGEMM_BLAS_C_NAMES(d, double)
GLGEMM_BLAS_C_NAMES(c, std::complex<float>)
GLGEMM_BLAS_C_NAMES(z, std::complex<double>)

}  // namespace glgemm::blas
