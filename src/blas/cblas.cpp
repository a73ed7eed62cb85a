// cblas_sgemm, cblas_dgemm, cblas_cgemm and cblas_zgemm, with 32- and with 64-bit integers.
#include "blas/cblas.hpp"

#include <complex>

#include "blas/entry.hpp"

namespace glgemm::blas {
namespace {

template <class T, class I>
using CFunction = void(int layout, int op_a, int op_b, I m, I n, I k, CScalar<T> alpha, const CElement<T>* a, I lda,
                       const CElement<T>* b, I ldb, CScalar<T> beta, CElement<T>* c, I ldc);

template <class Name, class T, class I>
[[gnu::noinline]] void c_slow(int layout, int op_a, int op_b, I m, I n, I k, CScalar<T> alpha, const CElement<T>* a, I lda,
                              const CElement<T>* b, I ldb, CScalar<T> beta, CElement<T>* c, I ldc);

template <class Name, class T, class I>
constinit Entry<CFunction<T, I>> c_entry{Name::text, &c_slow<Name, T, I>};

template <class Name, class T, class I>
void c_slow(int layout, int op_a, int op_b, I m, I n, I k, CScalar<T> alpha, const CElement<T>* a, I lda, const CElement<T>* b,
            I ldb, CScalar<T> beta, CElement<T>* c, I ldc) {
  auto& entry = c_entry<Name, T, I>;
  auto* const next = entry.next();
  const bool is_row_major = layout == row_major_number;
  const auto pass = [&] { next(layout, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc); };
  const auto report = [&](int parameter, int value) { refuse(entry.routine.name(), next, parameter, is_row_major, value, pass); };
  if (const int wrong = wrong_option(layout, op_a, op_b)) return report(wrong, wrong == 1 ? layout : wrong == 2 ? op_a : op_b);
  const Product product = product_of(type_of<T>(), is_row_major, op_a, op_b, m, n, k, CTypes<T>::pointer(alpha), a, lda, b, ldb,
                                     CTypes<T>::pointer(beta), c, ldc);
  multiply(entry.routine, next, op_of_number(op_a) && op_of_number(op_b), product, pass,
           [&](int parameter) { report(parameter + 1, 0); });
}

}  // namespace

#define GLGEMM_BLAS_C(name, T, I)                                                                                                \
  struct name##name {                                                                                                            \
    static constexpr const char* text = #name;                                                                                   \
  };                                                                                                                             \
  extern "C" GLGEMM_BLAS_EXPORT void name(int layout, int op_a, int op_b, I m, I n, I k, CScalar<T> alpha, const CElement<T>* a, \
                                          I lda, const CElement<T>* b, I ldb, CScalar<T> beta, CElement<T>* c, I ldc) {          \
    if (is_small<T>(m, n, k)) [[likely]]                                                                                         \
      return c_entry<name##name, T, I>.target()(layout, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);               \
    c_slow<name##name, T, I>(layout, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);                                  \
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
