// The BLAS below: where it is, and calls of it.
#pragma once

#include <fmt/core.h>

#include <exception>
#include <string>

#include "blas/product.hpp"

namespace glgemm::blas {

using AnyFunction = void (*)();

/// The function of that name in the BLAS below; null if that has none. That BLAS is the library that GLGEMM_BLAS_NEXT names; else
/// the library that comes after this one in the loader's order; else the system's, which a program may have loaded without giving
/// it a place in that order (Python's modules do).
AnyFunction find_next(const char* name) noexcept;

/// The file of the BLAS below; "none" without one.
std::string next_file();

/// Multiplies with the Fortran routine of the BLAS below; false if there is none that takes such sizes. The caller may leave it:
/// its xerbla_ by an exception, say.
bool multiply_by_next(const Product& product);

/// Reports a wrong parameter by the program's own xerbla_, else by the xerbla_ of the BLAS below. That function may end the
/// process.
void report_to_xerbla(const char* routine, int parameter);

/// Reports one by the program's own cblas_xerbla; false if it has none. `parameter` counts as in the column-major call with A and
/// B exchanged that a row-major call makes in reference BLAS. `value` is the number of a wrong layout or op.
bool report_to_own_cblas_xerbla(const char* routine, int parameter, bool row_major, int value);

/// While it lives, this thread is in the BLAS below, which may call our routines again. They then hand the call on.
///
/// A caller may leave the BLAS below by longjmp(), which destroys nothing: here() looks whether this object's function is still
/// on the stack.
class InsideNext {
 public:
  InsideNext() noexcept : before_(innermost_) { innermost_ = this; }
  ~InsideNext() { innermost_ = before_; }
  InsideNext(const InsideNext&) = delete;
  InsideNext& operator=(const InsideNext&) = delete;
  static bool here() noexcept {
    if (innermost_ && !is_on_stack(innermost_)) innermost_ = nullptr;
    return innermost_ != nullptr;
  }

 private:
  static bool is_on_stack(const InsideNext* object) noexcept;

  const InsideNext* before_;
  static thread_local const InsideNext* innermost_;
};

/// A line on stderr, in one piece: "glgemm_blas: ...". It is cut at 2,000 characters, since saying something needs no memory.
void say_line(fmt::string_view form, fmt::format_args values, bool once) noexcept;
template <class... Values>
void say(fmt::format_string<Values...> form, const Values&... values) noexcept {
  say_line(form, fmt::make_format_args(values...), false);
}
/// A line on stderr, but each text only once.
template <class... Values>
void say_once(fmt::format_string<Values...> form, const Values&... values) noexcept {
  say_line(form, fmt::make_format_args(values...), true);
}

/// What `function` returns. If it throws, as where memory is short, that is told, and `otherwise` is returned.
template <class Result, class Function>
Result guarded(Result otherwise, const Function& function) {
  try {
    return function();
  } catch (const std::exception& error) {  // no other: the C library unwinds a thread that is cancelled by an exception, too
    say_once("{}; the call goes to the next BLAS", error.what());
    return otherwise;
  }
}

}  // namespace glgemm::blas
