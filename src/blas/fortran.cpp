// Fortran's sgemm, dgemm, cgemm and zgemm, with 32- and with 64-bit integers.
#include <complex>
#include <cstddef>
#include <optional>

#include "blas/entry.hpp"

namespace glgemm::blas {
namespace {

template <class T, class I>
using FortranFunction = void(const char* op_a, const char* op_b, const I* m, const I* n, const I* k, const T* alpha, const T* a,
                             const I* lda, const T* b, const I* ldb, const T* beta, T* c, const I* ldc);

template <class Name, class T, class I>
[[gnu::noinline]] void fortran_slow(const char* op_a, const char* op_b, const I* m, const I* n, const I* k, const T* alpha,
                                    const T* a, const I* lda, const T* b, const I* ldb, const T* beta, T* c, const I* ldc);

template <class Name, class T, class I>
constinit Entry<FortranFunction<T, I>> fortran_entry{Name::text, &fortran_slow<Name, T, I>};

template <class Name, class T, class I>
void fortran_slow(const char* op_a, const char* op_b, const I* m, const I* n, const I* k, const T* alpha, const T* a,
                  const I* lda, const T* b, const I* ldb, const T* beta, T* c, const I* ldc) {
  auto& entry = fortran_entry<Name, T, I>;
  auto* const next = entry.next();
  const std::optional<Op> a_is = op_of_letter(*op_a), b_is = op_of_letter(*op_b);
  const bool is_conjugate = is_conjugate_alone(*op_a) || is_conjugate_alone(*op_b);
  const auto report = [&](int parameter) { report_to_xerbla(entry.routine.name(), parameter); };
  if (!is_conjugate && !(a_is && b_is)) return report(a_is ? 2 : 1);
  const Product product{
      type_of<T>(), a_is.value_or(Op::none), b_is.value_or(Op::none), *m, *n, *k, alpha, a, *lda, b, *ldb, beta, c, *ldc};
  const auto pass = [&] {
    // With the lengths of the two texts, which Fortran's compilers add. (The short way leaves them where they are.)
    using WithLengths = void(const char*, const char*, const I*, const I*, const I*, const T*, const T*, const I*, const T*,
                             const I*, const T*, T*, const I*, std::size_t, std::size_t);
    reinterpret_cast<WithLengths*>(reinterpret_cast<AnyFunction>(next))(op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc,
                                                                        1, 1);
  };
  multiply(entry.routine, next, !is_conjugate, product, pass, report);
}

}  // namespace

#define GLGEMM_BLAS_FORTRAN(name, T, I)                                                                                      \
  struct name##name {                                                                                                        \
    static constexpr const char* text = #name;                                                                               \
  };                                                                                                                         \
  extern "C" GLGEMM_BLAS_EXPORT void name(const char* op_a, const char* op_b, const I* m, const I* n, const I* k,            \
                                          const T* alpha, const T* a, const I* lda, const T* b, const I* ldb, const T* beta, \
                                          T* c, const I* ldc) {                                                              \
    if (is_small<T>(*m, *n, *k)) [[likely]]                                                                                  \
      return fortran_entry<name##name, T, I>.target()(op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);             \
    fortran_slow<name##name, T, I>(op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);                                \
  }

#define GLGEMM_BLAS_FORTRAN_NAMES(letter, T)          \
  GLGEMM_BLAS_FORTRAN(letter##gemm_, T, PlainInteger) \
  GLGEMM_BLAS_FORTRAN(letter##gemm_64_, T, std::int64_t)
GLGEMM_BLAS_FORTRAN_NAMES(s, float)
GLGEMM_BLAS_FORTRAN_NAMES(d, double)
GLGEMM_BLAS_FORTRAN_NAMES(c, std::complex<float>)
GLGEMM_BLAS_FORTRAN_NAMES(z, std::complex<double>)

}  // namespace glgemm::blas
