// Fortran's sgemm, dgemm, cgemm and zgemm, with 32- and with 64-bit integers.
#include <complex>
#include <cstddef>

#include "blas/entry.hpp"

namespace glgemm::blas {
namespace {

template <class T, class I>
struct FortranCall {
  const char *op_a, *op_b;
  const I *m, *n, *k;
  const T *alpha, *a;
  const I* lda;
  const T* b;
  const I* ldb;
  const T* beta;
  T* c;
  const I* ldc;

  // With the lengths of the two texts, which Fortran's compilers add. (The short way leaves them where they are.)
  using WithLengths = void(const char*, const char*, const I*, const I*, const I*, const T*, const T*, const I*, const T*,
                           const I*, const T*, T*, const I*, std::size_t, std::size_t);

  Product product() const {
    return {type_of<T>(), operation_of(*op_a), operation_of(*op_b), *m, *n, *k, alpha, a, *lda, b, *ldb, beta, c, *ldc};
  }
  static Wrong first_wrong(const Product& product) { return {blas::first_wrong(product)}; }
};

}  // namespace

#define GLGEMM_BLAS_FORTRAN(name, T, I)                                                                                      \
  extern "C" GLGEMM_BLAS_EXPORT void name(const char* op_a, const char* op_b, const I* m, const I* n, const I* k,            \
                                          const T* alpha, const T* a, const I* lda, const T* b, const I* ldb, const T* beta, \
                                          T* c, const I* ldc) {                                                              \
    using Ways = Entry<#name, FortranCall<T, I>, decltype(name)>;                                                            \
    if (is_small<T>(*m, *n, *k)) [[likely]]                                                                                  \
      return Ways::target()(op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);                                       \
    Ways::slow(op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);                                                    \
  }

#define GLGEMM_BLAS_FORTRAN_NAMES(letter, T)          \
  GLGEMM_BLAS_FORTRAN(letter##gemm_, T, PlainInteger) \
  GLGEMM_BLAS_FORTRAN(letter##gemm_64_, T, std::int64_t)
GLGEMM_BLAS_FORTRAN_NAMES(s, float)
GLGEMM_BLAS_FORTRAN_NAMES(d, double)
GLGEMM_BLAS_FORTRAN_NAMES(c, std::complex<float>)
GLGEMM_BLAS_FORTRAN_NAMES(z, std::complex<double>)

}  // namespace glgemm::blas
