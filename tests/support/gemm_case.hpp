// A case of gemm_cases.hpp as a value: what is multiplied, and how. It is drawn from the seed, run, and compared with the
// reference, each in a file of its own.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "support/gemm_cases.hpp"

namespace glgemm::test {

using Number = std::complex<long double>;
using Bytes = std::vector<std::byte>;

Number load(const std::byte* from, Type type);
/// Rounds to the type; integers wrap.
void store(std::byte* to, Type type, Number x);

/// An operand of a case.
struct CaseMatrix {
  BufferView view;                  ///< without the names of buffers
  std::size_t memory = 0;           ///< which of the case's memories it lies in
  std::vector<std::int64_t> items;  ///< for each item, the elements from the view's first element to the item's first
  std::int64_t stride = 0;          ///< of the items
  bool offsets = false;             ///< the product is given the items' offsets, and not the stride
  std::vector<Bytes> bands;         ///< where it lies in bands: the contents of their buffers

  /// The byte of the memory at which element (i, j) of an item begins.
  std::size_t at(std::int64_t item, std::int64_t i, std::int64_t j) const;
  /// The bytes of the memory that a band holds.
  std::pair<std::ptrdiff_t, std::ptrdiff_t> range(std::size_t band) const;
};

struct Case {
  ProgramKey key;
  std::uint64_t seed = 0;
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  bool exact = false;   ///< the elements are small integers, and C must match to the bit
  bool long_k = false;  ///< several blocks of k
  /// What each buffer holds at first: the operands, with random bytes around them.
  std::vector<Bytes> memory;
  Op op_a = Op::none, op_b = Op::none;
  Scalar alpha = 1, beta = 0;
  std::vector<Scalar> alphas, betas;  ///< of the items, where not empty
  CaseMatrix a, b, c, d, bias;
  bool has_d = false, d_is_c = false;
  Bias bias_kind = Bias::none;
  Activation activation;
  PlanOptions options;
  Precision promise = Precision::standard;  ///< what C is compared by
  bool own_workspace = false;
  std::int64_t workspace_begin = 0, workspace_end = 0;  ///< the bytes before and after it in its buffer

  Number alpha_of(std::int64_t item) const;
  Number beta_of(std::int64_t item) const;
  const CaseMatrix& residual() const { return d_is_c ? c : d; }
  bool in_bands() const { return !a.bands.empty() || !b.bands.empty() || !c.bands.empty() || !d.bands.empty(); }
};

Case draw_case(const ProgramKey& key, std::uint64_t seed, const Limits& limits, const Way& way);

/// Which element of C is wrong, or that a byte that is no element of C has changed; empty if nothing is.
/// @param got  what the buffers hold after the product
std::string compare_case(const Case& x, std::vector<Bytes> got);

}  // namespace glgemm::test
