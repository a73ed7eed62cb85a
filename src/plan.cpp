// What shall run: from a problem and limits to a plan, and from a plan to its slices. No OpenGL.
#include <glgemm/plan.hpp>

#include <algorithm>
#include <stdexcept>

#include <glgemm/error.hpp>

#include "kernels.hpp"

namespace glgemm {
namespace {

constexpr std::int64_t int64_max = std::numeric_limits<std::int64_t>::max();

std::int64_t ceil_div(std::int64_t value, std::int64_t step) { return value / step + (value % step != 0); }

/// Rows and columns as stored, before any op.
struct Shape {
  std::int64_t rows, columns;
};

Shape stored_shape(const Problem& problem, Role role) {
  switch (role) {
    case Role::a: return problem.a.op == Op::none ? Shape{problem.m, problem.k} : Shape{problem.k, problem.m};
    case Role::b: return problem.b.op == Op::none ? Shape{problem.k, problem.n} : Shape{problem.n, problem.k};
    case Role::c: break;
  }
  return {problem.m, problem.n};
}

const Operand& operand(const Problem& problem, Role role) {
  return role == Role::a ? problem.a : role == Role::b ? problem.b : problem.c;
}

std::int64_t width(Layout layout, Shape shape) { return layout == Layout::row_major ? shape.columns : shape.rows; }

const char* letter(Role role) { return role == Role::a ? "A" : role == Role::b ? "B" : "C"; }

/// The sizes of a piece, and which of them an operand has as its rows and columns (after op).
struct Piece {
  std::int64_t m, n, k;
  std::int64_t& rows(Role role) { return role == Role::b ? k : m; }
  std::int64_t& columns(Role role) { return role == Role::a ? k : n; }
};

/// Elements from the first to the last of a piece of an operand, both included; 0 for one without elements.
std::int64_t extent(Piece piece, Role role, Strides stride) {
  const std::int64_t rows = piece.rows(role), columns = piece.columns(role);
  return rows == 0 || columns == 0 ? 0 : (rows - 1) * stride.row + (columns - 1) * stride.column + 1;
}

/// The largest count of steps of `stride` that fits into `room` elements beside `rest`, at least 1.
std::int64_t fitting(std::int64_t room, std::int64_t rest, std::int64_t stride) {
  return rest >= room ? 1 : (room - rest - 1) / stride + 1;
}

/// Cuts the piece until each operand's window has at most `most` elements. Of the two sizes of an operand that is too large, the
/// one along which its elements lie further apart is cut first: cutting the other saves nothing.
void cut_to_windows(Piece& piece, const Problem& problem, std::int64_t most) {
  bool fits = false;
  while (!fits) {
    fits = true;
    for (const Role role : {Role::a, Role::b, Role::c}) {
      const Strides stride = strides(problem, role);
      if (extent(piece, role, stride) <= most) continue;
      fits = false;
      const bool cut_rows = piece.rows(role) > 1 && (stride.row >= stride.column || piece.columns(role) == 1);
      if (cut_rows)
        piece.rows(role) = fitting(most, (piece.columns(role) - 1) * stride.column, stride.row);
      else
        piece.columns(role) = fitting(most, (piece.rows(role) - 1) * stride.row, stride.column);
    }
  }
}

std::int64_t round_down_above(std::int64_t value, std::int64_t step) { return value > step ? value / step * step : value; }

Window window(const Problem& problem, Role role, std::int64_t row, std::int64_t column, Piece piece) {
  const Strides stride = strides(problem, role);
  const std::int64_t bytes = element_bytes(problem.type);
  return {(row * stride.row + column * stride.column) * bytes, extent(piece, role, stride) * bytes};
}

}  // namespace

std::int64_t element_bytes(Type) noexcept { return 4; }

std::string_view to_string(Type) noexcept { return "f32"; }

Strides strides(const Problem& problem, Role role) {
  const Operand& x = operand(problem, role);
  const std::int64_t ld = x.ld != 0 ? x.ld : std::max<std::int64_t>(1, width(x.layout, stored_shape(problem, role)));
  // Row-major and transposed is column-major, and the other way round.
  const bool rows_are_contiguous = (x.layout == Layout::row_major) == (role == Role::c || x.op == Op::none);
  return rows_are_contiguous ? Strides{ld, 1} : Strides{1, ld};
}

void validate(const Problem& problem) {
  if (problem.m < 0 || problem.n < 0 || problem.k < 0)
    throw std::invalid_argument("gemm: m = " + std::to_string(problem.m) + ", n = " + std::to_string(problem.n) +
                                ", k = " + std::to_string(problem.k) + ": a size is negative");
  for (const Role role : {Role::a, Role::b, Role::c}) {
    const Operand& x = operand(problem, role);
    const Shape shape = stored_shape(problem, role);
    const std::int64_t least = width(x.layout, shape);
    if (x.ld != 0 && x.ld < std::max<std::int64_t>(1, least))
      throw std::invalid_argument(std::string("gemm: ld of ") + letter(role) + " is " + std::to_string(x.ld) + ", less than its width of " +
                                  std::to_string(least));
    const std::int64_t ld = std::max({x.ld, least, std::int64_t{1}});
    const std::int64_t lines = x.layout == Layout::row_major ? shape.rows : shape.columns;
    if (lines > 0 && ld > int64_max / element_bytes(problem.type) / lines)
      throw std::invalid_argument(std::string("gemm: ") + letter(role) + " of " + std::to_string(shape.rows) + "x" +
                                  std::to_string(shape.columns) + " with ld " + std::to_string(ld) + " has more bytes than 64 bits count");
  }
}

Plan make_plan(const Problem& problem, const Limits& limits, const PlanOptions& options) {
  validate(problem);
  if (options.slice_columns < 1 || options.slice_rows < 1)
    throw std::invalid_argument("make_plan: a slice of " + std::to_string(options.slice_columns) + "x" +
                                std::to_string(options.slice_rows) + " workgroups");
  Plan plan;
  plan.problem = problem;
  bool found = false;
  if (options.kernel) {
    if (const std::string reason = kernels::malformed(*options.kernel); !reason.empty()) throw std::invalid_argument(reason);
    if (const std::string reason = why_not(problem, *options.kernel, limits); !reason.empty()) throw Unsupported(reason);
    plan.kernel = *options.kernel;
    found = true;
  }
  for (std::size_t i = 0; !found && i < kernel_table().size(); ++i) {
    const Kernel& kernel = kernel_table()[i];
    if (std::string reason = why_not(problem, kernel, limits); reason.empty()) {
      plan.kernel = kernel;
      found = true;
    } else {
      plan.passed_over.push_back({kernel, std::move(reason)});
    }
  }
  if (!found) throw Unsupported("gemm: no kernel can run this: " + plan.passed_over.back().reason);

  const std::int64_t bytes = element_bytes(problem.type);
  // Windows start at aligned offsets, so up to one alignment less one element comes on top; and shaders index with an int.
  const std::int64_t block = std::min<std::int64_t>(limits.storage_block_bytes, std::numeric_limits<std::int32_t>::max());
  const std::int64_t slack = std::max<std::int64_t>(limits.storage_offset_alignment, bytes) - bytes;
  const std::int64_t most = std::max<std::int64_t>(0, block - slack) / bytes;
  if (most < 1)
    throw Unsupported("gemm: storage blocks of " + std::to_string(limits.storage_block_bytes) + " bytes at offsets aligned to " +
                      std::to_string(limits.storage_offset_alignment) + " have no room for one element");
  const Tile block_of_c = tile(plan.kernel);
  constexpr std::int64_t most_per_axis = std::numeric_limits<std::int32_t>::max() / 2;  // x0 + a tile stays an int in the shader
  Piece piece{std::min(problem.m, most_per_axis), std::min(problem.n, most_per_axis),
              std::min(problem.k, kernels::longest_k(plan.kernel, limits.loop_iterations))};
  cut_to_windows(piece, problem, most);
  const auto whole_tiles = [](std::int64_t size, std::int64_t all, std::int64_t step) {
    return size < all ? round_down_above(size, step) : size;
  };
  plan.piece_m = whole_tiles(piece.m, problem.m, block_of_c.rows);
  plan.piece_n = whole_tiles(piece.n, problem.n, block_of_c.columns);
  plan.piece_k = whole_tiles(piece.k, problem.k, kernels::k_step(plan.kernel));
  plan.slice_columns = std::min({options.slice_columns, limits.groups[0], limits.groups_product});
  plan.slice_rows = std::min({options.slice_rows, limits.groups[1], limits.groups_product / plan.slice_columns});
  return plan;
}

Slice next_slice(const Plan& plan, Cursor& cursor, double work) {
  const Problem& problem = plan.problem;
  Slice slice;
  if (problem.m == 0 || problem.n == 0 || cursor.m0 >= problem.m) return slice;

  const Piece piece{std::min(plan.piece_m, problem.m - cursor.m0), std::min(plan.piece_n, problem.n - cursor.n0),
                    std::min(plan.piece_k, problem.k - cursor.k0)};
  const Tile block = tile(plan.kernel);
  const std::int64_t grid_x = ceil_div(piece.n, block.columns), grid_y = ceil_div(piece.m, block.rows);

  // The grid is walked in rectangles of at most slice_columns x slice_rows workgroups, and those in strips of what `work` allows:
  // whole rows where one row is worth less than that, else parts of one row.
  const std::int64_t left = cursor.group_x / plan.slice_columns * plan.slice_columns;
  const std::int64_t top = cursor.group_y / plan.slice_rows * plan.slice_rows;
  const std::int64_t right = std::min(grid_x, left + plan.slice_columns), bottom = std::min(grid_y, top + plan.slice_rows);
  const double group_work = static_cast<double>(block.rows * block.columns) * static_cast<double>(std::max<std::int64_t>(1, piece.k));
  const double most_groups = static_cast<double>((right - left) * (bottom - top));
  const auto groups = static_cast<std::int64_t>(std::clamp(work / group_work, 1.0, most_groups));
  std::int64_t columns = right - cursor.group_x, rows = 1;
  if (cursor.group_x != left || groups < columns)
    columns = std::min(columns, groups);
  else
    rows = std::min(bottom - cursor.group_y, groups / columns);

  const bool piece_begins = cursor.group_x == 0 && cursor.group_y == 0;
  Step& step = slice.storage[0];
  step.groups = {columns, rows, 1};
  step.x0 = cursor.group_x * block.columns;
  step.y0 = cursor.group_y * block.rows;
  step.m = piece.m;
  step.n = piece.n;
  step.k = piece.k;
  step.a = window(problem, Role::a, cursor.m0, cursor.k0, piece);
  step.b = window(problem, Role::b, cursor.k0, cursor.n0, piece);
  step.c = window(problem, Role::c, cursor.m0, cursor.n0, piece);
  step.first_k = cursor.k0 == 0;
  step.barrier_before = piece_begins && (cursor.k0 > 0 || (cursor.m0 == 0 && cursor.n0 == 0));
  slice.count = 1;
  slice.work = static_cast<double>(columns * rows) * group_work;

  cursor.group_x += columns;
  if (cursor.group_x < right) return slice;
  cursor.group_x = left;
  cursor.group_y += rows;
  if (cursor.group_y < bottom) return slice;
  cursor.group_x = right;
  cursor.group_y = top;
  if (right < grid_x) return slice;
  cursor.group_x = 0;
  cursor.group_y = bottom;
  if (bottom < grid_y) return slice;
  cursor.group_y = 0;
  cursor.k0 += piece.k;
  if (cursor.k0 < problem.k) return slice;
  cursor.k0 = 0;  // C's piece is done
  cursor.n0 += piece.n;
  if (cursor.n0 < problem.n) return slice;
  cursor.n0 = 0;
  cursor.m0 += piece.m;
  return slice;
}

PlanSize size(const Plan& plan) {
  const Problem& problem = plan.problem;
  if (problem.m == 0 || problem.n == 0) return {};
  const Tile block = tile(plan.kernel);
  /// Dispatches along one axis of C: those of every whole piece, and those of the rest.
  const auto along = [](std::int64_t all, std::int64_t piece, std::int64_t tile_size, std::int64_t slice_groups) {
    const auto dispatches = [&](std::int64_t length) { return ceil_div(ceil_div(length, tile_size), slice_groups); };
    return all / piece * dispatches(piece) + dispatches(all % piece);
  };
  const std::int64_t windows_of_k = problem.k == 0 ? 1 : ceil_div(problem.k, plan.piece_k);
  PlanSize result;
  result.pieces = ceil_div(problem.m, plan.piece_m) * ceil_div(problem.n, plan.piece_n) * windows_of_k;
  result.dispatches = along(problem.m, plan.piece_m, block.rows, plan.slice_rows) *
                      along(problem.n, plan.piece_n, block.columns, plan.slice_columns) * windows_of_k;
  result.slices = result.dispatches;
  return result;
}

}  // namespace glgemm
