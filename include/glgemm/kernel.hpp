// The kernels: their families, their parameters, and what derives from them. Pure values: no OpenGL.
//
// Everything here may be called from any thread.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <glgemm/export.hpp>
#include <glgemm/limits.hpp>
#include <glgemm/problem.hpp>

namespace glgemm {

/// How a kernel gets A and B: `none` as they lie; else as panels, into which a pack step brings them before (aligned, padded with
/// zeros, of the accumulator's type, k-major), read from a storage buffer or as an image, which on CPU drivers is several times
/// as fast.
enum class Panels { none, storage, image };

/// The paper's kernel, tiled.comp: a workgroup of tile x tile invocations computes a tile x tile block of C through shared
/// memory.
struct TiledKernel {
  int tile = 32;  ///< 2, 4, 8, 16 or 32
  friend auto operator<=>(const TiledKernel&, const TiledKernel&) = default;
};

/// naive.comp: one invocation for each element of C, no shared memory. It runs on every driver.
struct NaiveKernel {
  int workgroup_x = 8;  ///< columns of C for each workgroup, a power of two up to 32
  int workgroup_y = 8;  ///< rows of C for each workgroup, a power of two up to 32
  friend auto operator<=>(const NaiveKernel&, const NaiveKernel&) = default;
};

/// small.comp: many items of a batch to a workgroup, a tile_m x tile_n block of one item's C for each invocation. For batches
/// whose items have at most 64 rows and columns.
struct SmallKernel {
  int tile_m = 4;      ///< 1 to 8
  int tile_n = 4;      ///< 1 to 8
  int workgroup = 64;  ///< invocations, a power of two up to 1024
  friend auto operator<=>(const SmallKernel&, const SmallKernel&) = default;
};

/// gemv.comp: for a C of few columns (or few rows: the transposed product is run then): reads A once, tile_m rows and tile_n
/// columns for each invocation.
struct GemvKernel {
  int tile_m = 8;     ///< 1, 2, 4 or 8
  int tile_n = 1;     ///< 1, 2, 4 or 8
  int lanes_k = 1;    ///< invocations that share a row and take turns along k, a power of two up to workgroup
  int workgroup = 8;  ///< invocations, a power of two from 4 to 256
  int panels = 0;     ///< Panels, of B alone
  friend auto operator<=>(const GemvKernel&, const GemvKernel&) = default;
};

/// register.comp: registers alone, no shared memory and no barrier, for drivers that compute on a CPU.
struct RegisterKernel {
  int tile_m = 12;    ///< rows for each invocation and workgroup, a multiple of 4 up to 32
  int tile_n = 8;     ///< columns for each invocation: 4, 8 or 16
  int step_k = 4;     ///< products taken at a time along k: 1, 2, 4 or 8
  int workgroup = 8;  ///< invocations, a power of two from 4 to 128
  int panels = 2;     ///< Panels
  friend auto operator<=>(const RegisterKernel&, const RegisterKernel&) = default;
};

/// blocked.comp: tiles in shared memory and registers, for GPUs.
struct BlockedKernel {
  int block_m = 64;       ///< rows for each workgroup, a power of two from 16 to 256
  int block_n = 64;       ///< columns for each workgroup, a power of two from 16 to 256
  int block_k = 16;       ///< of k in shared memory at a time: 8, 16 or 32
  int tile_m = 8;         ///< rows for each invocation: 4, 8 or 16
  int tile_n = 8;         ///< columns for each invocation: 4, 8 or 16
  int step_k = 4;         ///< products written out, a power of two up to 16 and block_k
  int pad = 1;            ///< texels of padding after each row of shared memory: 0 or 1
  int prefetch = 1;       ///< 1: the next block of k is loaded into registers while this one is multiplied
  int double_buffer = 0;  ///< 1: two blocks of k in shared memory and one barrier for each instead of two
  int panels = 0;         ///< Panels
  friend auto operator<=>(const BlockedKernel&, const BlockedKernel&) = default;
};

/// pack.comp: brings an operand into panels. A step before a product, not a kernel for one.
struct PackKernel {
  int workgroup = 64;  ///< invocations, a power of two up to 1024
  friend auto operator<=>(const PackKernel&, const PackKernel&) = default;
};

/// reduce.comp: adds up the sums over the parts of k. A step after a product, not a kernel for one.
struct ReduceKernel {
  int workgroup = 64;  ///< invocations, a power of two up to 1024
  friend auto operator<=>(const ReduceKernel&, const ReduceKernel&) = default;
};

/// A kernel and its parameters.
using Kernel =
    std::variant<SmallKernel, GemvKernel, RegisterKernel, BlockedKernel, TiledKernel, NaiveKernel, PackKernel, ReduceKernel>;

/// What a program is compiled for. Two programs are the same exactly when their keys are equal field by field.
struct ProgramKey {
  Kernel kernel;
  Type type = Type::f32;
  Type c_type = Type::f32;
  bool epilogue = false;  ///< a residual, a bias or an activation may apply
  bool items = false;     ///< the items of the batch have offsets and scalars of their own, in a buffer
  bool parts = false;     ///< sums over parts of k go to the workspace, for a reduction
  /// What is read as it lies, is read 16 bytes at a time, from a storage buffer; or A as an image. Of gemv that is A, of blocked
  /// A and B.
  Panels wide = Panels::none;
  friend auto operator<=>(const ProgramKey&, const ProgramKey&) = default;
};

/// The kernels for products with their default parameters; the plainest is last and can always run.
GLGEMM_EXPORT const std::vector<Kernel>& kernel_table();
/// "tiled", "naive": the name of the family, which is also its file's name in shaders/.
GLGEMM_EXPORT std::string_view name(const Kernel& kernel) noexcept;
/// The name and every parameter: "tiled:tile=32", "naive:workgroup_x=8,workgroup_y=8". `parse_kernel` reads it back.
GLGEMM_EXPORT std::string to_string(const Kernel& kernel);
/// Reads "tiled", "tiled:tile=16", ...; parameters that are not named keep their defaults.
/// @throws std::invalid_argument  an unknown kernel or parameter, or a value that is not a number; the message lists the
///                                known ones
GLGEMM_EXPORT Kernel parse_kernel(std::string_view text);
/// The tuner's space: every kernel that can run this problem under these limits and may be the fastest, each family with the
/// parameters that make sense on such a device (a CPU's vectors have 8 lanes, so its workgroups do).
GLGEMM_EXPORT std::vector<Kernel> kernel_space(const Problem& problem, const Limits& limits);
/// Why this kernel cannot run this problem under these limits, as a sentence with the numbers; empty if it can.
GLGEMM_EXPORT std::string why_not(const Problem& problem, const Kernel& kernel, const Limits& limits);
/// The size of a workgroup of the kernel in invocations: x, y, z.
GLGEMM_EXPORT std::array<int, 3> workgroup(const Kernel& kernel) noexcept;
/// Whether the kernel has A and B (gemv: B) packed.
GLGEMM_EXPORT Panels panels(const Kernel& kernel) noexcept;
/// The block of C that one workgroup computes.
struct Tile {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};
GLGEMM_EXPORT Tile tile(const Kernel& kernel) noexcept;
/// Bytes of shared memory that one workgroup needs.
GLGEMM_EXPORT std::int64_t shared_bytes(const Kernel& kernel, Type type) noexcept;
/// The program's complete GLSL source, as the driver gets it.
GLGEMM_EXPORT std::string source(const ProgramKey& key);
/// "tiled:tile=32 f16->f32 epilogue items": for people, and for labels in debuggers.
GLGEMM_EXPORT std::string to_string(const ProgramKey& key);

/// How often the elements of A and of B are read, on average for each element (all elements of one operand are alike but for
/// the edges of C).
struct Traffic {
  double a_from_buffer = 0;  ///< reads of an element of A from its storage buffer
  double b_from_buffer = 0;
  double a_from_shared = 0;  ///< reads of an element of A from a workgroup's shared memory
  double b_from_shared = 0;
  double bytes = 0;           ///< bytes read from A's and B's buffers and written to C's, altogether
  double flops_per_byte = 0;  ///< 2 m n k / bytes (8 m n k for complex types): arithmetic for each byte of buffer traffic
};
GLGEMM_EXPORT Traffic traffic(const Problem& problem, const Kernel& kernel);

}  // namespace glgemm
