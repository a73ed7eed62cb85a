// The functions that programs call in place of their BLAS's.
//
// Each has two ways. The short one is taken by products that are too small for OpenGL: a comparison, and a jump to the same function of
// the BLAS below, with the arguments left where they are. All else takes the slow way, which every function takes at its first call.
#include <complex>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <type_traits>

#include "blas/log.hpp"
#include "blas/multiply.hpp"
#include "blas/next.hpp"
#include "blas/product.hpp"
#include "blas/threshold.hpp"

#define GLGEMM_BLAS_EXPORT __attribute__((visibility("default")))

namespace glgemm::blas {
namespace {

/// A function of ours and that of the BLAS below. Until that is known, and where that BLAS has none, the slow way stands for it.
template <class Function>
class Entry {
 public:
  constexpr Entry(const char* name, Function* slow) noexcept : routine(name), slow_(slow), target_(slow) {}

  Function* target() const noexcept { return target_.load(std::memory_order_relaxed); }
  /// The function of the BLAS below; null if it has none.
  Function* next() noexcept {
    if (!is_known_.load()) {
      start_log();
      if (const AnyFunction found = find_next(routine.name())) target_.store(reinterpret_cast<Function*>(found));
      is_known_.store(true);
    }
    Function* found = target_.load();
    return found == slow_ ? nullptr : found;
  }

  Routine routine;

 private:
  Function* slow_;
  std::atomic<Function*> target_;
  std::atomic<bool> is_known_ = false;
};

[[gnu::always_inline]] inline bool is_small(Type type, std::int64_t m, std::int64_t n, std::int64_t k) noexcept {
  return static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) <
         slow_size[index_of(type)].load(std::memory_order_relaxed);
}

[[noreturn]] void end_without_blas(const char* name) {
  say(std::string(name) + ": OpenGL can't do this product, and there is no other BLAS that has the function; "
      "name one by GLGEMM_BLAS_NEXT=/path/to/libblas.so.3");
  std::abort();
}

/// By the Fortran routine of the BLAS below, where that lacks the function that was called.
void multiply_by_fortran(const Routine& routine, const Product& product) {
  if (!multiply_by_next(product)) end_without_blas(routine.name());
}

// ---- One product. A call gives `pass`, which calls the next BLAS's function, and `report`, which reports a wrong parameter by its
// number in Fortran.

template <class Pass, class Report>
void multiply(Routine& routine, bool has_next, bool is_known_op, const Product& product, Pass&& pass, Report&& report) {
  const auto hand_on = [&] {
    const InsideNext inside;
    if (has_next)
      pass();
    else
      multiply_by_fortran(routine, product);
  };
  if (InsideNext::here()) return hand_on();
  if (!is_known_op && has_next) {
    routine.count(Way::conjugate, flops(product));
    return hand_on();
  }
  const bool is_large = goes_to_opengl(product.type, flops(product));
  if (is_large || !has_next) {
    if (const int parameter = is_known_op ? first_wrong(product) : 1) return report(parameter);
    if (is_nothing(product)) return;
  }
  const Way way = is_large ? multiply_by_opengl(product) : Way::small;
  routine.count(way, flops(product));
  if (way != Way::opengl) hand_on();
}

// ---- Fortran

template <class T, class I>
using FortranFunction = void(const char* op_a, const char* op_b, const I* m, const I* n, const I* k, const T* alpha, const T* a,
                             const I* lda, const T* b, const I* ldb, const T* beta, T* c, const I* ldc);

template <class Name, class T, class I>
[[gnu::noinline]] void fortran_slow(const char* op_a, const char* op_b, const I* m, const I* n, const I* k, const T* alpha,
                                    const T* a, const I* lda, const T* b, const I* ldb, const T* beta, T* c, const I* ldc);

template <class Name, class T, class I>
constinit Entry<FortranFunction<T, I>> fortran_entry{Name::text, &fortran_slow<Name, T, I>};

template <class Name, class T, class I>
void fortran_slow(const char* op_a, const char* op_b, const I* m, const I* n, const I* k, const T* alpha, const T* a, const I* lda,
                  const T* b, const I* ldb, const T* beta, T* c, const I* ldc) {
  auto& entry = fortran_entry<Name, T, I>;
  auto* const next = entry.next();
  const std::optional<Op> a_is = op_of_letter(*op_a), b_is = op_of_letter(*op_b);
  const bool is_conjugate = is_conjugate_alone(*op_a) || is_conjugate_alone(*op_b);
  const auto report = [&](int parameter) { report_to_xerbla(entry.routine.name(), parameter); };
  if (!is_conjugate && !(a_is && b_is)) return report(a_is ? 2 : 1);
  const Product product{type_of<T>(), a_is.value_or(Op::none), b_is.value_or(Op::none), *m, *n, *k, alpha, a, *lda, b, *ldb, beta, c,
                        *ldc};
  const auto pass = [&] {
    // With the lengths of the two texts, which Fortran's compilers add. (The short way leaves them where they are.)
    using WithLengths = void(const char*, const char*, const I*, const I*, const I*, const T*, const T*, const I*, const T*, const I*,
                             const T*, T*, const I*, std::size_t, std::size_t);
    reinterpret_cast<WithLengths*>(reinterpret_cast<AnyFunction>(next))(op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, 1, 1);
  };
  multiply(entry.routine, next, !is_conjugate, product, pass, report);
}

}  // namespace

#define GLGEMM_BLAS_FORTRAN(name, T, I)                                                                                               \
  struct name##name {                                                                                                                 \
    static constexpr const char* text = #name;                                                                                        \
  };                                                                                                                                  \
  extern "C" GLGEMM_BLAS_EXPORT void name(const char* op_a, const char* op_b, const I* m, const I* n, const I* k, const T* alpha,     \
                                          const T* a, const I* lda, const T* b, const I* ldb, const T* beta, T* c, const I* ldc) {    \
    if (is_small(type_of<T>(), *m, *n, *k)) [[likely]]                                                                                \
      return fortran_entry<name##name, T, I>.target()(op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);                      \
    fortran_slow<name##name, T, I>(op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);                                         \
  }

GLGEMM_BLAS_FORTRAN(sgemm_, float, std::int32_t)

}  // namespace glgemm::blas
