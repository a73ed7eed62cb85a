// Batched CBLAS: groups of products of one shape, by arrays of pointers or by strides, as MKL and OpenBLAS have them.
#include <complex>
#include <cstddef>
#include <utility>
#include <vector>

#include "blas/cblas.hpp"
#include "blas/entry.hpp"

namespace glgemm::blas {
namespace {

/// How a batched call begins and ends: what is left of it after the wrong ones were reported.
struct Groups {
  std::vector<Batch> groups{};
  bool has_conjugates = false;  ///< only the next BLAS has them

  double flops() const {
    double sum = 0;
    for (const Batch& group : groups) sum += blas::flops(group.shape) * static_cast<double>(group.c.size());
    return sum;
  }
};

/// By the Fortran routine of the BLAS below, product by product.
void multiply_by_fortran(const Routine& routine, const Batch& batch) {
  for (std::size_t i = 0; i < batch.c.size(); ++i) {
    Product item = batch.shape;
    item.a = batch.a[i];
    item.b = batch.b[i];
    item.c = batch.c[i];
    multiply_by_fortran(routine, item);
  }
}

/// The groups of a call whose parameters are right, of which `pass` calls the next BLAS's function.
template <class Pass>
void multiply(Routine& routine, Type type, bool has_next, const Groups& all, Pass&& pass) {
  const double flops = all.flops();
  const bool is_large = !InsideNext::here() && !all.has_conjugates && goes_to_opengl(type, flops);
  if (!is_large) {
    if (!InsideNext::here()) routine.count(all.has_conjugates ? Way::conjugate : Way::small, flops);
    const InsideNext inside;
    if (has_next) return pass();
    if (all.has_conjugates) end_without_blas(routine.name());
    for (const Batch& group : all.groups) multiply_by_fortran(routine, group);
    return;
  }
  for (const Batch& group : all.groups) {
    if (is_nothing(group.shape)) continue;
    const Way way = multiply_by_opengl(group);
    routine.count(way, blas::flops(group.shape) * static_cast<double>(group.c.size()));
    if (way != Way::opengl) multiply_by_fortran(routine, group);
  }
}

template <class T>
Batch exchanged_if(bool is_row_major, Product shape, const CElement<T>* const* a, const CElement<T>* const* b,
                   CElement<T>* const* c, std::size_t count) {
  if (is_row_major) std::swap(a, b);
  return {.shape = shape,
          .a = std::vector<const void*>(a, a + count),
          .b = std::vector<const void*>(b, b + count),
          .c = std::vector<void*>(c, c + count)};
}

template <class T, class I>
using CBatchFunction = void(int layout, const int* op_a, const int* op_b, const I* m, const I* n, const I* k, const T* alpha,
                            const CElement<T>** a, const I* lda, const CElement<T>** b, const I* ldb, const T* beta,
                            CElement<T>** c, const I* ldc, I group_count, const I* group_size);

template <class Name, class T, class I>
void c_batch(int layout, const int* op_a, const int* op_b, const I* m, const I* n, const I* k, const T* alpha,
             const CElement<T>** a, const I* lda, const CElement<T>** b, const I* ldb, const T* beta, CElement<T>** c,
             const I* ldc, I group_count, const I* group_size) {
  static constinit Entry<CBatchFunction<T, I>> entry{Name::text, nullptr};
  auto* const next = entry.next();
  const char* const name = entry.routine.name();
  const bool is_row_major = layout == row_major_number;
  const auto pass = [&] { next(layout, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, group_count, group_size); };
  const auto report = [&](int parameter, int value = 0) { refuse(name, next, parameter, is_row_major, value, pass); };
  if (group_count < 0) return report(15);
  Groups all;
  std::size_t first = 0;
  for (std::size_t g = 0; g < static_cast<std::size_t>(group_count); ++g) {
    if (const int wrong = wrong_option(layout, op_a[g], op_b[g]))
      return report(wrong, wrong == 1 ? layout : wrong == 2 ? op_a[g] : op_b[g]);
    const Product shape = product_of(type_of<T>(), is_row_major, op_a[g], op_b[g], m[g], n[g], k[g], &alpha[g], nullptr, lda[g],
                                     nullptr, ldb[g], &beta[g], nullptr, ldc[g]);
    const bool is_conjugate = !op_of_number(op_a[g]) || !op_of_number(op_b[g]);
    if (const int wrong = is_conjugate ? 0 : first_wrong(shape)) return report(wrong + 1);
    if (group_size[g] < 0) return report(16);
    const auto count = static_cast<std::size_t>(group_size[g]);
    all.has_conjugates = all.has_conjugates || is_conjugate;
    all.groups.push_back(exchanged_if<T>(is_row_major, shape, a + first, b + first, c + first, count));
    first += count;
  }
  multiply(entry.routine, type_of<T>(), next, all, pass);
}

template <class T, class I>
using CStridedFunction = void(int layout, int op_a, int op_b, I m, I n, I k, CScalar<T> alpha, const CElement<T>* a, I lda,
                              I stride_a, const CElement<T>* b, I ldb, I stride_b, CScalar<T> beta, CElement<T>* c, I ldc,
                              I stride_c, I count);

/// A parameter of Fortran's gemm as one of cblas_?gemm_batch_strided, where each matrix has one more.
constexpr int strided_parameter(int parameter, bool is_row_major) noexcept {
  constexpr int column[] = {0, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 14, 15, 16},
                row[] = {0, 3, 2, 5, 4, 6, 7, 11, 12, 8, 9, 14, 15, 16};
  return (is_row_major ? row : column)[parameter];
}

template <class Name, class T, class I>
void c_strided(int layout, int op_a, int op_b, I m, I n, I k, CScalar<T> alpha, const CElement<T>* a, I lda, I stride_a,
               const CElement<T>* b, I ldb, I stride_b, CScalar<T> beta, CElement<T>* c, I ldc, I stride_c, I count) {
  static constinit Entry<CStridedFunction<T, I>> entry{Name::text, nullptr};
  auto* const next = entry.next();
  const char* const name = entry.routine.name();
  const bool is_row_major = layout == row_major_number;
  const auto pass = [&] {
    next(layout, op_a, op_b, m, n, k, alpha, a, lda, stride_a, b, ldb, stride_b, beta, c, ldc, stride_c, count);
  };
  const auto report = [&](int parameter, int value = 0) { refuse(name, next, parameter, false, value, pass); };
  if (const int wrong = wrong_option(layout, op_a, op_b)) return report(wrong, wrong == 1 ? layout : wrong == 2 ? op_a : op_b);
  const Product shape = product_of(type_of<T>(), is_row_major, op_a, op_b, m, n, k, CTypes<T>::pointer(alpha), nullptr, lda,
                                   nullptr, ldb, CTypes<T>::pointer(beta), nullptr, ldc);
  Groups all;
  all.has_conjugates = !op_of_number(op_a) || !op_of_number(op_b);
  if (const int wrong = all.has_conjugates ? 0 : first_wrong(shape)) return report(strided_parameter(wrong, is_row_major));
  if (count < 0) return report(18);
  std::vector<const CElement<T>*> all_a, all_b;
  std::vector<CElement<T>*> all_c;
  for (std::int64_t i = 0; i < count; ++i) {
    all_a.push_back(static_cast<const T*>(a) + i * stride_a);
    all_b.push_back(static_cast<const T*>(b) + i * stride_b);
    all_c.push_back(static_cast<T*>(c) + i * stride_c);
  }
  all.groups.push_back(exchanged_if<T>(is_row_major, shape, all_a.data(), all_b.data(), all_c.data(), all_c.size()));
  multiply(entry.routine, type_of<T>(), next, all, pass);
}

}  // namespace

#define GLGEMM_BLAS_C_BATCH(name, T, I)                                                                                     \
  struct name##name {                                                                                                       \
    static constexpr const char* text = #name;                                                                              \
  };                                                                                                                        \
  extern "C" GLGEMM_BLAS_EXPORT void name(int layout, const int* op_a, const int* op_b, const I* m, const I* n, const I* k, \
                                          const T* alpha, const CElement<T>** a, const I* lda, const CElement<T>** b,       \
                                          const I* ldb, const T* beta, CElement<T>** c, const I* ldc, I group_count,        \
                                          const I* group_size) {                                                            \
    c_batch<name##name, T, I>(layout, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, group_count, group_size);   \
  }
#define GLGEMM_BLAS_C_STRIDED(name, T, I)                                                                                        \
  struct name##name {                                                                                                            \
    static constexpr const char* text = #name;                                                                                   \
  };                                                                                                                             \
  extern "C" GLGEMM_BLAS_EXPORT void name(int layout, int op_a, int op_b, I m, I n, I k, CScalar<T> alpha, const CElement<T>* a, \
                                          I lda, I stride_a, const CElement<T>* b, I ldb, I stride_b, CScalar<T> beta,           \
                                          CElement<T>* c, I ldc, I stride_c, I count) {                                          \
    c_strided<name##name, T, I>(layout, op_a, op_b, m, n, k, alpha, a, lda, stride_a, b, ldb, stride_b, beta, c, ldc, stride_c,  \
                                count);                                                                                          \
  }
#define GLGEMM_BLAS_C_BATCH_NAMES(letter, T)                                    \
  GLGEMM_BLAS_C_BATCH(cblas_##letter##gemm_batch, T, PlainInteger)              \
  GLGEMM_BLAS_C_BATCH(cblas_##letter##gemm_batch64_, T, std::int64_t)           \
  GLGEMM_BLAS_C_BATCH(cblas_##letter##gemm_batch_64, T, std::int64_t)           \
  GLGEMM_BLAS_C_STRIDED(cblas_##letter##gemm_batch_strided, T, PlainInteger)    \
  GLGEMM_BLAS_C_STRIDED(cblas_##letter##gemm_batch_strided64_, T, std::int64_t) \
  GLGEMM_BLAS_C_STRIDED(cblas_##letter##gemm_batch_strided_64, T, std::int64_t)
GLGEMM_BLAS_C_BATCH_NAMES(s, float)
GLGEMM_BLAS_C_BATCH_NAMES(d, double)
GLGEMM_BLAS_C_BATCH_NAMES(c, std::complex<float>)
GLGEMM_BLAS_C_BATCH_NAMES(z, std::complex<double>)

}  // namespace glgemm::blas
