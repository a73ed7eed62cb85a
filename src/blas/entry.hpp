// What all functions that programs call have in common.
//
// Each has two ways. The short one is taken by products that are too small for OpenGL: a comparison, and a jump to the same
// function of the BLAS below, with the arguments left where they are. All else takes the slow way, which every function takes at
// its first call.
//
// A function is written as its parameters, three times: in the exported function, in its type, and as the members of a call's
// struct, in the same order. That struct says the rest, to the multiply() of single products or to that of batches.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

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

/// A function's name as an argument of templates.
template <std::size_t size>
struct Name {
  consteval Name(const char (&given)[size]) { std::copy_n(given, size, text); }
  char text[size]{};
};

/// The two ways of the function of that name, and type, whose calls are such structs.
template <Name name, class Call, class Function>
class Entry;
template <Name name, class Call, class... Parameters>
class Entry<name, Call, void(Parameters...)> {
 public:
  using Function = void(Parameters...);

  /// The function of the BLAS below. Until that is known, and where that BLAS has none, the slow way stands for it.
  static Function* target() noexcept { return target_.load(std::memory_order_relaxed); }

  [[gnu::noinline]] static void slow(Parameters... parameters) {
    Function* const function = next();
    multiply(routine_, function != nullptr, Call{parameters...}, [&] {
      if constexpr (requires { typename Call::WithLengths; })
        reinterpret_cast<typename Call::WithLengths*>(reinterpret_cast<AnyFunction>(function))(parameters..., 1, 1);
      else
        function(parameters...);
    });
  }

 private:
  static Function* next() {
    if (!is_known_.load()) {
      start_thresholds();
      start_log();
      if (const AnyFunction found = find_next(name.text)) target_.store(reinterpret_cast<Function*>(found));
      is_known_.store(true);
    }
    Function* const found = target_.load();
    return found == &slow ? nullptr : found;
  }

  static inline constinit Routine routine_{name.text};
  static inline constinit std::atomic<Function*> target_{&slow};
  static inline constinit std::atomic<bool> is_known_{false};
};

template <class T>
[[gnu::always_inline]] inline bool is_small(std::int64_t m, std::int64_t n, std::int64_t k) noexcept {
  constexpr std::size_t index = index_of(type_of<T>());
  return static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) <
         slow_size[index].load(std::memory_order_relaxed);
}

[[noreturn]] inline void end_without_blas(const char* name) {
  say("{}: OpenGL can't do this product, and there is no other BLAS that has the function; "
      "name one by GLGEMM_BLAS_NEXT=/path/to/libblas.so.3",
      name);
  std::abort();
}

/// By the Fortran routine of the BLAS below, where that lacks the function that was called.
inline void multiply_by_fortran(const Routine& routine, const Product& product) {
  if (!multiply_by_next(product)) end_without_blas(routine.name());
}

/// A parameter that reference BLAS refuses, by its number in the function that was called.
struct Wrong {
  int parameter = 0;
  bool is_cblas = false;
  bool is_row_major = false;
  int value = 0;  ///< of a layout or an operation
};

/// Reports a wrong parameter as it would be reported without this library: a call of CBLAS goes to the next BLAS's function,
/// which finds it as well and knows to whom it is told. A program's own cblas_xerbla is called in any case.
template <class Pass>
void refuse(const Routine& routine, bool has_next, const Wrong& wrong, const Pass& pass) {
  if (wrong.is_cblas && report_to_own_cblas_xerbla(routine.name(), wrong.parameter, wrong.is_row_major, wrong.value)) return;
  if (wrong.is_cblas && has_next)
    pass();
  else
    report_to_xerbla(routine.name(), wrong.parameter);
}

/// The slow way of a single product. `call` says which one it is, and what is wrong with that. `pass` calls the next BLAS's
/// function.
template <class Call, class Pass>
void multiply(Routine& routine, bool has_next, const Call& call, const Pass& pass) {
  const Product product = call.product();
  const auto hand_on = [&] {
    const InsideNext inside;
    if (has_next)
      pass();
    else
      multiply_by_fortran(routine, product);
  };
  if (InsideNext::here()) return hand_on();
  const bool is_conjugate = has_conjugate(product);
  const bool is_large = !is_conjugate && goes_to_opengl(product.type, flops(product));
  if (is_large || !has_next) {
    // Without another BLAS there is no conjugate, as in the reference.
    if (const Wrong wrong = call.first_wrong(is_conjugate ? with_unknown_conjugates(product) : product); wrong.parameter != 0)
      return refuse(routine, has_next, wrong, pass);
    if (is_nothing(product)) return;
  }
  const Outcome way = is_large ? multiply_by_opengl(product) : is_conjugate ? Outcome::conjugate : Outcome::small;
  routine.count(way, flops(product));
  if (way != Outcome::opengl) hand_on();
}

}  // namespace glgemm::blas
