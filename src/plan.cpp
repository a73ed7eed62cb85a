// What shall run: from a problem and limits to a plan, and from a plan to its slices. No OpenGL.
#include <glgemm/plan.hpp>

#include <algorithm>
#include <stdexcept>

#include <glgemm/error.hpp>

#include "kernels.hpp"

namespace glgemm {
namespace {

constexpr std::int64_t int64_max = std::numeric_limits<std::int64_t>::max();

std::int64_t ceil_div(std::int64_t value, std::int64_t step) {
  return value / step + (value % step != 0);
}

/// Rows and columns as stored, before any op.
struct Shape {
  std::int64_t rows, columns;
};

constexpr Role roles[] = {Role::a, Role::b, Role::c, Role::d};

const Operand& operand(const Problem& problem, Role role) {
  switch (role) {
    case Role::a:
      return problem.a;
    case Role::b:
      return problem.b;
    case Role::c:
      return problem.c;
    case Role::d:
      break;
  }
  return problem.d;
}

/// Whether op swaps rows and columns; C and D have no op.
bool transposed(const Problem& problem, Role role) {
  return (role == Role::a || role == Role::b) && operand(problem, role).op != Op::none;
}

Shape stored_shape(const Problem& problem, Role role) {
  const Shape shape{role == Role::b ? problem.k : problem.m, role == Role::a ? problem.k : problem.n};
  return transposed(problem, role) ? Shape{shape.columns, shape.rows} : shape;
}

std::int64_t width(Layout layout, Shape shape) {
  return layout == Layout::row_major ? shape.columns : shape.rows;
}

char letter(Role role) {
  return "ABCD"[static_cast<int>(role)];
}

/// The sizes of a piece.
struct Piece {
  std::int64_t m, n, k, batch;
  friend bool operator==(const Piece&, const Piece&) = default;
};

/// One of the sizes of a piece and how far apart its elements lie in an operand.
struct Axis {
  std::int64_t Piece::*size;
  std::int64_t stride;
};

std::array<Axis, 3> axes(const Problem& problem, Role role) {
  const Strides stride = strides(problem, role);
  return {Axis{role == Role::b ? &Piece::k : &Piece::m, stride.row}, Axis{role == Role::a ? &Piece::k : &Piece::n, stride.column},
          Axis{&Piece::batch, stride.item}};
}

/// Elements from the first to the last of a piece of an operand, both included; 0 for one without elements.
std::int64_t extent(const Problem& problem, Role role, const Piece& piece) {
  std::int64_t last = 0;
  for (const Axis& axis : axes(problem, role)) {
    if (piece.*axis.size == 0) return 0;
    last += (piece.*axis.size - 1) * axis.stride;
  }
  return last + 1;
}

/// Cuts the piece until each operand's window has at most `most_bytes`. Of an operand that is too large, the size along which its
/// elements lie furthest apart is cut first: cutting another saves next to nothing.
void cut_to_windows(Piece& piece, const Problem& problem, std::int64_t most_bytes) {
  for (bool fits = false; !fits;) {
    fits = true;
    for (const Role role : roles) {
      if (role == Role::d && !problem.residual) continue;
      const std::int64_t most = most_bytes / element_bytes(type(problem, role));
      const std::int64_t all = extent(problem, role, piece);
      if (all <= most) continue;
      fits = false;
      const auto candidates = axes(problem, role);
      const Axis& axis = *std::max_element(candidates.begin(), candidates.end(), [&](const Axis& x, const Axis& y) {
        return (piece.*x.size > 1 ? x.stride : 0) < (piece.*y.size > 1 ? y.stride : 0);
      });
      const std::int64_t too_many = all - most;
      piece.*axis.size = std::max<std::int64_t>(1, piece.*axis.size - ceil_div(too_many, axis.stride));
    }
  }
}

/// Cuts the piece until its C has at most `most` elements.
void cut_to_workspace(Piece& piece, std::int64_t most) {
  const auto cut = [&](std::int64_t Piece::*size) {
    const std::int64_t each = piece.m * piece.n * piece.batch / std::max<std::int64_t>(1, piece.*size);
    if (each * (piece.*size) > most) piece.*size = std::max<std::int64_t>(1, most / std::max<std::int64_t>(1, each));
  };
  cut(&Piece::batch);
  cut(&Piece::m);
  cut(&Piece::n);
}

std::int64_t round_down_above(std::int64_t value, std::int64_t step) {
  return value > step ? value / step * step : value;
}

/// The window of the piece of an operand whose first element is that at `row` and `column` of item `item`.
Window window(const Problem& problem, Role role, std::int64_t row, std::int64_t column, std::int64_t item, const Piece& piece) {
  const Strides stride = strides(problem, role);
  const std::int64_t bytes = element_bytes(type(problem, role));
  return {(row * stride.row + column * stride.column + item * stride.item) * bytes, extent(problem, role, piece) * bytes};
}

/// The product of counts, or the largest number if it is larger.
std::int64_t product_of(std::initializer_list<std::int64_t> counts) {
  std::int64_t result = 1;
  for (const std::int64_t count : counts) result = count != 0 && result > int64_max / count ? int64_max : result * count;
  return result;
}

std::string times(std::int64_t a, std::int64_t b) {
  return std::to_string(a) + "x" + std::to_string(b);
}

}  // namespace

std::int64_t element_bytes(Type type) noexcept {
  constexpr std::int64_t bytes[] = {4, 8, 2, 2, 4, 4, 1, 8, 16};
  return bytes[static_cast<int>(type)];
}

namespace {
constexpr std::string_view type_names[] = {"f32", "f64", "f16", "bf16", "i32", "u32", "i8", "c64", "c128"};
}

std::string_view to_string(Type type) noexcept {
  return type_names[static_cast<int>(type)];
}

Type parse_type(std::string_view text) {
  const auto* found = std::find(std::begin(type_names), std::end(type_names), text);
  if (found != std::end(type_names)) return static_cast<Type>(found - std::begin(type_names));
  std::string known;
  for (const std::string_view name : type_names) known += (known.empty() ? "" : ", ") + std::string(name);
  throw std::invalid_argument("unknown type \"" + std::string(text) + "\"; known types: " + known);
}

Type accumulator(Type type) noexcept {
  return type == Type::f16 || type == Type::bf16 ? Type::f32 : type == Type::i8 ? Type::i32 : type;
}

bool is_complex(Type type) noexcept {
  return type == Type::c64 || type == Type::c128;
}
bool is_integer(Type type) noexcept {
  return type == Type::i32 || type == Type::u32 || type == Type::i8;
}

Type type(const Problem& problem, Role role) noexcept {
  return role == Role::a || role == Role::b ? problem.type : problem.c_type;
}

Strides strides(const Problem& problem, Role role) {
  const Operand& x = operand(problem, role);
  const std::int64_t ld = x.ld != 0 ? x.ld : std::max<std::int64_t>(1, width(x.layout, stored_shape(problem, role)));
  // Row-major and transposed is column-major, and the other way round.
  const bool rows_are_contiguous = (x.layout == Layout::row_major) != transposed(problem, role);
  return rows_are_contiguous ? Strides{ld, 1, x.batch_stride} : Strides{1, ld, x.batch_stride};
}

void validate(const Problem& problem) {
  if (problem.m < 0 || problem.n < 0 || problem.k < 0)
    throw std::invalid_argument("gemm: m = " + std::to_string(problem.m) + ", n = " + std::to_string(problem.n) +
                                ", k = " + std::to_string(problem.k) + ": a size is negative");
  if (problem.batch < 0) throw std::invalid_argument("gemm: a batch of " + std::to_string(problem.batch) + " items");
  if (problem.c_type != accumulator(problem.type) && (problem.c_type != problem.type || problem.type == Type::i8))
    throw std::invalid_argument(
        "gemm: A and B are " + std::string(to_string(problem.type)) + " and C is " + std::string(to_string(problem.c_type)) +
        "; it must be " + std::string(to_string(accumulator(problem.type))) +
        (accumulator(problem.type) != problem.type && problem.type != Type::i8 ? " or " + std::string(to_string(problem.type))
                                                                               : ""));
  if (problem.activation != Activation::none && (is_complex(problem.type) || is_integer(problem.type)))
    throw Unsupported("gemm: activations are for real floating-point types, and this is " + std::string(to_string(problem.type)));
  for (const Role role : roles) {
    if (role == Role::d && !problem.residual) continue;
    const Operand& x = operand(problem, role);
    const Shape shape = stored_shape(problem, role);
    const std::int64_t bytes = element_bytes(type(problem, role));
    const std::int64_t least = width(x.layout, shape);
    if (x.ld != 0 && x.ld < std::max<std::int64_t>(1, least))
      throw std::invalid_argument(std::string("gemm: ld of ") + letter(role) + " is " + std::to_string(x.ld) +
                                  ", less than its width of " + std::to_string(least));
    const std::int64_t ld = std::max({x.ld, least, std::int64_t{1}});
    const std::int64_t lines = x.layout == Layout::row_major ? shape.rows : shape.columns;
    if (lines > 0 && ld > int64_max / 2 / bytes / lines)
      throw std::invalid_argument(std::string("gemm: ") + letter(role) + " of " + times(shape.rows, shape.columns) + " with ld " +
                                  std::to_string(ld) + " has more bytes than 64 bits count");
    if (x.batch_stride < 0)
      throw std::invalid_argument(std::string("gemm: the items of ") + letter(role) + " are " + std::to_string(x.batch_stride) +
                                  " elements apart; a stride is not negative");
    const std::int64_t steps = problem.items ? 1 : problem.batch - 1;
    if (steps > 0 && x.batch_stride > int64_max / 2 / bytes / steps)
      throw std::invalid_argument(std::string("gemm: ") + letter(role) + " of " + std::to_string(problem.batch) + " items, " +
                                  std::to_string(x.batch_stride) + " elements apart, has more bytes than 64 bits count");
  }
  if (!problem.items && problem.batch > 1 && problem.m > 0 && problem.n > 0 && problem.c.batch_stride == 0)
    throw std::invalid_argument("gemm: all " + std::to_string(problem.batch) + " items would write the same C: its stride is 0");
}

ProgramKey Plan::program() const {
  return {kernel, problem.type, problem.c_type,
          problem.residual || problem.bias != Bias::none || problem.activation != Activation::none, items_in_buffer};
}

Plan make_plan(const Problem& problem, const Limits& device_limits, const PlanOptions& options) {
  validate(problem);
  const Limits& limits = options.limits ? *options.limits : device_limits;
  if (options.slice_columns < 1 || options.slice_rows < 1)
    throw std::invalid_argument("make_plan: a slice of " + times(options.slice_columns, options.slice_rows) + " workgroups");
  if (!limits.f64 && (problem.type == Type::f64 || problem.type == Type::c128))
    throw Unsupported("gemm: this driver has no doubles, and the product is " + std::string(to_string(problem.type)));
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
    std::string reason = why_not(problem, kernel, limits);
    if (reason.empty()) reason = kernels::poor_choice(problem, kernel);
    if (reason.empty()) {
      plan.kernel = kernel;
      found = true;
    } else {
      plan.passed_over.push_back({kernel, std::move(reason)});
    }
  }
  if (!found) throw Unsupported("gemm: no kernel can run this: " + plan.passed_over.back().reason);

  // Windows start at aligned offsets, so up to one alignment less one element comes on top; and shaders index with an int.
  constexpr std::int64_t int_max = std::numeric_limits<std::int32_t>::max();
  const std::int64_t least_element = std::min(element_bytes(problem.type), element_bytes(problem.c_type));
  const std::int64_t slack = std::max<std::int64_t>(limits.storage_offset_alignment, 16) - least_element;
  const std::int64_t most_bytes = std::min(limits.storage_block_bytes, int_max) / 4 * 4 - slack;
  if (most_bytes < element_bytes(accumulator(problem.type)))
    throw Unsupported("gemm: storage blocks of " + std::to_string(limits.storage_block_bytes) + " bytes at offsets aligned to " +
                      std::to_string(limits.storage_offset_alignment) + " have no room for one element");
  const Tile block = tile(plan.kernel);
  constexpr std::int64_t most_per_axis = int_max / 2;  // x0 + a tile stays an int in the shader
  const std::int64_t most_bias = std::min(most_per_axis, most_bytes / element_bytes(problem.c_type));
  const Piece start{std::min(problem.m, problem.bias == Bias::for_each_row ? most_bias : most_per_axis),
                    std::min(problem.n, problem.bias == Bias::for_each_column ? most_bias : most_per_axis),
                    std::min(problem.k, kernels::longest_k(plan.kernel, limits.loop_iterations)),
                    std::min(problem.batch, most_per_axis)};
  Piece piece = start;
  if (problem.items) {
    // All items through one set of windows if those reach so far, else each on its own.
    const Piece pair{start.m, start.n, start.k, std::min<std::int64_t>(problem.batch, 2)};
    Piece fitting = pair;
    cut_to_windows(fitting, problem, most_bytes);
    plan.items_in_buffer = fitting == pair;
    if (!plan.items_in_buffer) {
      piece.batch = std::min<std::int64_t>(problem.batch, 1);
      cut_to_windows(piece, problem, most_bytes);
    }
  } else {
    cut_to_windows(piece, problem, most_bytes);
  }

  const auto whole_tiles = [](std::int64_t size, std::int64_t all, std::int64_t step) {
    return size < all ? round_down_above(size, step) : size;
  };
  plan.piece_k = whole_tiles(piece.k, problem.k, kernels::k_step(plan.kernel));
  const bool keeps_partial_sums = problem.c_type != accumulator(problem.type) && plan.piece_k < problem.k;
  if (keeps_partial_sums) {
    const std::int64_t most = std::min(options.workspace_bytes, most_bytes) / element_bytes(accumulator(problem.type));
    if (most < 1)
      throw std::invalid_argument("gemm: windows of k need a workspace of at least " +
                                  std::to_string(element_bytes(accumulator(problem.type))) + " bytes, and the limit is " +
                                  std::to_string(options.workspace_bytes));
    const std::int64_t items = piece.batch;
    cut_to_workspace(piece, most);
    if (plan.items_in_buffer && piece.batch < items) plan.items_in_buffer = false, piece.batch = 1;
  }
  plan.piece_m = whole_tiles(piece.m, problem.m, block.rows);
  plan.piece_n = whole_tiles(piece.n, problem.n, block.columns);
  plan.piece_batch = piece.batch;
  if (keeps_partial_sums)
    plan.workspace_bytes = plan.piece_m * plan.piece_n * plan.piece_batch * element_bytes(accumulator(problem.type));
  plan.slice_columns = std::min({options.slice_columns, limits.groups[0], limits.groups_product});
  plan.slice_rows = std::min({options.slice_rows, limits.groups[1], limits.groups_product / plan.slice_columns});
  plan.slice_groups = limits.groups_product;
  plan.slice_items = limits.groups[2];
  if (kernels::packs_items(plan.kernel) && problem.m > 0 && problem.n > 0) {
    const std::int64_t invocations = std::min(limits.groups[0], limits.groups_product) * workgroup(plan.kernel)[0];
    plan.slice_items = std::min(invocations, most_per_axis) / kernels::blocks(plan.kernel, plan.piece_m, plan.piece_n);
  }
  return plan;
}

Slice next_slice(const Plan& plan, Cursor& cursor, double work) {
  const Problem& problem = plan.problem;
  Slice slice;
  if (problem.m == 0 || problem.n == 0 || cursor.batch0 >= problem.batch) return slice;

  const Piece piece{std::min(plan.piece_m, problem.m - cursor.m0), std::min(plan.piece_n, problem.n - cursor.n0),
                    std::min(plan.piece_k, problem.k - cursor.k0), std::min(plan.piece_batch, problem.batch - cursor.batch0)};
  const Tile block = tile(plan.kernel);
  const std::int64_t grid_x = ceil_div(piece.n, block.columns), grid_y = ceil_div(piece.m, block.rows);

  // A grid is walked in rectangles of at most slice_columns x slice_rows blocks, and those in strips of what `work` allows: whole
  // rows where one row is worth less than that, else parts of one row. A grid of one rectangle is taken whole for as many items
  // at once as `work` allows.
  const double block_work =
      static_cast<double>(block.rows * block.columns) * static_cast<double>(std::max<std::int64_t>(1, piece.k));
  const bool packs_items = kernels::packs_items(plan.kernel);
  const std::int64_t most_columns = packs_items ? grid_x : plan.slice_columns, most_rows = packs_items ? grid_y : plan.slice_rows;
  const std::int64_t left = cursor.group_x / most_columns * most_columns, top = cursor.group_y / most_rows * most_rows;
  const std::int64_t right = std::min(grid_x, left + most_columns), bottom = std::min(grid_y, top + most_rows);
  const std::int64_t items_left = piece.batch - cursor.item;
  const bool grid_begins = cursor.group_x == 0 && cursor.group_y == 0;
  const std::int64_t most_items =
      std::min({items_left, plan.slice_items, packs_items ? items_left : plan.slice_groups / (grid_x * grid_y)});
  const bool whole_grid = packs_items || (grid_begins && grid_x == right && grid_y == bottom && most_items > 0);
  const double all_groups = static_cast<double>(whole_grid ? grid_x * grid_y * most_items : (right - left) * (bottom - top));
  const auto groups = static_cast<std::int64_t>(std::clamp(work / block_work, 1.0, all_groups));
  std::int64_t columns = right - cursor.group_x, rows = 1, items = 1;
  if (packs_items || (whole_grid && groups >= grid_x * grid_y)) {
    columns = grid_x;
    rows = grid_y;
    items = std::max<std::int64_t>(1, groups / (grid_x * grid_y));
  } else if (cursor.group_x != left || groups < columns) {
    columns = std::min(columns, groups);
  } else {
    rows = std::min(bottom - cursor.group_y, groups / columns);
  }

  const bool piece_begins = grid_begins && cursor.item == 0;
  const bool first_piece = cursor.batch0 == 0 && cursor.m0 == 0 && cursor.n0 == 0;
  // Items that share no window are the executor's to find; their windows are those of the first.
  const std::int64_t window_item = problem.items ? 0 : cursor.batch0;
  Piece extent_of = piece;
  if (problem.items) extent_of.batch = plan.items_in_buffer ? std::min<std::int64_t>(problem.batch, 2) : 1;
  Step& step = slice.storage[0];
  if (packs_items) {
    const std::int64_t size = workgroup(plan.kernel)[0];
    step.groups = {ceil_div(items * columns * rows, size), 1, 1};
  } else {
    step.groups = {columns, rows, items};
  }
  step.x0 = cursor.group_x * block.columns;
  step.y0 = cursor.group_y * block.rows;
  step.z0 = cursor.item;
  step.m = piece.m;
  step.n = piece.n;
  step.k = piece.k;
  step.items = items;
  step.first_item = cursor.batch0;
  step.a = window(problem, Role::a, cursor.m0, cursor.k0, window_item, extent_of);
  step.b = window(problem, Role::b, cursor.k0, cursor.n0, window_item, extent_of);
  step.c = window(problem, Role::c, cursor.m0, cursor.n0, window_item, extent_of);
  if (problem.residual) step.d = window(problem, Role::d, cursor.m0, cursor.n0, window_item, extent_of);
  const std::int64_t bias_bytes = element_bytes(problem.c_type);
  if (problem.bias == Bias::for_each_row) step.bias = {cursor.m0 * bias_bytes, piece.m * bias_bytes};
  if (problem.bias == Bias::for_each_column) step.bias = {cursor.n0 * bias_bytes, piece.n * bias_bytes};
  step.first_k = cursor.k0 == 0;
  step.last_k = cursor.k0 + piece.k >= problem.k;
  // Partial sums are the same memory for every piece, C is not.
  step.barrier_before = piece_begins && (cursor.k0 > 0 || first_piece || plan.workspace_bytes > 0);
  slice.count = 1;
  slice.work = static_cast<double>(columns * rows * items) * block_work;

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
  cursor.item += items;
  if (cursor.item < piece.batch) return slice;
  cursor.item = 0;
  cursor.k0 += piece.k;
  if (cursor.k0 < problem.k) return slice;
  cursor.k0 = 0;  // C's piece is done
  cursor.n0 += piece.n;
  if (cursor.n0 < problem.n) return slice;
  cursor.n0 = 0;
  cursor.m0 += piece.m;
  if (cursor.m0 < problem.m) return slice;
  cursor.m0 = 0;
  cursor.batch0 += piece.batch;
  return slice;
}

PlanSize size(const Plan& plan) {
  const Problem& problem = plan.problem;
  if (problem.m == 0 || problem.n == 0 || problem.batch == 0) return {};
  const Tile block = tile(plan.kernel);
  const std::int64_t windows_of_k = problem.k == 0 ? 1 : ceil_div(problem.k, plan.piece_k);
  PlanSize result;
  result.pieces = product_of({ceil_div(problem.m, plan.piece_m), ceil_div(problem.n, plan.piece_n),
                              ceil_div(problem.batch, plan.piece_batch), windows_of_k});
  /// The whole pieces along one axis and the rest, as sizes and how many there are.
  struct Kind {
    std::int64_t size, count;
  };
  const auto kinds = [](std::int64_t all, std::int64_t piece) {
    return std::array{Kind{piece, all / piece}, Kind{all % piece, all % piece != 0}};
  };
  for (const Kind& m : kinds(problem.m, plan.piece_m))
    for (const Kind& n : kinds(problem.n, plan.piece_n))
      for (const Kind& batch : kinds(problem.batch, plan.piece_batch)) {
        if (m.count == 0 || n.count == 0 || batch.count == 0) continue;
        const std::int64_t grid_x = ceil_div(n.size, block.columns), grid_y = ceil_div(m.size, block.rows);
        const std::int64_t rectangles = ceil_div(grid_x, plan.slice_columns) * ceil_div(grid_y, plan.slice_rows);
        std::int64_t dispatches = product_of({rectangles, batch.size});
        if (kernels::packs_items(plan.kernel))
          dispatches = ceil_div(batch.size, plan.slice_items);
        else if (rectangles == 1)
          dispatches =
              ceil_div(batch.size, std::max<std::int64_t>(1, std::min(plan.slice_items, plan.slice_groups / (grid_x * grid_y))));
        const std::int64_t more = product_of({m.count, n.count, batch.count, windows_of_k, dispatches});
        result.dispatches += std::min(more, int64_max - result.dispatches);
      }
  result.slices = result.dispatches;
  return result;
}

}  // namespace glgemm
