// What all functions that programs call have in common.
//
// Each has two ways. The short one is taken by products that are too small for OpenGL: a comparison, and a jump to the same
// function of the BLAS below, with the arguments left where they are. All else takes the slow way, which every function takes at
// its first call.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "blas/log.hpp"
#include "blas/multiply.hpp"
#include "blas/next.hpp"
#include "blas/product.hpp"
#include "blas/threshold.hpp"

#define GLGEMM_BLAS_EXPORT __attribute__((visibility("default")))

namespace glgemm::blas {

#ifdef GLGEMM_BLAS_INT64
using PlainInteger = std::int64_t;
#else
using PlainInteger = std::int32_t;
#endif

/// A function of ours and that of the BLAS below. Until that is known, and where that BLAS has none, the slow way stands for it.
template <class Function>
class Entry {
 public:
  constexpr Entry(const char* name, Function* slow) noexcept : routine(name), slow_(slow), target_(slow) {}

  Function* target() const noexcept { return target_.load(std::memory_order_relaxed); }
  /// The function of the BLAS below; null if it has none.
  Function* next() noexcept {
    if (!is_known_.load()) {
      start_thresholds();
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

template <class T>
[[gnu::always_inline]] inline bool is_small(std::int64_t m, std::int64_t n, std::int64_t k) noexcept {
  constexpr std::size_t index = index_of(type_of<T>());
  return static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) <
         slow_size[index].load(std::memory_order_relaxed);
}

[[noreturn]] inline void end_without_blas(const char* name) {
  say(std::string(name) +
      ": OpenGL can't do this product, and there is no other BLAS that has the function; "
      "name one by GLGEMM_BLAS_NEXT=/path/to/libblas.so.3");
  std::abort();
}

/// By the Fortran routine of the BLAS below, where that lacks the function that was called.
inline void multiply_by_fortran(const Routine& routine, const Product& product) {
  if (!multiply_by_next(product)) end_without_blas(routine.name());
}

// ---- One product. A call gives `pass`, which calls the next BLAS's function, and `report`, which reports a wrong parameter by
// its number in Fortran.

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

}  // namespace glgemm::blas
