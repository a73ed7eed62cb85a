// Whether a product C = alpha op(A) op(B) + beta C0 is right, in any of the element types. No OpenGL; the standard library only.
//
// T is the type of the elements of A and B; C and C0 are of accumulator_t<T>, or for half and bfloat16 of T itself. Integers wrap
// and must be equal. For the rest let u be the unit roundoff of the accumulator (2^-24 for float, 2^-53 for double),
// gamma_K = K u / (1 - K u), and K = k, or 2 k for complex elements, whose real and imaginary parts are sums of 2 k real products
// each and are checked one by one. A scalar alpha other than 1, and a beta other than 0, each add one operation to K (two, if
// complex). Computed in any order of summation, with alpha applied to the whole sum or to its parts, the product then satisfies
//     |C - ref| <= gamma_K M    with M = |alpha| |op(A)| |op(B)| + |beta| |C0|
// componentwise (N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.5); for complex elements M
// adds up the magnitudes of the real products. That is a proof but lax; 2 sqrt(K) u M is what rounding errors that behave like
// random ones stay within, so it is reported too. From K u = 1/2 on, where gamma_K is lax or undefined, K u takes its place,
// which holds for every K (C.-P. Jeannerod, S. M. Rump, Improved error bounds for inner products in floating-point arithmetic,
// 2013).
// The reference is computed in double for float accumulators and in long double for double ones, and its own rounding is added to
// the bound; that counts only where long double is no wider than double.
//
// A comparison is always !(error <= bound), so that a NaN fails. What is allowed beside rounding:
//  - Subnormals flushed to zero, which OpenGL permits: the accumulator's least normal number for each of 2 K operations, and
//    where A, B or C0 hold subnormals, as often that times the greatest element that they meet; doubled, since rounding follows.
//    At most 2 M altogether, so where M is 0, C must be 0. (A subnormal half is a normal float, and not flushed.)
//  - Overflow: where M reaches the accumulator's range, some order of summation leaves it, and C may be infinite or NaN there.
//  - Where A, B or C0 hold infinities or NaN so that the reference is not finite, C must be the same infinity, or NaN. If either
//    part of a complex reference is not finite, one part of C must not be.
//  - C of half or bfloat16 is rounded once more: the roundoff of that type is added to the bound, and C may be infinite where the
//    reference, give or take its bound, rounds to infinity.
// With alpha = 0, A and B do not count (nor do NaN in them), and with beta = 0, C0. Zeros of either sign are equal. Everything
// here may be called from any thread. The templates are compiled for the types of type_of() (types.hpp).
#pragma once

#include <complex>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <glgemm/export.hpp>
#include <glgemm/gemm.hpp>
#include <glgemm/matrix.hpp>
#include <glgemm/precision.hpp>
#include <glgemm/reserved.hpp>

namespace glgemm {

struct Convolution;  // convolution.hpp

/// What the product is, beside A and B: C = alpha op(A) op(B) + beta C0.
template <class T = float, class C = accumulator_t<T>>
struct Terms {
  Op op_a = Op::none;
  Op op_b = Op::none;
  accumulator_t<T> alpha = accumulator_t<T>(1);
  accumulator_t<T> beta = accumulator_t<T>(0);
  /// C before the product, of C's shape; not looked at where beta is 0.
  const Matrix<C>* c0 = nullptr;
  /// With Precision::extended, 4 u takes the place of gamma_K. With Precision::fast, 4 K u + 2^-9 does so where A and B are
  /// floats: a vendor's library may round them to TF32, in which integers are exact up to 2^11.
  Precision precision = Precision::standard;
  /// Whether a vendor's library may have run it, see EngineOptions::vendor: of f16 and bf16, which matrix cores sum, 4 K u takes
  /// the place of gamma_K.
  bool matrix_cores = false;
  /// Whether A, or B, holds what codes stand for. A kernel may scale the sum of a group then: K + 2 takes the place of K, but
  /// with Precision::reproducible, where no kernel does.
  bool quantized = false;
  /// How many significant digits C was printed with before it was read as numbers; 0: as many as it takes. C lost up to half a
  /// unit of the last digit by that, and each bound is wider by it. Reading rounds too: once more as much, or half a unit of C's
  /// type if that is less. Not for integers.
  int digits = 0;
  Reserved reserved{};
};

/// op(X): X itself, its transpose, or the transpose of its complex conjugate.
template <class T>
GLGEMM_VERIFY_EXPORT Matrix<T> apply_op(Op op, const Matrix<T>& x);

/// C = A B by the serial triple loop over i, j and p, in the accumulator's type, each element summed in the order of p: the
/// published baseline. Integers wrap. The rows [first_row, last_row) of C alone are computed and returned (so the result has
/// last_row - first_row rows); the whole by default (last_row = -1).
/// @throws std::invalid_argument  the inner sizes differ, or the rows are not rows of C
template <class T = float>
GLGEMM_VERIFY_EXPORT Matrix<accumulator_t<T>> multiply_serial(const Matrix<T>& a, const Matrix<T>& b, std::int64_t first_row = 0,
                                                              std::int64_t last_row = -1);

/// C = alpha op(A) op(B) + beta C0 with the bits that Precision::reproducible promises: O(m n k), one element after the other.
/// Numbers that are subnormal on the way are kept; where there are none, every driver's bits are these.
/// @throws std::invalid_argument  the shapes disagree
template <class T = float, class C = accumulator_t<T>>
GLGEMM_VERIFY_EXPORT Matrix<C> canonical_product(const Matrix<T>& a, const Matrix<T>& b, const Terms<T, C>& terms = {});

/// What a check found. For a complex element, the numbers are one part's.
struct Check {
  std::string method;  ///< "exact", "bound" or "probe"
  bool passed = false;
  double worst_ratio = 0;  ///< greatest |C - ref| over its bound (0 where both are 0; infinite where only the bound is, as for
                           ///< integers and exact problems, or for NaN; 0 for an overflow that is allowed)
  double worst_ratio_sqrt = 0;  ///< worst_ratio with 2 sqrt(K) u in the place of gamma_K
  double median_ratio = 0;      ///< of the elements that were compared: half of them have no greater |C - ref| over its bound
  std::int64_t row = -1;        ///< where worst_ratio is, -1 for a matrix without elements
  std::int64_t column = -1;
  double got = 0;       ///< C there
  double expected = 0;  ///< the reference there
  double bound = 0;     ///< the bound there
  /// The greatest bound of an element that was compared: a check sees no error that is smaller. Infinite where any result is
  /// right, and 0 where all are exact.
  double greatest_bound = 0;
  std::int64_t compared = 0;  ///< how many elements of C were compared with a reference of their own
  std::string summary;        ///< one line for a person, with the numbers
  Reserved reserved{};
};

/// Whether every order of summation gives the same result, which C must then equal: always for integers; for the rest where all
/// elements and scalars are integers and |alpha| K max|a| max|b| + |beta| max|c0| < 1 / u, where a maximum of 0 counts as 1 (for
/// complex numbers the greatest part is the maximum, and a scalar's magnitude the sum of its parts' magnitudes).
/// @throws std::invalid_argument  the shapes disagree
template <class T = float, class C = accumulator_t<T>>
GLGEMM_VERIFY_EXPORT bool is_exact_problem(const Matrix<T>& a, const Matrix<T>& b, const Terms<T, C>& terms = {});

/// Compares every element of C with a reference, against the bound (and, where the problem is exact, for equality: the method is
/// then "exact"). O(m n k).
/// @throws std::invalid_argument  the shapes disagree
template <class T = float, class C = accumulator_t<T>>
GLGEMM_VERIFY_EXPORT Check check_full(const Matrix<T>& a, const Matrix<T>& b, const Matrix<C>& c, const Terms<T, C>& terms = {});

/// Checks C without computing the whole product, in O(m n + m k + k n + samples k) time.
///
/// `samples` entries are compared as in check_full: the four corners, and random ones of which three quarters lie on edges of
/// 32 x 32 blocks (all elements if C has no more). Equal seeds check equal entries. Beside them stands, for random vectors t,
/// C t = alpha A (B t) + beta C0 t (Freivalds).
///  - For exact problems with C of the accumulator's type: in integers modulo 2^64, or 2^32 for integer types, with 8 vectors. A
///    single wrong element in a row is never missed. Rows with several wrong ones are missed with probability 2^-280 at most for
///    floats, 2^-77 for doubles, and for integer types, where the row's errors are all multiples of 2^s, 2^-(7 (32 - s)).
///  - For others: in the reference's arithmetic within the bound, summed over the row, as an alarm for gross errors: it finds a
///    wrong row or block, not always a wrong element, and passes over rows and columns that are not finite, or overflow where
///    they may. Columns are taken in up to eight groups of like sizes, each alone: what rounding may do to huge ones hides no
///    error in others, unless they are huge in a few rows alone.
/// A row that fails is then compared element by element, so that the place is known.
/// @throws std::invalid_argument  the shapes disagree
template <class T = float, class C = accumulator_t<T>>
GLGEMM_VERIFY_EXPORT Check check_probe(const Matrix<T>& a, const Matrix<T>& b, const Matrix<C>& c, std::uint64_t seed = 1,
                                       std::int64_t samples = 4096, const Terms<T, C>& terms = {});

/// Checks a convolution (see convolution.hpp) as check_full checks a product: a pixel of the output is a row of C, and an output
/// channel a column; A has what the filters meet at the pixels, zeros outside the image, and B the filters. k is the number of
/// the filter's elements times the input's channels of a group, or, of a transposed convolution, of those elements that a pixel
/// meets: neighbours of a strided one meet different ones.
///
/// Buffers and offsets of the convolution are not looked at: its sizes, types and layouts say what the arrays are. They have no
/// gaps; quantised filters are what their codes stand for. With `samples` of 0 or more, so many pixels are compared: the corners
/// of the first and of the last image, and random ones. Check::row counts pixels over all images, and column channels. Pixels are
/// compared in parts: median_ratio is the greatest of the parts'. Alpha is 1, and there is no bias, no residual and no
/// activation.
/// @throws std::invalid_argument  a number of elements is not what the convolution says, there is an epilogue, or as
///                                Engine::convolve
template <class T = float, class C = accumulator_t<T>>
GLGEMM_VERIFY_EXPORT Check check_convolution(const Convolution& convolution, std::span<const T> input, std::span<const T> filters,
                                             std::span<const C> output, std::int64_t samples = -1, std::uint64_t seed = 1,
                                             Precision precision = Precision::standard);

/// A layer of a network of fully connected layers, see mlp.hpp, on the host.
struct HostLayer {
  Matrix<float> weights{0, 0};  ///< op(W): outputs x inputs; of quantised weights what the codes stand for
  std::vector<float> bias{};    ///< an element for each output; empty: none
  Activation activation{};
};

/// Checks what a network whose sums are in f32 gave for `input`, which is inputs x samples; `output` is outputs x samples, of
/// float, half or bfloat16. With `samples` of 0 or more, so many samples are compared: the first, the last, and random ones.
///
/// The reference is computed in double, layer by layer, and with it a bound. With x a layer's input and E the bound of its
/// errors, the error of a sum with its bias b is at most |W| E + gamma_K (|W| (|x| + E) + |b|), with K = k + 3 (the bias's
/// addition, and two operations of kernels that scale the sums of groups of codes). An activation multiplies that by the greatest
/// of its slopes, and adds 16 u of what Activation's accuracy is relative to. The output's own rounding, and what numbers that
/// are flushed to zero may change, come on top. Where a bound leaves f32's range, any result is right.
///
/// Such a bound grows by |W| in each layer: of dense layers of 64 inputs it is past the numbers themselves after six. So deep
/// networks are best checked with integers. Where weights, biases, input and the activations' parameters are integers,
/// activations are none, relu, leaky_relu or clamp, and no sum of magnitudes reaches 2^24, the output must be equal, and the
/// method is "exact".
/// @throws std::invalid_argument  no layers, or sizes disagree
template <class C = float>
GLGEMM_VERIFY_EXPORT Check check_mlp(std::span<const HostLayer> layers, const Matrix<float>& input, const Matrix<C>& output,
                                     std::int64_t samples = -1, std::uint64_t seed = 1);

/// |C - ref| over its bound, as Check::worst_ratio, for every element of C (of a complex one, the greater of its parts'): what an
/// image of the error shows. O(m n k).
/// @throws std::invalid_argument  the shapes disagree
template <class T = float, class C = accumulator_t<T>>
GLGEMM_VERIFY_EXPORT Matrix<float> error_ratios(const Matrix<T>& a, const Matrix<T>& b, const Matrix<C>& c,
                                                const Terms<T, C>& terms = {});

/// Uniform random elements, the same for the same seed on every machine: in [-1, 1), both parts of complex ones, rounded to T for
/// floats of 16 and 8 bits; of all values for integers.
template <class T = float>
GLGEMM_VERIFY_EXPORT Matrix<T> random_matrix(std::int64_t rows, std::int64_t columns, std::uint64_t seed);
/// Uniform random integers in [-largest, largest] (both parts of complex elements) as elements of T, the same for the same seed
/// on every machine; std::uint32_t wraps, floats of 16 and 8 bits round to integers that they hold, and other types must hold
/// all.
/// @throws std::invalid_argument  largest is negative
template <class T = float>
GLGEMM_VERIFY_EXPORT Matrix<T> random_integer_matrix(std::int64_t rows, std::int64_t columns, int largest, std::uint64_t seed);

}  // namespace glgemm
