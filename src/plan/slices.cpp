// From a plan to its steps, one after the other.
#include "plan/piece.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <vector>

#include "base/rounding.hpp"
#include "kernels/kernels.hpp"
#include "plan/grid.hpp"

namespace glgemm {
namespace {

constexpr Stage all_stages[] = {Stage::pack_a, Stage::pack_b, Stage::multiply, Stage::reduce};

/// Rows or columns and steps of k of the operand that is packed.
void pack_grid(Grid& grid, const Plan& plan, Role role, const Piece& piece) {
  const Problem& problem = plan.problem;
  const std::int64_t per_vector = 16 / element_bytes(sum_type(problem));
  const std::int64_t width = kernels::panel_width(plan.kernel, role, sum_type(problem));
  const std::int64_t rows = round_up(role == Role::a ? piece.m : piece.n, width),
                     lanes = kernels::pack_lanes(problem, role, rows / per_vector, padded_k(plan.kernel, piece.k));
  grid.columns = lanes * per_vector;
  grid.rows = kernels::pack_step * (workgroup(kernels::pack())[0] / lanes);
  grid.x = ceil_div(rows, grid.columns);
  grid.y = ceil_div(padded_k(plan.kernel, piece.k), grid.rows);
  grid.layers = kernels::packed_items(problem, role, piece.batch);
  grid.group_work = static_cast<double>(grid.columns * grid.rows);
  const LargestDispatch& largest = plan.largest_dispatch;
  grid.max_columns = std::min(largest.groups[0], largest.groups_product);
  grid.max_rows = std::min(largest.groups[1], largest.groups_product / std::min(grid.x, grid.max_columns));
}

/// Elements of C.
void reduce_grid(Grid& grid, const Plan& plan, const Piece& piece) {
  grid.columns = workgroup(kernels::reduce())[0];
  grid.x = ceil_div(piece.m * piece.n, grid.columns);
  grid.y = 1;
  grid.layers = piece.batch;
  grid.group_work = static_cast<double>(grid.columns * plan.parts);
  grid.max_columns = std::min(plan.largest_dispatch.groups[0], plan.largest_dispatch.groups_product);
}

/// Tiles of C.
void multiply_grid(Grid& grid, const Plan& plan, const Piece& piece) {
  if (is_library(plan.kernel)) {  // all of it is one step
    grid = {1, 1, 1, piece.n, piece.m, static_cast<double>(piece.m * piece.n) * static_cast<double>(piece.k * piece.batch)};
    return;
  }
  const Block block = block_of(plan.kernel);
  const std::int64_t parts = plan.parts > 1 ? ceil_div(padded_k(plan.kernel, piece.k), plan.part_k) : 1;
  grid.columns = block.columns;
  grid.rows = block.rows;
  grid.x = ceil_div(piece.n, block.columns);
  grid.y = ceil_div(piece.m, block.rows);
  grid.layers = piece.batch * parts;
  grid.group_work =
      static_cast<double>(block.rows * block.columns) * static_cast<double>(std::max<std::int64_t>(1, piece.k / parts));
  grid.max_columns = plan.largest_dispatch.columns;
  grid.max_rows = plan.largest_dispatch.rows;
}

bool packs_items(const Plan& plan, Stage stage) {
  return stage == Stage::multiply && kernels::product_family(plan.kernel).packs_items();
}

Grid grid_of(const Plan& plan, Stage stage, const Piece& piece) {
  Grid grid;
  switch (stage) {
    case Stage::pack_a:
    case Stage::pack_b:
      pack_grid(grid, plan, stage == Stage::pack_a ? Role::a : Role::b, piece);
      break;
    case Stage::multiply:
      multiply_grid(grid, plan, piece);
      break;
    case Stage::reduce:
      reduce_grid(grid, plan, piece);
      break;
    case Stage::copy:
    case Stage::depthwise:
    case Stage::layers:
      break;  // no product's
  }
  const LargestDispatch& largest = plan.largest_dispatch;
  if (packs_items(plan, stage)) {  // a block for each invocation, and all along x
    constexpr std::int64_t max_invocations = std::numeric_limits<std::int32_t>::max() / 2;
    const std::int64_t invocations = std::min(largest.groups[0], largest.groups_product) * workgroup(plan.kernel)[0];
    grid.max_columns = grid.x;
    grid.max_rows = grid.y;
    grid.max_layers = std::min(invocations, max_invocations) / kernels::blocks(plan.kernel, plan.piece_m, plan.piece_n);
  } else {
    grid.max_layers = std::min(largest.groups[2], largest.groups_product / (grid.x * grid.y));
  }
  return grid;
}

/// Whether a piece has the stage: panels are made where the piece is the first that needs them, and the parts are added up at the
/// end of k.
bool has_stage(const Plan& plan, Stage stage, bool first_row, bool first_column, bool last_k) {
  switch (stage) {
    case Stage::pack_a:
      return plan.packs(Role::a) && (first_column || plan.piece_k < plan.problem.k);
    case Stage::pack_b:
      return plan.packs(Role::b) && (first_row || plan.piece_k < plan.problem.k || plan.piece_n < plan.problem.n);
    case Stage::multiply:
      return true;
    case Stage::reduce:
      return plan.reduces() && last_k;
    case Stage::copy:
    case Stage::depthwise:
    case Stage::layers:
      break;
  }
  return false;
}

/// The piece at which a cursor stands.
struct Position {
  Piece piece;
  bool first_row, first_column, last_k;

  Position(const Plan& plan, const Cursor& cursor)
      : piece{std::min(plan.piece_m, plan.problem.m - cursor.m0), std::min(plan.piece_n, plan.problem.n - cursor.n0),
              std::min(plan.piece_k, plan.problem.k - cursor.k0), std::min(plan.piece_batch, plan.problem.batch - cursor.batch0)},
        first_row(cursor.m0 == 0),
        first_column(cursor.n0 == 0),
        last_k(cursor.k0 + piece.k >= plan.problem.k) {}

  bool has(const Plan& plan, Stage stage) const { return has_stage(plan, stage, first_row, first_column, last_k); }
};

/// The window of the piece of an operand whose first element is that at `row` and `column` of item `item`.
Window window(const Problem& problem, Role role, std::int64_t row, std::int64_t column, std::int64_t item, const Piece& piece) {
  const Strides stride = strides(problem, role);
  const ElementFormat& format = format_of(problem, role);
  return {storage_bytes(format, row * stride.row + column * stride.column + item * stride.item),
          storage_bytes(format, extent(problem, role, piece))};
}

/// The windows of the operands that the stage reads as they lie, and of what it writes outside the workspace.
void set_windows(Step& step, const Plan& plan, const Cursor& cursor, Piece piece) {
  const Problem& problem = plan.problem;
  const std::int64_t rows = piece.m, columns = piece.n;
  // The executor finds items that share no window; a step has the first item's windows.
  const std::int64_t item = problem.items ? 0 : cursor.batch0;
  if (problem.items) piece.batch = plan.items_in_buffer && problem.batch > 0 ? 2 : 1;  // with the largest offset
  const bool multiplies = step.stage == Stage::multiply;
  if (step.stage == Stage::pack_a || (multiplies && !plan.packs(Role::a)))
    step.a = window(problem, Role::a, cursor.m0, cursor.k0, item, piece);
  if (step.stage == Stage::pack_b || (multiplies && !plan.packs(Role::b)))
    step.b = window(problem, Role::b, cursor.k0, cursor.n0, item, piece);
  if (step.stage != Stage::reduce && !(multiplies && !plan.reduces())) return;
  step.c = window(problem, Role::c, cursor.m0, cursor.n0, item, piece);
  if (problem.residual) step.d = window(problem, Role::d, cursor.m0, cursor.n0, item, piece);
  const std::int64_t bias_bytes = element_bytes(problem.c.format.type);
  if (problem.bias == Bias::for_each_row) step.bias = {cursor.m0 * bias_bytes, rows * bias_bytes};
  if (problem.bias == Bias::for_each_column) step.bias = {cursor.n0 * bias_bytes, columns * bias_bytes};
}

/// Whether a stage has to wait for what comes before it. The workspace is the same memory for every piece, C is not. A's and B's
/// panels are apart.
bool needs_barrier(const Plan& plan, const Cursor& cursor, Stage stage, const Position& at) {
  if (plan.workspace.size_bytes > 0) return stage != Stage::pack_b || !at.has(plan, Stage::pack_a);
  const bool first_piece = cursor.batch0 == 0 && cursor.m0 == 0 && cursor.n0 == 0;
  return cursor.k0 > 0 || first_piece;
}

Step step_at(const Plan& plan, const Cursor& cursor, const Position& at, const Grid& grid, const Slice& slice) {
  Step step;
  step.stage = all_stages[cursor.stage];
  cover(step, grid, cursor, slice);
  if (packs_items(plan, step.stage))
    step.groups = {ceil_div(slice.layers * slice.columns * slice.rows, workgroup(plan.kernel)[0]), 1, 1};
  step.m = at.piece.m;
  step.n = at.piece.n;
  step.k = at.piece.k;
  step.padded_k = padded_k(plan.kernel, at.piece.k);
  step.piece_items = at.piece.batch;
  step.first_item = cursor.batch0;
  step.m0 = cursor.m0;
  step.n0 = cursor.n0;
  step.k0 = cursor.k0;
  set_windows(step, plan, cursor, at.piece);
  step.first_k = step.stage == Stage::reduce || cursor.k0 == 0;
  step.last_k = at.last_k;
  step.barrier_before = is_at_begin(cursor) && needs_barrier(plan, cursor, step.stage, at);
  return step;
}

/// Moves on to the next window of k of the piece, else to the next piece: along C's rows, down its columns, to the next items.
void advance_piece(Cursor& cursor, const Problem& problem, const Piece& piece) {
  cursor.stage = 0;
  const auto moves = [](std::int64_t& at, std::int64_t by, std::int64_t end) {
    at += by;
    if (at < end) return true;
    at = 0;
    return false;
  };
  if (moves(cursor.k0, piece.k, problem.k) || moves(cursor.n0, piece.n, problem.n) || moves(cursor.m0, piece.m, problem.m))
    return;
  cursor.batch0 += piece.batch;
}

}  // namespace

std::optional<Step> next_slice(const Plan& plan, Cursor& cursor, double work) {
  const Problem& problem = plan.problem;
  if (problem.m == 0 || problem.n == 0 || cursor.batch0 >= problem.batch) return {};
  const Position at(plan, cursor);
  while (!at.has(plan, all_stages[cursor.stage])) ++cursor.stage;  // every piece has the stage that multiplies
  const Stage stage = all_stages[cursor.stage];
  const Grid grid = grid_of(plan, stage, at.piece);
  const Slice slice = slice_at(grid, cursor, packs_items(plan, stage), work);
  const Step step = step_at(plan, cursor, at, grid, slice);

  if (advance(cursor, grid, slice)) return step;
  for (++cursor.stage; cursor.stage < static_cast<int>(std::size(all_stages)); ++cursor.stage)
    if (at.has(plan, all_stages[cursor.stage])) return step;
  advance_piece(cursor, problem, at.piece);
  return step;
}

PackedPart packed_part(const Plan& plan, const Step& step) {
  const Grid grid = grid_of(plan, step.stage, {step.m, step.n, step.k, step.piece_items});
  const auto part = [](std::int64_t size, std::int64_t begin, std::int64_t length) {
    return std::max<std::int64_t>(0, std::min(size - begin, length));
  };
  return {step.x0, part(step.stage == Stage::pack_a ? step.m : step.n, step.x0, step.groups[0] * grid.columns), step.y0,
          part(step.k, step.y0, step.groups[1] * grid.rows)};
}

namespace {

/// Pieces of one size along one axis, and how many of them there are.
struct Kind {
  std::int64_t size, count;
  bool first, last;
};

/// The first piece along an axis, the last one, and those between.
std::vector<Kind> kinds(std::int64_t all, std::int64_t piece) {
  const std::int64_t pieces = all == 0 ? 1 : ceil_div(all, piece);
  std::vector<Kind> found{{std::min(all, piece), 1, true, pieces == 1}};
  if (pieces > 2) found.push_back({piece, pieces - 2, false, false});
  if (pieces > 1) found.push_back({all - (pieces - 1) * piece, 1, false, true});
  return found;
}

}  // namespace

PlanSize size(const Plan& plan) {
  const Problem& problem = plan.problem;
  if (problem.m == 0 || problem.n == 0 || problem.batch == 0) return {};
  PlanSize result;
  result.pieces =
      saturating_product({ceil_div(problem.m, plan.piece_m), ceil_div(problem.n, plan.piece_n),
                          ceil_div(problem.batch, plan.piece_batch), problem.k == 0 ? 1 : ceil_div(problem.k, plan.piece_k)});
  const auto add = [&](Stage stage, const Grid& grid, std::int64_t pieces) {
    result.work[static_cast<std::size_t>(stage)] += static_cast<double>(pieces) * work_of(grid);
    result.dispatches +=
        std::min(saturating_product({pieces, dispatches_of(grid)}), std::numeric_limits<std::int64_t>::max() - result.dispatches);
  };
  for (const Kind& m : kinds(problem.m, plan.piece_m))
    for (const Kind& n : kinds(problem.n, plan.piece_n))
      for (const Kind& batch : kinds(problem.batch, plan.piece_batch))
        for (const Kind& k : kinds(problem.k, plan.piece_k))
          for (const Stage stage : all_stages)
            if (has_stage(plan, stage, m.first, n.first, k.last))
              add(stage, grid_of(plan, stage, {m.size, n.size, k.size, batch.size}),
                  saturating_product({m.count, n.count, batch.count, k.count}));
  return result;
}

}  // namespace glgemm
