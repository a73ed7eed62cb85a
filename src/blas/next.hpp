// The BLAS below: where it is, and calls of it.
#pragma once

#include <cstdint>
#include <string>

#include "blas/product.hpp"

namespace glgemm::blas {

using AnyFunction = void (*)();

/// The function of that name in the BLAS below; null if that has none. That BLAS is the library that GLGEMM_BLAS_NEXT names; else
/// whatever comes after this library in the loader's order; else the system's, which a program may have loaded out of that order
/// (Python's modules do).
AnyFunction find_next(const char* name) noexcept;

/// The function of that name that the program itself defines, or the first in the loader's order; null if there is none.
AnyFunction find_first(const char* name) noexcept;

/// The file of the BLAS below; "none" without one.
std::string next_file();

/// Multiplies with the Fortran routine of the BLAS below; false if there is none that takes such sizes.
bool multiply_by_next(const Product& product);

/// Reports a wrong parameter as reference BLAS does: by the program's own xerbla_ if it has one. It may not return.
void report_to_xerbla(const char* routine, int parameter);

/// The same by cblas_xerbla; false if there is none, as in OpenBLAS, whose CBLAS reports by xerbla_. `parameter` counts as in the
/// column-major call with A and B exchanged that a row-major call makes in reference BLAS. `value` is that of a wrong layout or
/// op.
bool report_to_cblas_xerbla(const char* routine, int parameter, bool row_major, int value = 0);

/// While it lives, this thread is in the BLAS below, which may call our routines again. They then hand the call on.
class InsideNext {
 public:
  InsideNext() noexcept : before_(inside_) { inside_ = true; }
  ~InsideNext() { inside_ = before_; }
  InsideNext(const InsideNext&) = delete;
  InsideNext& operator=(const InsideNext&) = delete;
  static bool here() noexcept { return inside_; }

 private:
  bool before_;
  static thread_local bool inside_;
};

/// An environment variable; null if it isn't set, and in a program that has more rights than its user.
const char* variable(const char* name) noexcept;

/// A line on stderr, in one piece: "glgemm_blas: ...".
void say(const std::string& line) noexcept;
/// The same, for each text once.
void say_once(const std::string& line) noexcept;

}  // namespace glgemm::blas
