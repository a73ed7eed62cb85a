// Products of every kind, made from a seed, run on an engine and compared with a reference. The suite and tests/full are made of
// them.
#pragma once

#include <chrono>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <glgemm/accelerators.hpp>
#include <glgemm/glgemm.hpp>
#include <glgemm/inspect.hpp>
#include <glgemm/quantize.hpp>
#include <glgemm/streaming.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace glgemm::test {

/// What a case's program is compiled for; cases are grouped by it. Each kernel gets each pair of types `each` times, with and
/// without an epilogue and items: all 4 programs, or fewer in turn, so that a few kernels together have them all.
std::vector<ProgramKey> programs(const std::vector<Kernel>& kernels, const Limits& limits, int each = 4);
/// The same for A and B of two types, and for quantised operands: each pair of types with each type of C, and each format as A
/// and as B. Those whose number in that list is `turn` modulo `share`, each on one of the kernels in turn.
std::vector<ProgramKey> programs_of_two_formats(const std::vector<Kernel>& kernels, const Limits& limits, std::size_t turn = 0,
                                                std::size_t share = 1);

/// A product of `size` x `size` x `size`, or smaller where the kernel's family takes no more.
Problem problem_within(const Kernel& kernel, std::int64_t size);
/// The kernels that can run a product of 64 x 64 x 64, or their largest, within the limits.
std::vector<Kernel> runnable(std::vector<Kernel> kernels, const Limits& limits);
/// The samples of all families, each family's a few, and what of them can run; of the few the part that this run of the tests takes.
std::vector<Kernel> quick_kernels(const Limits& limits);
std::vector<Kernel> all_kernels(const Limits& limits);

/// Whether the shared engine's device takes subnormal numbers for 0, as an input, a product or a sum of f32, or of f64 for types
/// that are computed in it. OpenGL permits it, and devices differ: it is found out by two products.
bool flushes_subnormals(Type type);

/// FNV-1a of 64 bits: the digest of what was folded before, and of these bytes.
constexpr std::uint64_t empty_digest = 0xcbf29ce484222325u;
std::uint64_t fold(std::uint64_t digest, std::string_view bytes);

struct Case;

/// How the products are run, where not in one go.
struct Way {
  const Limits* limits = nullptr;      ///< to plan within, in place of those that the seed would draw
  std::chrono::nanoseconds budget{0};  ///< where more than 0, as jobs, so much for each advance
  /// Where more than 0, streamed from the host, item by item, with so many bytes of buffers; and on these accelerators, if any.
  std::int64_t memory_limit_bytes = 0;
  bool any_memory = false;  ///< streamed as well, within 100 bytes to 1 MiB that the seed draws: on the device, in all, or both
  bool streams() const { return memory_limit_bytes > 0 || any_memory; }
  Accelerators* accelerators = nullptr;
  bool learnt = false;         ///< the engine has run other products: by their rates it may cut into more dispatches than planned
  bool indexed = false;        ///< tables say where the elements of some operands lie
  bool any_precision = false;  ///< and not the standard one alone; where it is drawn, k may be longer
  std::uint64_t* digest = nullptr;  ///< where given, the bytes that hold C after each product are folded into it
  /// Where given, it spoils what the buffers hold after the product, for tests of the comparison.
  std::function<void(const Case&, std::vector<std::vector<std::byte>>&)> spoil{};
};

/// How many of a number of cases were of a kind that only a case's shape, views or options decide.
struct Seen {
  std::int64_t transposed = 0;    ///< C^T ran
  std::int64_t split = 0;         ///< k in parts
  std::int64_t vector_reads = 0;  ///< what was read as it lies was read by 16 bytes
  std::int64_t narrow = 0;        ///< would have been read by 16 bytes if A and B had begun at multiples of them
  std::int64_t packed = 0;
  std::int64_t pieces = 0;     ///< more than one piece
  std::int64_t workspace = 0;  ///< a workspace of the caller's
  std::int64_t bands = 0;      ///< operands in bands
  std::int64_t advances = 0;   ///< of jobs
  std::int64_t streamed_pieces = 0;
  std::int64_t reproducible = 0;  ///< compared with the bits that are promised
  std::int64_t extended = 0;      ///< kept the bound of extended sums
  std::int64_t indexed = 0;       ///< a program read tables
  std::int64_t raised = 0;        ///< a memory limit was too small for any piece, and was raised to the least

  Seen& operator+=(const Seen& other) noexcept;
};
std::string text(const Seen& seen);

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
  QuantizedArrays quantised;        ///< where it is quantised: all its items, in rows of ld codes
  std::vector<float> decoded;       ///< what those codes stand for
  std::size_t scales_memory = 0, zeros_memory = 0;
  std::vector<std::int32_t> row_offsets, column_offsets;  ///< where it is indexed: the tables
  bool has_offsets_in_buffer = false;                     ///< the product finds them on the device

  ElementFormat format() const { return {view.type, view.quantization}; }
  /// How many elements after the view's first one element (i, j) of an item lies.
  std::int64_t index(std::int64_t item, std::int64_t i, std::int64_t j) const;
  /// The byte of the memory at which element (i, j) of an item begins. Codes have none.
  std::size_t at(std::int64_t item, std::int64_t i, std::int64_t j) const;
  /// The bytes of the memory that a band holds.
  std::pair<std::ptrdiff_t, std::ptrdiff_t> range(std::size_t band) const;
};

/// What is multiplied, and how: it is drawn from the seed, run, and compared with the reference, each in a file of its own.
struct Case {
  ProgramKey key;
  std::uint64_t seed = 0;
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  bool exact = false;   ///< the elements are small integers, and C must match to the bit
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

/// Runs the case that `seed` stands for with the program on the engine: a product, or a batch, of a shape, an op, a layout,
/// offsets, scalars, an epilogue, limits and a workspace drawn from the seed, on buffers whose every other byte must stay as it
/// is. Half of the cases are of small integers and must match to the bit; the others are random and must keep the error bound.
/// Reproducible products must have the promised bits.
/// @returns  what is wrong, with what it takes to run the case again; empty if nothing is
std::string run_case(Engine& engine, const ProgramKey& program, std::uint64_t seed, Seen* seen = nullptr, const Way& way = {});

}  // namespace glgemm::test
