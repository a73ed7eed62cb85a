// How exactly a product is computed, and what that promises.
//
// Everything here may be called from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <glgemm/export.hpp>
#include <glgemm/types.hpp>

namespace glgemm {

/// How a product is computed. Below, u is the unit roundoff of the accumulator (2^-24 for f32), and M = |alpha| |op(A)| |op(B)| +
/// |beta| |C0|. docs/accuracy.md has the costs.
///
/// Products of integers are exact modulo 2^32, in whatever order they are summed: for them all four are the same.
enum class Precision {
  /// The default: sums in the accumulator's type, in the order that is fastest. |C - ref| <= gamma_k M, see verify.hpp; of f16
  /// and bf16 4 k u M, where EngineOptions::vendor allows matrix cores. Equal plans give equal bits on one device.
  standard,
  /// Operands of f32 may be rounded to TF32, which has 10 bits of fraction, before they are multiplied: |C - ref| <=
  /// (4 k u + 2^-9) M where A and B are f32, and as `standard` for all other types. A vendor's library does so, where
  /// EngineOptions::vendor allows one: matrix cores are several times as fast. Shaders have no such arithmetic, and run
  /// `standard`. Report::precision says which it was.
  fast,
  /// Sums with about twice the digits of f32: |C - ref| <= 4 u M for any k up to 2^31, and u M more for each of a residual and a
  /// bias. For f32, and for the types of 16 and 8 bits, whose C is then rounded once to its type.
  ///
  /// Where doubles are fast, sums are doubles. Else a sum is two floats: each product's and each sum's rounding error is computed
  /// exactly and added up apart (T. Ogita, S. M. Rump, S. Oishi, Accurate sum and dot product, SIAM J. Sci. Comput. 26(6), 2005,
  /// algorithm Dot2), for blocks of canonical_block products, whose sums are added as pairs of floats. Errors that are subnormal
  /// may be lost: less than 2^-126 for each product.
  extended,
  /// The same bits on every driver, with every kernel, slice, piece and number of devices or ranks: canonical_product() in
  /// verify.hpp computes them on the host.
  ///
  /// k is cut into blocks of canonical_block. In each, products are rounded to the accumulator's type and added one after the
  /// other, from 0 on; so are the sums of the blocks. Then come alpha times the sum, plus beta times C, plus D, plus the bias,
  /// each operation rounded, and relu, leaky_relu, clamp or hard_swish, which multiplies by 1/6 rounded; other activations are
  /// refused. Shaders do this with `precise`: the driver may neither fuse nor reorder anything. An engine checks each program
  /// before it relies on it.
  ///
  /// Not promised are NaN's payload, and bits where an element, a product, a sum or the result is subnormal: drivers may flush it
  /// to zero.
  reproducible
};
inline constexpr std::array all_precisions{Precision::standard, Precision::fast, Precision::extended, Precision::reproducible};

/// The products of an element of C that are summed one after the other before the next sum begins, with Precision::reproducible
/// and Precision::extended.
inline constexpr std::int64_t canonical_block = 512;

/// "standard", "fast", "extended", "reproducible".
constexpr std::string_view to_string(Precision precision) noexcept {
  constexpr std::array<std::string_view, 4> names{"standard", "fast", "extended", "reproducible"};
  const auto i = static_cast<std::size_t>(precision);
  return i < names.size() ? names[i] : "unknown";  // of a later version
}
/// Reads what `to_string` writes.  @throws std::invalid_argument  the message lists the known ones
GLGEMM_EXPORT Precision parse_precision(std::string_view text);

}  // namespace glgemm
