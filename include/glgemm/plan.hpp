// Deciding what shall run: Problem and Limits in, Plan out. Pure values: no OpenGL, no global state, usable without a GPU.
//
// Everything here may be called from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <glgemm/export.hpp>
#include <glgemm/matrix.hpp>
#include <glgemm/types.hpp>

namespace glgemm {

/// What is done to a matrix before it is multiplied: op(X) = X, its transpose, or the transpose of its complex conjugate (the
/// transpose, for real types).
enum class Op { none, transpose, conjugate_transpose };

/// Which operand a buffer window belongs to: A, B, C, or the residual D.
enum class Role { a, b, c, d };

/// How one operand lies in memory.
struct Operand {
  Layout layout = Layout::row_major;
  /// The leading dimension in elements: the distance from one row to the next (row-major) or from one column to the next
  /// (column-major). 0 stands for the least legal value, a matrix without gaps.
  std::int64_t ld = 0;
  /// For A and B; C and D have none.
  Op op = Op::none;
  /// In a batch: elements from one item's matrix to the next item's (0 repeats the operand; not for C). With
  /// Problem::items, the largest offset of any item instead.
  std::int64_t batch_stride = 0;
  /// Of a matrix that lies in several buffers: how many of its stored lines (rows if row-major, columns if column-major) each of
  /// them holds, the last one what is left. 0: it lies in one. Pieces do not straddle bands, so that their sizes along the lines
  /// divide this number: a power of two leaves the most choice. Only without a batch.
  std::int64_t band = 0;
  /// A and B: the matrix begins at a multiple of 16 bytes in its buffer. Where its lines do as well, kernels may read so much at
  /// a time.
  bool aligned = true;
  friend bool operator==(const Operand&, const Operand&) = default;
};

/// What happens to the sum after beta C, see Problem. The parameters of an activation are not part of the plan.
enum class Activation { none, relu, leaky_relu, gelu_erf, gelu_tanh, sigmoid, tanh, clamp };

/// A bias has one element for each row of C or for each column of C.
enum class Bias { none, for_each_row, for_each_column };

/// A product C = act(alpha op(A) op(B) + beta C + D + bias) as far as planning is concerned: op(A) is m x k, op(B) is k x n, C
/// and the residual D are m x n; in a batch, that for every item.
struct Problem {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  /// Of A and B.
  Type type = Type::f32;
  /// Of C, D and the bias: accumulator(type), or type itself.
  Type c_type = Type::f32;
  Operand a{}, b{}, c{}, d{};
  std::int64_t batch = 1;
  /// The items' offsets, alphas and betas are given one by one.
  bool items = false;
  bool residual = false;
  Bias bias = Bias::none;
  Activation activation = Activation::none;
  friend bool operator==(const Problem&, const Problem&) = default;
};

/// The distance in elements from element (i, j) to (i + 1, j) and to (i, j + 1) of op(A), op(B), C or D, and from item to item.
struct Strides {
  std::int64_t row = 0;
  std::int64_t column = 0;
  std::int64_t item = 0;
};
GLGEMM_EXPORT Strides strides(const Problem& problem, Role role);
/// The type of an operand's elements.
GLGEMM_EXPORT Type type(const Problem& problem, Role role) noexcept;

/// Throws what is wrong with a problem, or returns.
/// @throws std::invalid_argument  a negative size, an ld below the width, a type of C that does not go with that of A and B, a C
/// that
///                                every item would write, a batch in bands, or a matrix whose bytes 64 bits cannot count
/// @throws Unsupported            an activation of integers or complex numbers
GLGEMM_EXPORT void validate(const Problem& problem);

/// What a device and its driver can do, as data: what an Engine found, or anything that a test makes up.
struct Limits {
  /// The most bytes one storage-buffer binding may have.
  std::int64_t storage_block_bytes = 16 * 1024 * 1024;
  /// What the offset of a binding must be a multiple of, in bytes.
  std::int64_t storage_offset_alignment = 256;
  /// The most workgroups of one dispatch in x, y and z.
  std::array<std::int64_t, 3> groups{65535, 65535, 65535};
  /// The most workgroups of one dispatch altogether (llvmpipe multiplies them in an int).
  std::int64_t groups_product = std::numeric_limits<std::int32_t>::max();
  /// The most invocations of one workgroup in x, y and z, and altogether.
  std::array<std::int64_t, 3> workgroup_size{1024, 1024, 64};
  std::int64_t workgroup_invocations = 1024;
  /// Bytes of shared memory for one workgroup.
  std::int64_t shared_bytes = 32 * 1024;
  /// Iterations of loops after which an invocation's loops silently end, 0 if there is no such limit. All loops that are not
  /// unrolled draw on it together. llvmpipe before Mesa 25.0 has 65535; a few thousand are left unused here for loops that a
  /// driver may add.
  std::int64_t loop_iterations = 0;
  /// Whether shaders can compute with doubles.
  bool f64 = true;
  /// The most bytes of a buffer that shaders can read as an image, and what its offset must be a multiple of; 0 bytes: not at
  /// all.
  std::int64_t image_buffer_bytes = 0;
  /// The device computes on a CPU. The cost model then counts differently, see src/plan/cost_model.cpp.
  bool cpu = false;
  /// Workgroups that run at the same time, as far as known: a CPU's threads.
  std::int64_t concurrent_groups = 256;
  friend bool operator==(const Limits&, const Limits&) = default;
};

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
/// @throws std::invalid_argument  an unknown kernel or parameter, or a value that is not a number; the message lists the known
/// ones
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

/// What a tuner found to be the fastest way of a product on a device, see tuning.hpp.
struct TunedChoice {
  Problem problem;
  Kernel kernel;
  std::int64_t split_k = 0;  ///< as PlanOptions::split_k
  double gflops = 0;
};

/// What the caller (or a tuner) decides; everything else the planner does.
struct PlanOptions {
  /// Run this kernel or fail with its `why_not`.
  std::optional<Kernel> kernel{};
  /// The most workgroups of one dispatch: columns and rows of the grid. 0: the paper's 64 x 64 for `tiled`, `naive` and `small`,
  /// and for the others what a dispatch may have.
  std::int64_t slice_columns = 0;
  std::int64_t slice_rows = 0;
  /// The most bytes of workspace that the plan may need; pieces are made small enough for it.
  std::int64_t workspace_bytes = std::int64_t{256} << 20;
  /// The parts into which k is cut, each summed apart and all added up in a reduction, where the kernel can do that. 0: the
  /// planner's choice, 1: none.
  std::int64_t split_k = 0;
  /// Whether C^T = op(B)^T op(A)^T is run in place of C = op(A) op(B). By default as suits the kernel.
  std::optional<bool> transposed{};
  /// How often the product is going to run, as the cost model reckons with compile times.
  double runs = 1000;
  /// Plan within these limits rather than the device's: tighter ones, for a product that is to be cut into smaller pieces.
  std::optional<Limits> limits{};
  /// What a tuner found on this device. Where an entry's problem is near enough, its kernel is taken before any that the cost
  /// model prefers. An engine fills it from its own table unless `untuned`.
  std::span<const TunedChoice> tuning{};
  bool untuned = false;
  /// Programs that must not run: an engine fills it with those that failed their self-check.
  std::span<const ProgramKey> struck_off{};
};

/// What a step of a plan does: bring A, or B, into panels; multiply; add up the parts of k.
enum class Stage { pack_a, pack_b, multiply, reduce };
constexpr std::size_t stage_count = 4;

/// What shall run, completely decided: a kernel, and the sizes of the pieces into which loops over m, n and k cut the product.
/// Small however large the product is; `next_slice` enumerates what it stands for. Equal plans give equal bits on one device.
struct Plan {
  struct PassedOver {
    Kernel kernel;
    std::string reason;
  };
  /// Who chose the kernel: the caller, an entry of the tuning table, or the cost model.
  enum class By { caller, tuning, model };

  /// As it runs: the transposed one if `transposed`.
  Problem problem;
  /// C^T = op(B)^T op(A)^T is run in place of C = op(A) op(B): A and B have changed places, and rows are columns.
  bool transposed = false;
  Kernel kernel;
  By chosen_by = By::model;
  /// Seconds that the cost model expects a run to take.
  double expected_seconds = 0;
  /// The kernels that were not taken, and why not: those that cannot run the problem, and those that the model takes for slower,
  /// the runner-up first.
  std::vector<PassedOver> passed_over;
  /// The sizes of a piece: what one set of buffer windows and one window of k covers. m, n and k themselves if nothing is cut.
  std::int64_t piece_m = 0;
  std::int64_t piece_n = 0;
  std::int64_t piece_k = 0;
  std::int64_t piece_batch = 0;
  /// The items' offsets and scalars come from a buffer. Where they are given one by one and lie too far apart for a window, each
  /// is a piece of its own instead, and its offsets and scalars are the executor's.
  bool items_in_buffer = false;
  /// As in ProgramKey.
  Panels wide = Panels::none;
  /// The parts of a piece's k that are summed apart, and the length of each.
  std::int64_t parts = 1;
  std::int64_t part_k = 0;
  /// Bytes of workspace: A's panels, B's panels, and sums (over parts of k; or of earlier windows of k where C's own type would
  /// round them), one after the other.
  std::int64_t workspace_bytes = 0;
  std::int64_t panels_a_bytes = 0;
  std::int64_t panels_b_bytes = 0;
  std::int64_t sums_bytes = 0;
  /// The most columns and rows of workgroups of one dispatch.
  std::int64_t slice_columns = 0;
  std::int64_t slice_rows = 0;
  /// The most layers (items, or parts of items) of one dispatch, and the most workgroups of one altogether.
  std::int64_t slice_items = 0;
  std::int64_t slice_groups = 0;
  /// The most workgroups of one dispatch along each axis.
  std::array<std::int64_t, 3> max_groups{};

  bool packs(Role role) const noexcept { return (role == Role::a ? panels_a_bytes : panels_b_bytes) > 0; }
  /// The program of a stage.
  ProgramKey program(Stage stage = Stage::multiply) const;
  /// The stages that it has, in their order.
  std::vector<Stage> stages() const;
};

/// Chooses a kernel and cuts the product so that every piece is within the limits.
/// @throws std::invalid_argument  as `validate`; or `options` has a forced kernel that is malformed (a tile of 7, say), a
/// negative
///                                split
/// @throws Unsupported            no kernel can run it, or the forced one cannot, the driver lacks the type, or the workspace is
/// too
///                                small for any piece; the message says why
GLGEMM_EXPORT Plan make_plan(const Problem& problem, const Limits& limits, const PlanOptions& options = {});

/// C^T = op(B)^T op(A)^T in place of C = op(A) op(B).
GLGEMM_EXPORT Problem transposed(const Problem& problem);

/// A part of an operand's buffer that one step binds, counted from the operand's first element. Binding offsets must be aligned:
/// the executor rounds down and tells the shader the rest, for which a plan leaves room.
struct Window {
  std::int64_t offset_bytes = 0;
  std::int64_t size_bytes = 0;
  friend bool operator==(const Window&, const Window&) = default;
};

/// One dispatch: the paper's grid of workgroups from row y0 and column x0 on (both in elements of the piece of C), for the layers
/// from z0 on: items of the piece, or parts of k of items, part after part. A pack step's grid is over rows (x) and k (y) of its
/// operand, a reduction's over the elements of C (x).
struct Step {
  Stage stage = Stage::multiply;
  std::array<std::int64_t, 3> groups{};
  std::int64_t x0 = 0;
  std::int64_t y0 = 0;
  std::int64_t z0 = 0;
  /// The sizes of the piece that this step works on, and how many layers this step has.
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t items = 0;
  /// The items of the piece.
  std::int64_t piece_items = 0;
  /// The first item of the piece, counted in the whole batch. Windows include its offset where items are strided.
  std::int64_t first_item = 0;
  Window a, b, c, d, bias;
  /// k of the piece as panels have it, padded to whole steps of the kernel; k itself without panels.
  std::int64_t padded_k = 0;
  /// The first window of k: beta C and D come in. Later ones add to what is there.
  bool first_k = true;
  /// The last window of k: the bias and the activation apply.
  bool last_k = true;
  /// A GL_SHADER_STORAGE_BARRIER_BIT barrier comes before this step.
  bool barrier_before = false;
  friend bool operator==(const Step&, const Step&) = default;
};

/// Where an enumeration stands: the piece, and the workgroup inside its grid. A new one stands at the beginning.
struct Cursor {
  std::int64_t batch0 = 0;  ///< first item of the piece
  std::int64_t m0 = 0;      ///< first row of the piece of C
  std::int64_t n0 = 0;      ///< first column of the piece of C
  std::int64_t k0 = 0;
  int stage = 0;          ///< of the piece: a Stage
  std::int64_t item = 0;  ///< layer of the piece
  std::int64_t group_x = 0;
  std::int64_t group_y = 0;
  friend bool operator==(const Cursor&, const Cursor&) = default;
};

/// A short list of steps, at most as many as fit without an allocation.
struct Slice {
  std::array<Step, 4> storage{};
  int count = 0;
  double work = 0;  ///< multiply-adds of all steps
  std::span<const Step> steps() const noexcept { return {storage.data(), static_cast<std::size_t>(count)}; }
  bool empty() const noexcept { return count == 0; }
};

/// The next slice of the plan, of about `work` multiply-adds (at least one workgroup, at most one full dispatch), and moves the
/// cursor past it; an empty slice at the end. How the slices are cut never changes a bit of the result.
GLGEMM_EXPORT Slice next_slice(const Plan& plan, Cursor& cursor, double work = std::numeric_limits<double>::infinity());

/// How many slices and dispatches the plan has when every slice is as large as it may be (2^63 - 1 if there are more), and the
/// work of all slices of each stage, however they are cut.
struct PlanSize {
  std::int64_t slices = 0;
  std::int64_t dispatches = 0;
  std::int64_t pieces = 0;
  std::array<double, stage_count> work{};
};
GLGEMM_EXPORT PlanSize size(const Plan& plan);

}  // namespace glgemm
