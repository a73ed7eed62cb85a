// Deciding what shall run: Problem and Limits in, Plan out. Pure values: no OpenGL, no global state, usable without a GPU.
//
// Everything here may be called from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <glgemm/export.hpp>
#include <glgemm/kernel.hpp>
#include <glgemm/limits.hpp>
#include <glgemm/plan_options.hpp>
#include <glgemm/problem.hpp>

namespace glgemm {

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
/// @throws std::invalid_argument  as `validate`; or `options` has a malformed kernel (a tile of 7, say) or a negative split
/// @throws Unsupported            no kernel can run it, or the forced one cannot; the driver lacks the type; or the workspace is
///                                too small for any piece. The message says why
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
