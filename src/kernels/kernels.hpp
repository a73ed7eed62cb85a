// What can run: what the library needs to know of a kernel beyond the public functions of kernel.hpp. Each function asks the
// kernel's family.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <glgemm/plan.hpp>

#include "base/rounding.hpp"
#include "kernels/family.hpp"

namespace glgemm::kernels {

/// The macros that shape the program's source: each an `#ifndef` name of its .comp file or of gemm.glsl.
std::vector<Macro> macros(const ProgramKey& key);

/// Why these parameters are none that the kernel can have on any device; empty if they are.
std::string malformed(const Kernel& kernel);

/// The kernels between which the cost model chooses, the plainest last; the rest of each family's parameters is for the tuner.
std::vector<Kernel> candidates(const Problem& problem, const Limits& limits, Precision precision = Precision::standard);

/// About how many 32-bit registers an invocation needs at a time; 0 where they are few.
std::int64_t registers(const Kernel& kernel, Type type);
/// What an invocation can have on GPUs; the rest would go through memory.
constexpr std::int64_t max_registers = 255;

/// The storage buffers of gemm.glsl, by their numbers there.
constexpr unsigned storage_buffers = 7;
/// Whether the program declares the storage buffer with this number.
bool declares(const ProgramKey& key, unsigned buffer);
/// The binding at which the program has that buffer: its number, or with few buffers how many of lower numbers the program has.
unsigned binding_of(const ProgramKey& key, unsigned buffer);

/// Whether the program has the uniform that says where panels are.
bool has_panels_uniform(const ProgramKey& key);
/// Whether it has the one that says what the parts of k are.
bool has_parts_uniform(const ProgramKey& key);

/// The steps beside a product: what packs an operand, and what adds up the sums over the parts of k.
Kernel pack();
Kernel reduce();

/// The p of an invocation of pack.comp: its STEP.
constexpr std::int64_t pack_step = 4;
/// Each part of the workspace begins at a multiple of this, which is one of every driver's alignment of storage buffers and
/// buffer textures.
constexpr std::int64_t workspace_alignment = 256;
/// What a part of the workspace takes up.
constexpr std::int64_t workspace_aligned(std::int64_t bytes) {
  return round_up(bytes, workspace_alignment);
}
/// What the parts of a workspace may take up beside what is in them.
constexpr std::int64_t workspace_padding = 3 * workspace_alignment;
/// An operand of the caller's is read as an image from this size on, where the kernel does not say: to have OpenGL see it as one
/// takes about as long as what that saves on a smaller one.
constexpr std::int64_t min_image_bytes = std::int64_t{1} << 20;
/// How many of its invocations lie along the rows of an operand of that many texels.
std::int64_t pack_lanes(std::int64_t texels);

/// Whether its programs have another Precision than the standard.
bool takes_precision(const Kernel& kernel);
/// The bytes of a sum on its way.
constexpr std::int64_t sum_bytes(Type type, Precision precision) {
  return element_bytes(accumulator(type)) * (precision == Precision::extended ? 2 : 1);
}

/// Whether the kernel can sum parts of k apart.
bool can_split(const Kernel& kernel);

/// Whether the kernel reads what it reads as it lies 16 bytes at a time, in pieces of m x n x k: their lines begin at multiples
/// of 16 bytes, and end at one, since what a binding or an image holds in part cannot be read.
bool reads_wide(const Kernel& kernel, const Problem& problem, std::int64_t m, std::int64_t n, std::int64_t k);
/// Which operands these are.
WideReads wide_reads(const Kernel& kernel);
/// Whether shaders decode elements of the type by way of halves.
bool unpacks_halves(Type type);
/// Whether the kernel's programs are compiled for how A and B lie: ProgramKey::a_along_k and b_along_k.
bool is_for_one_layout(const Kernel& kernel);
/// Whether it reads them as images then, if a piece of A has so many bytes.
bool reads_wide_as_image(const Kernel& kernel, const Problem& problem, const Limits& limits, std::int64_t a_bytes);

/// The largest sizes that the kernel takes.
MaxSizes max_sizes(const Kernel& kernel);
/// Whether the kernel would rather run C^T = op(B)^T op(A)^T.
bool runs_transposed(const Kernel& kernel, const Problem& problem);
/// The most workgroups of a dispatch along x and y where the caller does not say; 0 for what a dispatch may have.
std::int64_t default_slice(const Kernel& kernel);
/// What the kernel takes for the problem, as the cost model counts.
Cost cost(const Problem& problem, const Kernel& kernel, const Limits& limits, const CostTerms& terms);
/// The kernels that tests run, those of each family together.
std::vector<Sample> samples();

/// The rows of a panel of A, or columns of one of B, in elements; 0 if the kernel reads the operand as it lies.
std::int64_t panel_width(const Kernel& kernel, Role role, Type type);

/// The number of blocks into which the kernel cuts a C of rows x columns.
std::int64_t blocks(const Kernel& kernel, std::int64_t rows, std::int64_t columns);

/// Whether a workgroup takes the blocks of several items, so that all items of a dispatch lie along the grid's x.
bool packs_items(const Kernel& kernel);

/// Of `items` items of a batch those whose panels differ: one where all share the operand.
std::int64_t packed_items(const Problem& problem, Role role, std::int64_t items);

/// The step along k that the kernel takes at a time; windows of k are multiples of it.
std::int64_t k_step(const Kernel& kernel);

/// The longest window of k for which an invocation's loops stay within `loop_iterations` (0: no limit), a multiple of k_step;
/// at least one k_step.
std::int64_t max_k(const Kernel& kernel, std::int64_t loop_iterations);

}  // namespace glgemm::kernels
