// Deciding what shall run: Problem and Limits in, Plan out. Pure values: no OpenGL, no global state, usable without a GPU.
//
// Everything here may be called from any thread.
//
// The words for the parts of a product, from the largest to the smallest:
//
//   band    Some of the lines of a matrix that is too large for one buffer: each band lies in a buffer of its own.
//   piece   What a plan does at a time: piece_m x piece_n elements of C for piece_batch items, and piece_k steps of k.
//           Its operands are within the limits of buffer bindings and of the workspace. How a product is cut into pieces
//           decides its bits.
//           In a streamed product (streaming.hpp), a piece of C that stays on the device while all of k is added up.
//   window  The part of an operand's buffer that a piece binds. In a streamed product, the steps of k for which parts of A and B
//           are on the device at the same time: a plan of its own computes each window of k.
//   strip   In a streamed product: the part of A, B or C that one transfer brings to the device.
//   panel   A few rows of A (or columns of B), stored k by k in the workspace: what the fastest kernels read. A pack step writes
//           panels. (Where a stream or several devices share C: a group of its rows or columns.)
//   stage   What a step does: pack A, pack B, multiply, or add up parts of k. A piece runs its stages one after the other.
//   step    One dispatch: one stage of one piece, or a slice of it.
//   slice   The part of a stage's grid of workgroups that one step covers. Steps may be cut as small as a time limit asks for:
//           that changes no bit of C.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <glgemm/export.hpp>
#include <glgemm/kernel.hpp>
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
///                                that every item would write, a batch in bands, or a matrix whose bytes 64 bits cannot count
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

/// The program's complete GLSL source, as the driver gets it.
GLGEMM_EXPORT std::string source(const ProgramKey& key);
/// "tiled:tile=32 f16->f32 epilogue items": for people, and for labels in debuggers.
GLGEMM_EXPORT std::string to_string(const ProgramKey& key);

/// What a tuner found to be the fastest way of a product on a device, see tuning.hpp.
struct TunedChoice {
  Problem problem;
  Kernel kernel;
  std::int64_t split_k = 0;  ///< as PlanOptions::split_k
  double gflops = 0;
  friend bool operator==(const TunedChoice&, const TunedChoice&) = default;
};

/// A part of a buffer in bytes. Of an operand: what one step binds, counted from the operand's first element. Binding offsets
/// must be aligned: the executor rounds down and tells the shader the rest, for which a plan leaves room.
struct Window {
  std::int64_t offset_bytes = 0;
  std::int64_t size_bytes = 0;
  friend bool operator==(const Window&, const Window&) = default;
};

/// What the caller (or a tuner) decides; everything else the planner does. Equal options on equal problems and limits give equal
/// plans.
struct PlanOptions {
  /// Run this kernel or fail with its `why_not`.
  std::optional<Kernel> kernel{};
  /// The most workgroups of one dispatch: columns and rows of the grid. 0: the paper's 64 x 64 for `tiled` and `naive`, and for
  /// the others what a dispatch may have.
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
  std::vector<TunedChoice> tuning{};
  bool untuned = false;
  /// Programs that must not run: an engine fills it with those that failed their self-check.
  std::vector<ProgramKey> struck_off{};
  /// For plans that share a workspace: B's panels go there if they and all else have room then, so that they stay where they are
  /// whatever the size of A's. By default they lie behind A's.
  std::optional<Window> panels_b{};
  friend bool operator==(const PlanOptions&, const PlanOptions&) = default;
};

/// What a step of a plan does: bring A, or B, into panels; multiply; add up the parts of k.
enum class Stage { pack_a, pack_b, multiply, reduce };
constexpr std::size_t stage_count = 4;

/// The parts of a plan's workspace. Those that a plan does not need have no bytes.
struct WorkspaceLayout {
  Window panels_a;
  Window panels_b;
  /// Sums over parts of k; or over earlier windows of k where C's own type would round them.
  Window sums;
  /// Of all parts together.
  std::int64_t size_bytes = 0;
  friend bool operator==(const WorkspaceLayout&, const WorkspaceLayout&) = default;
};

/// How large a dispatch may be, in workgroups.
struct LargestDispatch {
  /// Columns and rows of a multiply step: what PlanOptions asks for, as far as the device allows.
  std::int64_t columns = 0;
  std::int64_t rows = 0;
  /// What the device allows: along x, y and z, and altogether.
  std::array<std::int64_t, 3> groups{};
  std::int64_t groups_product = 0;
  friend bool operator==(const LargestDispatch&, const LargestDispatch&) = default;
};

/// What shall run, completely decided: a kernel, and the sizes of the pieces into which loops over m, n and k cut the product.
/// Small however large the product is; `next_slice` enumerates its steps. Equal plans give equal bits on one device.
struct Plan {
  /// As it runs: the transposed one if `transposed`.
  Problem problem;
  /// C^T = op(B)^T op(A)^T is run in place of C = op(A) op(B): A and B have changed places, and rows are columns.
  bool transposed = false;
  Kernel kernel;
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
  WorkspaceLayout workspace;
  LargestDispatch largest_dispatch;

  bool packs(Role role) const noexcept { return (role == Role::a ? workspace.panels_a : workspace.panels_b).size_bytes > 0; }
  /// The program of a stage.
  ProgramKey program(Stage stage = Stage::multiply) const;
  /// The stages that it has, in their order.
  std::vector<Stage> stages() const;
  friend bool operator==(const Plan&, const Plan&) = default;
};

/// Why a plan is what it is, for people. Nothing in it changes what runs.
struct Explanation {
  struct PassedOver {
    Kernel kernel;
    std::string reason;
  };
  /// Who chose the kernel: the caller, an entry of the tuning table, or the cost model.
  enum class By { caller, tuning, model };

  By chosen_by = By::model;
  /// Seconds that the cost model expects a run to take.
  double expected_seconds = 0;
  /// The kernels that were not taken, and why not: those that the model takes for slower, the runner-up first; then those that
  /// cannot run the problem.
  std::vector<PassedOver> passed_over{};
};

/// Chooses a kernel and cuts the product so that every piece is within the limits. Where `why` is given, it gets the reasons.
/// @throws std::invalid_argument  as `validate`; or `options` has a forced kernel that is malformed (a tile of 7, say), or a
///                                negative split
/// @throws Unsupported            no kernel can run it, or the forced one cannot, the driver lacks the type, or the workspace is
///                                too small for any piece; the message says why
GLGEMM_EXPORT Plan make_plan(const Problem& problem, const Limits& limits, const PlanOptions& options = {},
                             Explanation* why = nullptr);

/// C^T = op(B)^T op(A)^T in place of C = op(A) op(B).
GLGEMM_EXPORT Problem transposed(const Problem& problem);

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
  /// Multiply-adds, or what counts as such; those of whole workgroups.
  double work = 0;
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

/// The next step of the plan, of about `work` multiply-adds (at least one workgroup, at most the largest dispatch), and moves the
/// cursor past it; none at the end. How large the steps are never changes a bit of the result.
GLGEMM_EXPORT std::optional<Step> next_slice(const Plan& plan, Cursor& cursor,
                                             double work = std::numeric_limits<double>::infinity());

/// How many dispatches the plan has when each is as large as it may be (2^63 - 1 if there are more), and the work of all steps of
/// each stage, whatever their size.
struct PlanSize {
  std::int64_t dispatches = 0;
  std::int64_t pieces = 0;
  std::array<double, stage_count> work{};
};
GLGEMM_EXPORT PlanSize size(const Plan& plan);

}  // namespace glgemm
