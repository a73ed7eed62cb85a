// Whether a product is right. No OpenGL; the standard library only.
//
// Error bounds: with u = 2^-24 and gamma_k = k u / (1 - k u), a float product computed in any order of summation satisfies
// |C - A B| <= gamma_k |A| |B| componentwise (N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed.,
// section 3.5). That is a proof but lax; 2 sqrt(k) u |A| |B| is what rounding errors that behave like random ones stay within, so
// it is reported too. From k = 2^23 on, where gamma_k is lax or undefined, k u takes its place, which holds for every k (C.-P.
// Jeannerod, S. M. Rump, Improved error bounds for inner products in floating-point arithmetic, 2013).
//
// A comparison is always !(error <= bound), so that a NaN fails. What is allowed beside rounding:
//  - Denormals flushed to zero, which OpenGL permits: 2^-126 for each of 2k products and sums, and, where A or B holds denormals,
//    as often that times the other matrix's greatest element; doubled, since rounding follows. At most 2 |A||B| altogether, so
//    where |A||B| is 0, C must be 0.
//  - Overflow: where |A||B| reaches the range of float, some order of summation leaves it, and C may be infinite or NaN there.
//  - Where A or B holds infinities or NaN so that the reference is not finite, C must be the same infinity, or NaN.
// Zeros of either sign are equal. Everything here may be called from any thread.
#pragma once

#include <cstdint>
#include <string>

#include <glgemm/export.hpp>
#include <glgemm/matrix.hpp>

namespace glgemm {

/// C = A B by the serial triple loop over i, j and p, in float, each element summed in the order of p: the published baseline.
/// The rows [first_row, last_row) of C alone are computed and returned (so the result has last_row - first_row rows); the whole
/// by default (last_row = -1).
/// @throws std::invalid_argument  the inner sizes differ, or the rows are not rows of C
GLGEMM_EXPORT Matrix<float> multiply_serial(const Matrix<float>& a, const Matrix<float>& b, std::int64_t first_row = 0,
                                            std::int64_t last_row = -1);

/// What a check found.
struct Check {
  std::string method;  ///< "exact", "bound" or "probe"
  bool passed = false;
  double worst_ratio = 0;       ///< greatest |C - ref| over its bound, gamma_k |A||B| and what flushed denormals may add (0 where
                                ///< both are 0; infinite where only the bound is, or for NaN; 0 for an overflow that is allowed)
  double worst_ratio_sqrt = 0;  ///< the same with 2 sqrt(k) u in the place of gamma_k
  std::int64_t row = -1;        ///< where worst_ratio is, -1 for a matrix without elements
  std::int64_t column = -1;
  double got = 0;             ///< C there
  double expected = 0;        ///< the reference there
  double bound = 0;           ///< the bound there
  std::int64_t compared = 0;  ///< how many elements of C were compared with a reference of their own
  std::string summary;        ///< one line for a person, with the numbers
};

/// Whether every sum in A B is exact in float: all elements are integers and k max|a| max|b| < 2^24, where a maximum of 0 counts
/// as 1. Then each order of summation gives the same float, and C must equal it.
/// @throws std::invalid_argument  the inner sizes differ
GLGEMM_EXPORT bool is_exact_problem(const Matrix<float>& a, const Matrix<float>& b);

/// Compares every element of C with a reference in double, against gamma_k |A||B| (and, where the problem is exact, for equality:
/// the method is then "exact"). O(m n k).
/// @throws std::invalid_argument  the shapes disagree
GLGEMM_EXPORT Check check_full(const Matrix<float>& a, const Matrix<float>& b, const Matrix<float>& c);

/// Checks C without computing the whole product, in O(m n + m k + k n + samples k) time.
///
/// `samples` entries are compared as in check_full: the four corners, and random ones of which three quarters lie on edges of 32
/// x 32 blocks (all elements if C has no more). Equal seeds check equal entries. Beside them stands C t = A (B t) for random
/// vectors t: for exact problems in integers, where a single wrong element in a row is never missed and any wrong C with
/// probability 2^-64 at most; else in double within the bound, summed over the row (Freivalds), as an alarm for gross errors: it
/// finds a wrong row or block, not always a wrong element, and passes over rows and columns that are not finite or could
/// overflow. A row that fails is then compared element by element, so that the place is known.
/// @throws std::invalid_argument  the shapes disagree
GLGEMM_EXPORT Check check_probe(const Matrix<float>& a, const Matrix<float>& b, const Matrix<float>& c, std::uint64_t seed = 1,
                                std::int64_t samples = 4096);

/// |C - ref| over its bound, as Check::worst_ratio, for every element of C: what an image of the error shows. O(m n k).
/// @throws std::invalid_argument  the shapes disagree
GLGEMM_EXPORT Matrix<float> error_ratios(const Matrix<float>& a, const Matrix<float>& b, const Matrix<float>& c);

/// Uniform random elements in [-1, 1), the same for the same seed on every machine.
GLGEMM_EXPORT Matrix<float> random_matrix(std::int64_t rows, std::int64_t columns, std::uint64_t seed);
/// Uniform random integers in [-largest, largest], as floats, the same for the same seed on every machine.
/// @throws std::invalid_argument  largest is negative
GLGEMM_EXPORT Matrix<float> random_integer_matrix(std::int64_t rows, std::int64_t columns, int largest, std::uint64_t seed);

}  // namespace glgemm
