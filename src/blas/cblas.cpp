// CBLAS's ?gemm, and its batches as MKL and OpenBLAS have them: groups of products of one shape, by arrays of pointers or by
// strides. With 32- and with 64-bit integers.
#include <algorithm>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <type_traits>
#include <utility>
#include <vector>

#include "blas/entry.hpp"

namespace glgemm::blas {
namespace {

/// CBLAS takes real scalars as values, complex ones and all arrays of complex numbers as untyped pointers.
template <class T>
using CScalar = std::conditional_t<std::is_floating_point_v<T>, T, const void*>;
template <class T>
using CElement = std::conditional_t<std::is_floating_point_v<T>, T, void>;

template <class T>
const void* pointer_to(const T& scalar) noexcept {
  if constexpr (std::is_pointer_v<T>)
    return scalar;
  else
    return &scalar;
}

constexpr int row_major_number = 101, column_major_number = 102;

/// A call's product as it is column-major: a row-major one has A and B exchanged.
constexpr Product by_columns(int layout, Product p) noexcept {
  if (layout != row_major_number) return p;
  std::swap(p.op_a, p.op_b);
  std::swap(p.m, p.n);
  std::swap(p.a, p.b);
  std::swap(p.lda, p.ldb);
  return p;
}

/// What reference CBLAS refuses of a product that by_columns() made. Fortran's parameters come one later here. An operation is
/// told by the number that it has in the call.
Wrong first_wrong_of_c(int layout, int op_a, int op_b, const Product& product) noexcept {
  const bool is_row_major = layout == row_major_number;
  if (!is_row_major && layout != column_major_number) return {1, true, false, layout};
  const auto is_unknown = [&](bool first) { return (first == is_row_major ? product.op_b : product.op_a) == Operation::unknown; };
  if (is_unknown(true)) return {2, true, is_row_major, op_a};
  if (is_unknown(false)) return {3, true, is_row_major, op_b};
  const int fortran = first_wrong(product);
  return {fortran == 0 ? 0 : fortran + 1, true, is_row_major, 0};
}

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
};

// ---- Batches

/// From the first element of a C to behind its last one.
constexpr std::int64_t reach_of_c(const Product& p) noexcept {
  return (p.n - 1) * p.ldc + p.m;
}
/// Whether a C and one that begins `apart` elements later have elements in common. Their columns may lie between each other.
constexpr bool is_shared(const Product& p, std::int64_t apart) noexcept {
  const std::int64_t columns = apart / p.ldc, rows = apart % p.ldc;
  return (rows < p.m && columns < p.n) || (p.ldc - rows < p.m && columns + 1 < p.n);
}

/// A, B and C by arrays of pointers, of which a row-major call's A and B are exchanged as in `shape`.
template <class T>
struct PointerBatch final : Batch {
  PointerBatch(const Product& given, std::size_t items, const CElement<T>* const* from_a, const CElement<T>* const* from_b,
               CElement<T>* const* from_c)
      : Batch(given, items), a(from_a), b(from_b), c(from_c) {}
  Product item(std::size_t i) const override {
    Product one = shape;
    one.a = a[i];
    one.b = b[i];
    one.c = c[i];
    return one;
  }
  bool shares_c() const override {
    std::vector<std::uintptr_t> places(count);
    std::transform(c, c + count, places.begin(), [](CElement<T>* place) { return reinterpret_cast<std::uintptr_t>(place); });
    std::sort(places.begin(), places.end());
    for (std::size_t i = 0; i < count; ++i)
      for (std::size_t j = i + 1; j < count; ++j) {
        const std::uintptr_t bytes = places[j] - places[i];
        const auto apart = static_cast<std::int64_t>(bytes / sizeof(T));
        if (apart >= reach_of_c(shape)) break;
        if (bytes % sizeof(T) != 0 || is_shared(shape, apart)) return true;
      }
    return false;
  }
  const CElement<T>* const* a;
  const CElement<T>* const* b;
  CElement<T>* const* c;
};

/// A, B and C one after the other, so many elements apart.
template <class T>
struct StridedBatch final : Batch {
  StridedBatch(const Product& given, std::size_t items, std::int64_t of_a, std::int64_t of_b, std::int64_t of_c)
      : Batch(given, items), stride_a(of_a), stride_b(of_b), stride_c(of_c) {}
  Product item(std::size_t i) const override {
    const auto number = static_cast<std::int64_t>(i);
    Product one = shape;
    one.a = static_cast<const T*>(one.a) + number * stride_a;
    one.b = static_cast<const T*>(one.b) + number * stride_b;
    one.c = static_cast<T*>(one.c) + number * stride_c;
    return one;
  }
  bool shares_c() const override {
    const std::int64_t step = std::abs(stride_c);
    std::int64_t apart = step;
    for (std::size_t i = 1; i < count && apart < reach_of_c(shape); ++i, apart += step)
      if (is_shared(shape, apart)) return true;
    return false;
  }
  std::int64_t stride_a, stride_b, stride_c;
};

/// By the Fortran routine of the BLAS below, product by product.
void multiply_by_fortran(const Routine& routine, const Batch& batch) {
  for (std::size_t i = 0; i < batch.count; ++i) multiply_by_fortran(routine, batch.item(i));
}

/// The slow way of a batched call, which gives each of its groups to the function that for_groups() gets.
template <class Call, class Pass>
requires std::is_enum_v<decltype(Call::type)>
void multiply(Routine& routine, bool has_next, const Call& call, const Pass& pass) {
  if (const Wrong wrong = call.first_wrong(); wrong.parameter != 0) return refuse(routine, has_next, wrong, pass);
  double sum = 0;
  bool has_conjugates = false;
  call.for_groups([&](const Batch& group) {
    sum += flops(group);
    has_conjugates = has_conjugates || has_conjugate(group.shape);
  });
  const bool is_inside = InsideNext::here();
  if (!is_inside && !has_conjugates && goes_to_opengl(Call::type, sum))
    return call.for_groups([&](const Batch& group) {
      if (is_nothing(group.shape)) return;
      const auto multiply = [&](const auto& products) {
        const Outcome way = multiply_by_opengl(products);
        routine.count(way, flops(products));
        if (way != Outcome::opengl) multiply_by_fortran(routine, products);
      };
      if (!guarded(true, [&] { return group.shares_c(); })) return multiply(group);
      for (std::size_t i = 0; i < group.count; ++i) multiply(group.item(i));  // which sees what those before it wrote
    });
  if (!is_inside) routine.count(has_conjugates ? Outcome::conjugate : Outcome::small, sum);
  const InsideNext inside;
  if (has_next) return pass();
  if (has_conjugates) end_without_blas(routine.name());
  call.for_groups([&](const Batch& group) { multiply_by_fortran(routine, group); });
}

template <class T, class I>
struct CBatchCall {
  static constexpr Type type = type_of<T>();
  int layout;
  const int *op_a, *op_b;
  const I *m, *n, *k;
  const T* alpha;
  const CElement<T>** a;
  const I* lda;
  const CElement<T>** b;
  const I* ldb;
  const T* beta;
  CElement<T>** c;
  const I* ldc;
  I group_count;
  const I* group_size;

  Product shape(I g) const {
    return by_columns(layout, {type_of<T>(), operation_of(op_a[g]), operation_of(op_b[g]), m[g], n[g], k[g], &alpha[g], nullptr,
                               lda[g], nullptr, ldb[g], &beta[g], nullptr, ldc[g]});
  }
  Wrong first_wrong() const {
    if (group_count < 0) return {15, true};
    for (I g = 0; g < group_count; ++g) {
      if (const Wrong wrong = first_wrong_of_c(layout, op_a[g], op_b[g], shape(g)); wrong.parameter != 0) return wrong;
      if (group_size[g] < 0) return {16, true};
    }
    return {};
  }
  void for_groups(const auto& function) const {
    const bool is_row_major = layout == row_major_number;
    std::size_t first = 0;
    for (I g = 0; g < group_count; ++g) {
      const auto count = static_cast<std::size_t>(group_size[g]);
      function(PointerBatch<T>(shape(g), count, (is_row_major ? b : a) + first, (is_row_major ? a : b) + first, c + first));
      first += count;
    }
  }
};

template <class T, class I>
struct CStridedCall {
  static constexpr Type type = type_of<T>();
  int layout, op_a, op_b;
  I m, n, k;
  CScalar<T> alpha;
  const CElement<T>* a;
  I lda, stride_a;
  const CElement<T>* b;
  I ldb, stride_b;
  CScalar<T> beta;
  CElement<T>* c;
  I ldc, stride_c, count;

  Product shape() const {
    return by_columns(layout, {type_of<T>(), operation_of(op_a), operation_of(op_b), m, n, k, pointer_to(alpha), a, lda, b, ldb,
                               pointer_to(beta), c, ldc});
  }
  /// Each matrix has one parameter more than in cblas_?gemm.
  Wrong first_wrong() const {
    constexpr int by_column[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 14, 15, 16},
                  by_row[] = {0, 1, 2, 3, 5, 4, 6, 7, 11, 12, 8, 9, 14, 15, 16};
    const Wrong wrong = first_wrong_of_c(layout, op_a, op_b, shape());
    if (wrong.parameter != 0) return {(wrong.is_row_major ? by_row : by_column)[wrong.parameter], true, false, wrong.value};
    return {count < 0 ? 18 : 0, true};
  }
  void for_groups(const auto& function) const {
    const bool is_row_major = layout == row_major_number;
    function(StridedBatch<T>(shape(), static_cast<std::size_t>(count), is_row_major ? stride_b : stride_a,
                             is_row_major ? stride_a : stride_b, stride_c));
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

#define GLGEMM_BLAS_C_BATCH(name, T, I)                                                                                     \
  extern "C" GLGEMM_BLAS_EXPORT void name(int layout, const int* op_a, const int* op_b, const I* m, const I* n, const I* k, \
                                          const T* alpha, const CElement<T>** a, const I* lda, const CElement<T>** b,       \
                                          const I* ldb, const T* beta, CElement<T>** c, const I* ldc, I group_count,        \
                                          const I* group_size) {                                                            \
    Entry<#name, CBatchCall<T, I>, decltype(name)>::slow(layout, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc,  \
                                                         group_count, group_size);                                          \
  }
#define GLGEMM_BLAS_C_STRIDED(name, T, I)                                                                                        \
  extern "C" GLGEMM_BLAS_EXPORT void name(int layout, int op_a, int op_b, I m, I n, I k, CScalar<T> alpha, const CElement<T>* a, \
                                          I lda, I stride_a, const CElement<T>* b, I ldb, I stride_b, CScalar<T> beta,           \
                                          CElement<T>* c, I ldc, I stride_c, I count) {                                          \
    Entry<#name, CStridedCall<T, I>, decltype(name)>::slow(layout, op_a, op_b, m, n, k, alpha, a, lda, stride_a, b, ldb,         \
                                                           stride_b, beta, c, ldc, stride_c, count);                             \
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
