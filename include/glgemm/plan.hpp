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
//   part    Where k is cut inside a piece: the parts are summed apart, side by side, and a reduction adds them up.
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
#include <vector>

#include <glgemm/export.hpp>
#include <glgemm/kernel.hpp>
#include <glgemm/limits.hpp>
#include <glgemm/plan_options.hpp>
#include <glgemm/problem.hpp>

namespace glgemm {

/// What a step of a plan does: bring A, or B, into panels; multiply; add up the parts of k. Of a convolution
/// (convolution_plan.hpp) also: copy the input with a border; convolve each channel by itself.
enum class Stage { pack_a, pack_b, multiply, reduce, copy, depthwise };
constexpr std::size_t stage_count = 6;

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
  /// The items' offsets and scalars come from a buffer. Items that are given one by one and lie too far apart for a window are
  /// pieces of their own instead, and the engine sets the offsets and scalars of each.
  bool items_in_buffer = false;
  /// As in ProgramKey.
  VectorReads vector_reads = VectorReads::none;
  bool halves_by_integers = false;
  bool few_buffers = false;
  Precision precision = Precision::standard;
  bool doubles = false;
  bool sealed = false;
  /// The parts of a piece's k that are summed apart, and the length of each.
  std::int64_t parts = 1;
  std::int64_t part_k = 0;
  WorkspaceLayout workspace;
  LargestDispatch largest_dispatch;

  bool packs(Role role) const noexcept { return (role == Role::a ? workspace.panels_a : workspace.panels_b).size_bytes > 0; }
  /// Whether sums go to the workspace, for a reduction: where k is cut into parts, for each precision but the standard, and where
  /// a program that finishes C itself would have more storage buffers than a device with few of them allows.
  GLGEMM_EXPORT bool reduces() const noexcept;
  /// The program of a stage.
  GLGEMM_EXPORT ProgramKey program(Stage stage = Stage::multiply) const;
  /// The stages that it has, in their order.
  GLGEMM_EXPORT std::vector<Stage> stages() const;
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
  /// Why the precision that was asked for is not the plan's; empty if it is.
  std::string precision{};
  /// The kernels that were not taken, and why not: those that the model takes for slower, the runner-up first; then those that
  /// cannot run the problem.
  std::vector<PassedOver> passed_over{};
};

/// Chooses a kernel and cuts the product so that every piece is within the limits. Where `why` is given, it gets the reasons.
/// @throws std::invalid_argument  as `validate`; or a limit is none that a device can have (no workgroups, say), or `options`
///                                has a forced kernel that is malformed (a tile of 7, say), or a negative split
/// @throws Unsupported            no kernel can run it, or the forced one cannot, the driver lacks the type or the precision, or
///                                the workspace is too small for any piece; the message says why
GLGEMM_EXPORT Plan make_plan(const Problem& problem, const Limits& limits, const PlanOptions& options = {},
                             Explanation* why = nullptr);

/// C^T = op(B)^T op(A)^T in place of C = op(A) op(B).
GLGEMM_EXPORT Problem transposed(const Problem& problem);

/// One dispatch: a grid of workgroups from row y0 and column x0 on (both in elements of the piece of C), for the layers from z0
/// on. A layer is an item of the piece; where k is cut into parts, a part of an item, part after part. A pack step's grid is over
/// rows (x) and k (y) of its operand, a reduction's over the elements of C (x). A copy's is over vectors of 16 bytes (x), lines
/// (y) and planes of the copy; a depthwise convolution's over channels and runs of a row (x), strips of rows (y) and images.
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
  /// Where the piece begins.
  std::int64_t m0 = 0, n0 = 0, k0 = 0;
  Window a, b, c, d, bias;
  /// k of the piece as panels have it, padded to whole steps of the kernel; k itself without panels.
  std::int64_t padded_k = 0;
  /// The first window of k: beta C and D come in. Later ones add to what is there.
  bool first_k = true;
  /// The last window of k: the bias and the activation apply.
  bool last_k = true;
  /// A GL_SHADER_STORAGE_BARRIER_BIT barrier comes before this step.
  bool barrier_before = false;
  /// Multiply-adds of whole workgroups. In a step that packs or reduces, each element counts as one.
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
