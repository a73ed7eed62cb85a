// What shall run: from a problem and limits to a plan, and from a plan to its slices. No OpenGL.
#include <glgemm/plan.hpp>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <stdexcept>

#include <glgemm/error.hpp>
#include <glgemm/tuning.hpp>

#include "base/rounding.hpp"
#include "base/text.hpp"
#include "kernels/kernels.hpp"
#include "plan/cost_model.hpp"

namespace glgemm {
namespace {

constexpr std::int64_t int64_max = std::numeric_limits<std::int64_t>::max();

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

/// Cuts the piece until each operand's window has at most `max_bytes`. Of an operand that is too large, the size along which its
/// elements lie furthest apart is cut first: cutting another saves next to nothing.
void cut_to_windows(Piece& piece, const Problem& problem, std::int64_t max_bytes) {
  for (bool fits = false; !fits;) {
    fits = true;
    for (const Role role : roles) {
      if (role == Role::d && !problem.residual) continue;
      const std::int64_t most = max_bytes / element_bytes(type(problem, role));
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

/// The largest divisor of a band up to `most`.
std::int64_t divisor(std::int64_t band, std::int64_t most) {
  std::int64_t result = 1;
  for (std::int64_t i = 1; i <= band / i; ++i) {
    if (band % i != 0) continue;
    for (const std::int64_t each : {i, band / i})
      if (each <= most) result = std::max(result, each);
  }
  return result;
}

/// Cuts the piece so that it straddles no band of an operand's lines: along them its size divides every band.
void cut_to_bands(Piece& piece, const Problem& problem) {
  std::array<std::int64_t, 3> bands{};  // of m, n and k: their greatest common divisor
  constexpr std::int64_t Piece::*sizes[] = {&Piece::m, &Piece::n, &Piece::k};
  const Piece all{problem.m, problem.n, problem.k, problem.batch};
  for (const Role role : roles) {
    const Operand& x = operand(problem, role);
    if (x.band == 0 || (role == Role::d && !problem.residual)) continue;
    const auto along = axes(problem, role)[(x.layout == Layout::row_major) != transposed(problem, role) ? 0 : 1].size;
    for (std::size_t i = 0; i < 3; ++i)
      if (along == sizes[i] && all.*along > x.band) bands[i] = std::gcd(bands[i], x.band);
  }
  for (std::size_t i = 0; i < 3; ++i)
    if (bands[i] != 0) piece.*sizes[i] = divisor(bands[i], piece.*sizes[i]);
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

constexpr std::int64_t int_max = std::numeric_limits<std::int32_t>::max();

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
  if (problem.activation != ActivationKind::none && (is_complex(problem.type) || is_integer(problem.type)))
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
      throw std::invalid_argument(std::string("gemm: ") + letter(role) + " of " + size_text(shape.rows, shape.columns) +
                                  " with ld " + std::to_string(ld) + " has more bytes than 64 bits count");
    if (x.band < 0)
      throw std::invalid_argument(std::string("gemm: ") + letter(role) + " lies in bands of " + std::to_string(x.band) +
                                  " lines");
    if (x.band > 0 && (problem.batch != 1 || problem.items))
      throw std::invalid_argument(std::string("gemm: ") + letter(role) + " lies in bands of " + std::to_string(x.band) +
                                  " lines, and there is a batch of " + std::to_string(problem.batch) +
                                  " items or one with offsets or scalars of its own; a batch's matrices lie in one buffer");
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

ProgramKey Plan::program(Stage stage) const {
  const bool epilogue = problem.residual || problem.bias != Bias::none || problem.activation != ActivationKind::none;
  const Type acc = accumulator(problem.type);
  switch (stage) {
    case Stage::pack_a:
    case Stage::pack_b:
      return {.kernel = PackKernel{}, .type = problem.type, .c_type = acc, .items = items_in_buffer};
    case Stage::reduce:
      return {.kernel = ReduceKernel{},
              .type = problem.type,
              .c_type = problem.c_type,
              .epilogue = epilogue,
              .items = items_in_buffer};
    case Stage::multiply:
      break;
  }
  // Panels have the accumulator's type already.
  const Type type = panels(kernel) != Panels::none && packs(Role::a) ? acc : problem.type;
  if (parts > 1)
    return {
        .kernel = kernel, .type = type, .c_type = acc, .items = items_in_buffer && !packs(Role::a), .parts = true, .wide = wide};
  return {.kernel = kernel,
          .type = type == acc && problem.c_type != acc ? problem.type : type,
          .c_type = problem.c_type,
          .epilogue = epilogue,
          .items = items_in_buffer,
          .wide = wide};
}

std::vector<Stage> Plan::stages() const {
  std::vector<Stage> result;
  if (packs(Role::a)) result.push_back(Stage::pack_a);
  if (packs(Role::b)) result.push_back(Stage::pack_b);
  result.push_back(Stage::multiply);
  if (parts > 1) result.push_back(Stage::reduce);
  return result;
}

Problem transposed(const Problem& problem) {
  const auto turned = [](Operand operand) {
    operand.layout = operand.layout == Layout::row_major ? Layout::column_major : Layout::row_major;
    return operand;  // op(X)^T = op(X^T)
  };
  Problem result = problem;
  std::swap(result.m, result.n);
  result.a = turned(problem.b);
  result.b = turned(problem.a);
  result.c = turned(problem.c);
  result.d = turned(problem.d);
  if (problem.bias != Bias::none) result.bias = problem.bias == Bias::for_each_row ? Bias::for_each_column : Bias::for_each_row;
  return result;
}

namespace {

/// What a stage of a piece runs over: workgroups of `columns` x `rows` each, and layers.
struct Grid {
  std::int64_t x = 0, y = 0, layers = 0;
  std::int64_t columns = 1, rows = 1;
  std::int64_t max_columns = 1, max_rows = 1;  ///< workgroups of a dispatch
  double group_work = 1;
};

std::int64_t padded(const Kernel& kernel, std::int64_t k) {
  if (panels(kernel) == Panels::none) return k;
  // Zeros of B alone would not do: what follows A's rows may be NaN.
  const bool both = kernels::panel_width(kernel, Role::a, Type::f32) > 0;
  return round_up(std::max<std::int64_t>(k, 1), both ? kernels::k_step(kernel) : 1);
}

/// Bytes of the panels of an operand's piece.
std::int64_t panel_bytes(const Problem& problem, const Kernel& kernel, Role role, const Piece& piece) {
  const std::int64_t width = kernels::panel_width(kernel, role, problem.type);
  if (width == 0) return 0;
  return product_of({round_up(role == Role::a ? piece.m : piece.n, width), padded(kernel, piece.k),
                     kernels::packed_items(problem, role, piece.batch), element_bytes(accumulator(problem.type))});
}

Grid grid_of(const Plan& plan, Stage stage, const Piece& piece) {
  const Problem& problem = plan.problem;
  Grid grid;
  const std::int64_t max_x = std::min(plan.max_groups[0], plan.slice_groups);
  if (stage == Stage::pack_a || stage == Stage::pack_b) {
    const Role role = stage == Stage::pack_a ? Role::a : Role::b;
    const std::int64_t per_texel = 16 / element_bytes(accumulator(problem.type));
    const std::int64_t width = kernels::panel_width(plan.kernel, role, problem.type);
    const std::int64_t rows = round_up(role == Role::a ? piece.m : piece.n, width), lanes = kernels::pack_lanes(rows / per_texel);
    grid.columns = lanes * per_texel;
    grid.rows = kernels::pack_step * (PackKernel{}.workgroup / lanes);
    grid.x = ceil_div(rows, grid.columns);
    grid.y = ceil_div(padded(plan.kernel, piece.k), grid.rows);
    grid.layers = kernels::packed_items(problem, role, piece.batch);
    grid.max_columns = max_x;
    grid.max_rows = std::min(plan.max_groups[1], plan.slice_groups / std::min(grid.x, max_x));
    grid.group_work = static_cast<double>(grid.columns * grid.rows);
  } else if (stage == Stage::reduce) {
    grid.columns = workgroup(ReduceKernel{})[0];
    grid.x = ceil_div(piece.m * piece.n, grid.columns);
    grid.y = 1;
    grid.layers = piece.batch;
    grid.max_columns = max_x;
    grid.group_work = static_cast<double>(grid.columns * plan.parts);
  } else {
    const Tile block = tile(plan.kernel);
    const std::int64_t parts = plan.parts > 1 ? ceil_div(padded(plan.kernel, piece.k), plan.part_k) : 1;
    grid.columns = block.columns;
    grid.rows = block.rows;
    grid.x = ceil_div(piece.n, block.columns);
    grid.y = ceil_div(piece.m, block.rows);
    grid.layers = piece.batch * parts;
    grid.max_columns = plan.slice_columns;
    grid.max_rows = plan.slice_rows;
    grid.group_work =
        static_cast<double>(block.rows * block.columns) * static_cast<double>(std::max<std::int64_t>(1, piece.k / parts));
  }
  return grid;
}

}  // namespace

kernels::PackedPart kernels::packed_part(const Plan& plan, const Step& step) {
  const Grid grid = grid_of(plan, step.stage, {step.m, step.n, step.k, step.piece_items});
  const auto part = [](std::int64_t size, std::int64_t begin, std::int64_t length) {
    return std::max<std::int64_t>(0, std::min(size - begin, length));
  };
  return {step.x0, part(step.stage == Stage::pack_a ? step.m : step.n, step.x0, step.groups[0] * grid.columns), step.y0,
          part(step.k, step.y0, step.groups[1] * grid.rows)};
}

namespace {

/// The parts of k that keep the device busy and each within a loop's limit.
std::int64_t parts_for(const Problem& problem, const Kernel& kernel, const Limits& limits, std::int64_t asked) {
  if (!kernels::can_split(kernel) || problem.k == 0) return 1;
  const std::int64_t step = kernels::k_step(kernel);
  if (asked > 0) return std::min(asked, ceil_div(problem.k, step));
  const Tile block = tile(kernel);
  const std::int64_t groups = product_of({ceil_div(problem.m, block.rows), ceil_div(problem.n, block.columns), problem.batch});
  const std::int64_t min_k = 512;  // a shorter part saves less than its reduction costs
  const std::int64_t wanted = std::min(2 * limits.concurrent_groups / std::max<std::int64_t>(1, groups), problem.k / min_k);
  const std::int64_t needed =
      groups <= 4 * limits.concurrent_groups ? ceil_div(problem.k, kernels::max_k(kernel, limits.loop_iterations)) : 1;
  return std::clamp<std::int64_t>(std::max(wanted, needed), 1, 1024);
}

/// A kernel, and the problem as it would run it.
struct Choice {
  Kernel kernel;
  bool transposed = false;
  std::int64_t parts = 1;
  double seconds = 0;
  Plan::By by = Plan::By::model;
};

/// gemv wants few columns, so that a C of fewer rows than columns is transposed; register and blocked write rows of C, so that a
/// column-major one is.
bool runs_transposed(const Problem& problem, const Kernel& kernel) {
  if (std::holds_alternative<GemvKernel>(kernel)) return problem.m < problem.n;
  return (std::holds_alternative<RegisterKernel>(kernel) || std::holds_alternative<BlockedKernel>(kernel)) &&
         problem.c.layout == Layout::column_major && problem.m > 1 && problem.n > 1;
}

Choice choice_of(const Problem& problem, const Kernel& kernel, const Limits& limits, const PlanOptions& options,
                 std::int64_t split_k) {
  Choice result{.kernel = kernel, .transposed = options.transposed.value_or(runs_transposed(problem, kernel))};
  const Problem as_run = result.transposed ? transposed(problem) : problem;
  result.parts = parts_for(as_run, kernel, limits, split_k);
  result.seconds = expected_seconds(as_run, kernel, limits, result.parts, std::max(1.0, options.runs));
  return result;
}

/// How the kernel reads what it can read 16 bytes at a time: gemv as an image on CPU drivers, where that is cheaper.
Panels how_wide(const Problem& problem, const Kernel& kernel, const Limits& limits, const Piece& piece) {
  if (!kernels::reads_wide(kernel, problem, piece.m, piece.n, piece.k)) return Panels::none;
  const std::int64_t window_bytes = extent(problem, Role::a, piece) * element_bytes(problem.type);
  return limits.cpu && std::holds_alternative<GemvKernel>(kernel) && window_bytes >= kernels::min_image_bytes &&
                 window_bytes <= limits.image_buffer_bytes - 256
             ? Panels::image
             : Panels::storage;
}

/// Fills in everything but the kernel's choice; or says why it can't be had.
std::string cut(Plan& plan, const Limits& limits, const PlanOptions& options, std::int64_t parts) {
  const Problem& problem = plan.problem;
  const Type acc = accumulator(problem.type);
  // Windows start at aligned offsets, so up to one alignment less one element comes on top; and shaders index with an int.
  const std::int64_t min_element_bytes = std::min(element_bytes(problem.type), element_bytes(problem.c_type));
  const std::int64_t slack = std::max<std::int64_t>(limits.storage_offset_alignment, 16) - min_element_bytes;
  const std::int64_t max_bytes = std::min(limits.storage_block_bytes, int_max) / 4 * 4 - slack;
  if (max_bytes < element_bytes(acc))
    return "gemm: storage blocks of " + std::to_string(limits.storage_block_bytes) + " bytes at offsets aligned to " +
           std::to_string(limits.storage_offset_alignment) + " have no room for one element";
  const Tile block = tile(plan.kernel);
  const std::int64_t k_step = kernels::k_step(plan.kernel);
  constexpr std::int64_t max_per_axis = int_max / 2;  // x0 + a tile stays an int in the shader
  const std::int64_t max_bias = std::min(max_per_axis, max_bytes / element_bytes(problem.c_type));
  const Piece start{std::min(problem.m, problem.bias == Bias::for_each_row ? max_bias : max_per_axis),
                    std::min(problem.n, problem.bias == Bias::for_each_column ? max_bias : max_per_axis),
                    std::min({problem.k, product_of({parts, kernels::max_k(plan.kernel, limits.loop_iterations)}),
                              max_per_axis / k_step * k_step}),
                    std::min(problem.batch, max_per_axis)};
  Piece piece = start;
  cut_to_bands(piece, problem);
  if (problem.items) {
    // All items through one set of windows if those reach so far, else each on its own.
    const Piece pair{start.m, start.n, start.k, std::min<std::int64_t>(problem.batch, 2)};
    Piece fitting = pair;
    cut_to_windows(fitting, problem, max_bytes);
    plan.items_in_buffer = fitting == pair;
    if (!plan.items_in_buffer) {
      piece.batch = std::min<std::int64_t>(problem.batch, 1);
      cut_to_windows(piece, problem, max_bytes);
    }
  } else {
    cut_to_windows(piece, problem, max_bytes);
  }
  const auto whole_tiles = [](std::int64_t size, std::int64_t all, std::int64_t step) {
    return size < all ? round_down_above(size, step) : size;
  };
  piece.m = whole_tiles(piece.m, problem.m, block.rows);  // so that a workspace of what the plan says is enough for it
  piece.n = whole_tiles(piece.n, problem.n, block.columns);
  piece.k = whole_tiles(piece.k, problem.k, k_step);
  cut_to_bands(piece, problem);

  const auto workspace = [&] {
    plan.panels_a_bytes = panel_bytes(problem, plan.kernel, Role::a, piece);
    plan.panels_b_bytes = panel_bytes(problem, plan.kernel, Role::b, piece);
    const bool rounds = problem.c_type != acc && piece.k < problem.k;
    plan.sums_bytes = parts > 1 || rounds ? product_of({piece.m, piece.n, piece.batch, parts, element_bytes(acc)}) : 0;
  };
  const auto smaller = [&](std::int64_t& size, std::int64_t step) {
    if (size <= step) return false;
    size = round_up(ceil_div(size, 2), step);
    return true;
  };
  workspace();
  if (panels(plan.kernel) == Panels::none && parts == 1) {
    if (plan.sums_bytes > 0) {
      const std::int64_t most = std::min(options.workspace_bytes, max_bytes) / element_bytes(acc);
      if (most < 1)
        return "gemm: windows of k need a workspace of at least " + std::to_string(element_bytes(acc)) +
               " bytes, and the limit is " + std::to_string(options.workspace_bytes);
      const std::int64_t items = piece.batch;
      cut_to_workspace(piece, most);
      if (plan.items_in_buffer && piece.batch < items) plan.items_in_buffer = false, piece.batch = 1;
    }
  } else {
    const std::int64_t max_panels =
        panels(plan.kernel) == Panels::image ? std::min(limits.image_buffer_bytes, 16 * int_max) : max_bytes;
    const auto too_large = [&] {
      return plan.panels_a_bytes + plan.panels_b_bytes > max_panels || plan.panels_a_bytes > max_bytes ||
             plan.panels_b_bytes > max_bytes || plan.sums_bytes > max_bytes ||
             plan.panels_a_bytes + plan.panels_b_bytes + plan.sums_bytes > options.workspace_bytes - kernels::workspace_padding;
    };
    for (; too_large(); workspace()) {
      if (piece.batch > 1) {
        piece.batch = plan.items_in_buffer ? 1 : ceil_div(piece.batch, 2);
        plan.items_in_buffer = false;
      } else if (parts > 1 && plan.sums_bytes > std::max(plan.panels_a_bytes, plan.panels_b_bytes)) {
        parts = ceil_div(parts, 2);
        piece.k =
            std::min(piece.k, round_down_above(product_of({parts, kernels::max_k(plan.kernel, limits.loop_iterations)}), k_step));
      } else if (piece.k > std::max({piece.m, piece.n, 2 * k_step}) && problem.c_type == acc) {
        smaller(piece.k, k_step);
      } else if (plan.panels_a_bytes >= plan.panels_b_bytes ? smaller(piece.m, block.rows) || smaller(piece.n, block.columns)
                                                            : smaller(piece.n, block.columns) || smaller(piece.m, block.rows)) {
      } else if (!smaller(piece.k, k_step)) {
        return to_string(plan.kernel) + " needs a workspace of " +
               std::to_string(plan.panels_a_bytes + plan.panels_b_bytes + plan.sums_bytes) +
               " bytes for the least piece; the limit is " + std::to_string(options.workspace_bytes) + ", in blocks of at most " +
               std::to_string(max_bytes);
      }
    }
  }
  piece.m = whole_tiles(piece.m, problem.m, block.rows);
  piece.n = whole_tiles(piece.n, problem.n, block.columns);
  cut_to_bands(piece, problem);  // rounding to tiles and cutting to the workspace don't know them
  plan.piece_m = piece.m;
  plan.piece_n = piece.n;
  plan.piece_k = piece.k;
  plan.piece_batch = piece.batch;
  plan.part_k = parts > 1 ? round_up(ceil_div(padded(plan.kernel, plan.piece_k), parts), k_step) : plan.piece_k;
  plan.parts = parts > 1 ? ceil_div(padded(plan.kernel, plan.piece_k), plan.part_k) : 1;
  piece = {plan.piece_m, plan.piece_n, plan.piece_k, plan.piece_batch};
  parts = plan.parts;
  workspace();
  plan.workspace_bytes =
      kernels::workspace_aligned(plan.panels_a_bytes) + kernels::workspace_aligned(plan.panels_b_bytes) + plan.sums_bytes;
  plan.wide = how_wide(problem, plan.kernel, limits, piece);
  const bool paper = std::holds_alternative<TiledKernel>(plan.kernel) || std::holds_alternative<NaiveKernel>(plan.kernel);
  const std::int64_t by_default = paper ? 64 : int_max;
  const auto most = [&](std::int64_t asked) { return asked > 0 ? asked : by_default; };
  plan.slice_columns = std::min({most(options.slice_columns), limits.groups[0], limits.groups_product});
  if (!paper) plan.slice_columns = std::min(plan.slice_columns, std::max<std::int64_t>(1, ceil_div(plan.piece_n, block.columns)));
  plan.slice_rows = std::min({most(options.slice_rows), limits.groups[1], limits.groups_product / plan.slice_columns});
  plan.slice_groups = limits.groups_product;
  plan.max_groups = limits.groups;
  plan.slice_items = limits.groups[2];
  if (kernels::packs_items(plan.kernel) && problem.m > 0 && problem.n > 0) {
    const std::int64_t invocations = std::min(limits.groups[0], limits.groups_product) * workgroup(plan.kernel)[0];
    plan.slice_items = std::min(invocations, max_per_axis) / kernels::blocks(plan.kernel, plan.piece_m, plan.piece_n);
  }
  return {};
}

bool is_struck_off(const Plan& plan, std::span<const ProgramKey> struck_off) {
  if (struck_off.empty()) return false;
  for (const Stage stage : plan.stages())
    if (std::find(struck_off.begin(), struck_off.end(), plan.program(stage)) != struck_off.end()) return true;
  return false;
}

std::string milliseconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g ms", seconds * 1e3);
  return text;
}

}  // namespace

Plan make_plan(const Problem& problem, const Limits& device_limits, const PlanOptions& options) {
  validate(problem);
  const Limits& limits = options.limits ? *options.limits : device_limits;
  if (options.slice_columns < 0 || options.slice_rows < 0)
    throw std::invalid_argument("make_plan: a slice of " + size_text(options.slice_columns, options.slice_rows) + " workgroups");
  if (options.split_k < 0) throw std::invalid_argument("make_plan: k in " + std::to_string(options.split_k) + " parts");
  if (!limits.f64 && (problem.type == Type::f64 || problem.type == Type::c128))
    throw Unsupported("gemm: this driver has no doubles, and the product is " + std::string(to_string(problem.type)));

  // The choices, best first: the caller's alone; else what was tuned; else what the model takes for the fastest.
  std::vector<Choice> choices;
  std::vector<Plan::PassedOver> refused;
  const auto consider = [&](const Kernel& kernel, Plan::By by, std::int64_t split_k) {
    if (std::string reason = why_not(problem, kernel, limits); !reason.empty()) {
      refused.push_back({kernel, std::move(reason)});
      return;
    }
    choices.push_back(choice_of(problem, kernel, limits, options, split_k));
    choices.back().by = by;
  };
  if (options.kernel) {
    if (const std::string reason = kernels::malformed(*options.kernel); !reason.empty()) throw std::invalid_argument(reason);
    if (const std::string reason = why_not(problem, *options.kernel, limits); !reason.empty()) throw Unsupported(reason);
    consider(*options.kernel, Plan::By::caller, options.split_k);
  } else {
    for (const TunedChoice* tuned : nearby(options.tuning, problem))
      consider(tuned->kernel, Plan::By::tuning, options.split_k != 0 ? options.split_k : tuned->split_k);
    const std::size_t first_of_model = choices.size();
    for (const Kernel& kernel : kernels::candidates(problem, limits)) consider(kernel, Plan::By::model, options.split_k);
    std::stable_sort(choices.begin() + static_cast<std::ptrdiff_t>(first_of_model), choices.end(),
                     [](const Choice& x, const Choice& y) { return x.seconds < y.seconds; });
  }

  for (std::size_t i = 0; i < choices.size(); ++i) {
    const Choice& choice = choices[i];
    Plan plan;
    plan.problem = choice.transposed ? transposed(problem) : problem;
    plan.transposed = choice.transposed;
    plan.kernel = choice.kernel;
    plan.chosen_by = choice.by;
    plan.expected_seconds = choice.seconds;
    std::string reason = cut(plan, limits, options, choice.parts);
    if (reason.empty() && is_struck_off(plan, options.struck_off)) reason = to_string(choice.kernel) + " failed its self-check";
    if (!reason.empty()) {
      refused.push_back({choice.kernel, std::move(reason)});
      continue;
    }
    for (std::size_t j = i + 1; j < choices.size(); ++j)
      if (choices[j].by == Plan::By::model && choices[j].kernel != choice.kernel)
        plan.passed_over.push_back({choices[j].kernel, milliseconds(choices[j].seconds) + " by the cost model, against " +
                                                           milliseconds(choice.seconds)});
    for (Plan::PassedOver& passed : refused) plan.passed_over.push_back(std::move(passed));
    return plan;
  }
  throw Unsupported("gemm: no kernel can run this: " + refused.back().reason);
}

namespace {

constexpr Stage all_stages[] = {Stage::pack_a, Stage::pack_b, Stage::multiply, Stage::reduce};

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
      break;
  }
  return plan.parts > 1 && last_k;
}

}  // namespace

Slice next_slice(const Plan& plan, Cursor& cursor, double work) {
  const Problem& problem = plan.problem;
  Slice slice;
  if (problem.m == 0 || problem.n == 0 || cursor.batch0 >= problem.batch) return slice;

  const Piece piece{std::min(plan.piece_m, problem.m - cursor.m0), std::min(plan.piece_n, problem.n - cursor.n0),
                    std::min(plan.piece_k, problem.k - cursor.k0), std::min(plan.piece_batch, problem.batch - cursor.batch0)};
  const bool last_k = cursor.k0 + piece.k >= problem.k;
  const auto has = [&](Stage stage) { return has_stage(plan, stage, cursor.m0 == 0, cursor.n0 == 0, last_k); };
  while (!has(all_stages[cursor.stage])) ++cursor.stage;  // multiply is always there
  const Stage stage = all_stages[cursor.stage];
  const Grid grid = grid_of(plan, stage, piece);

  // A grid is walked in rectangles of at most max_columns x max_rows workgroups, and those in strips of what `work` allows:
  // whole rows where one row is worth less than that, else parts of one row. A grid of one rectangle is taken whole for as many
  // layers at once as `work` allows.
  const bool packs_items = stage == Stage::multiply && kernels::packs_items(plan.kernel);
  const std::int64_t max_columns = packs_items ? grid.x : grid.max_columns, max_rows = packs_items ? grid.y : grid.max_rows;
  const std::int64_t left = cursor.group_x / max_columns * max_columns, top = cursor.group_y / max_rows * max_rows;
  const std::int64_t right = std::min(grid.x, left + max_columns), bottom = std::min(grid.y, top + max_rows);
  const std::int64_t layers_left = grid.layers - cursor.item;
  const bool grid_begins = cursor.group_x == 0 && cursor.group_y == 0;
  const std::int64_t max_layers =
      std::min({layers_left, plan.slice_items, packs_items ? layers_left : plan.slice_groups / (grid.x * grid.y)});
  const bool whole_grid = packs_items || (grid_begins && grid.x == right && grid.y == bottom && max_layers > 0);
  const double all_groups = static_cast<double>(whole_grid ? grid.x * grid.y * max_layers : (right - left) * (bottom - top));
  const auto groups = static_cast<std::int64_t>(std::clamp(work / grid.group_work, 1.0, all_groups));
  std::int64_t columns = right - cursor.group_x, rows = 1, layers = 1;
  if (packs_items || (whole_grid && groups >= grid.x * grid.y)) {
    columns = grid.x;
    rows = grid.y;
    layers = std::max<std::int64_t>(1, groups / (grid.x * grid.y));
  } else if (cursor.group_x != left || groups < columns) {
    columns = std::min(columns, groups);
  } else {
    rows = std::min(bottom - cursor.group_y, groups / columns);
  }

  const bool stage_begins = grid_begins && cursor.item == 0;
  const bool first_piece = cursor.batch0 == 0 && cursor.m0 == 0 && cursor.n0 == 0 && cursor.k0 == 0;
  // Items that share no window are the executor's to find; their windows are those of the first.
  const std::int64_t window_item = problem.items ? 0 : cursor.batch0;
  Piece extent_of = piece;
  if (problem.items) extent_of.batch = plan.items_in_buffer ? std::min<std::int64_t>(problem.batch, 2) : 1;
  Step& step = slice.storage[0];
  step.stage = stage;
  if (packs_items) {
    const std::int64_t size = workgroup(plan.kernel)[0];
    step.groups = {ceil_div(layers * columns * rows, size), 1, 1};
  } else {
    step.groups = {columns, rows, layers};
  }
  step.x0 = cursor.group_x * grid.columns;
  step.y0 = cursor.group_y * grid.rows;
  step.z0 = cursor.item;
  step.m = piece.m;
  step.n = piece.n;
  step.k = piece.k;
  step.padded_k = padded(plan.kernel, piece.k);
  step.items = layers;
  step.piece_items = piece.batch;
  step.first_item = cursor.batch0;
  if (stage == Stage::pack_a || (stage == Stage::multiply && !plan.packs(Role::a)))
    step.a = window(problem, Role::a, cursor.m0, cursor.k0, window_item, extent_of);
  if (stage == Stage::pack_b || (stage == Stage::multiply && !plan.packs(Role::b)))
    step.b = window(problem, Role::b, cursor.k0, cursor.n0, window_item, extent_of);
  if (stage == Stage::reduce || (stage == Stage::multiply && plan.parts == 1)) {
    step.c = window(problem, Role::c, cursor.m0, cursor.n0, window_item, extent_of);
    if (problem.residual) step.d = window(problem, Role::d, cursor.m0, cursor.n0, window_item, extent_of);
    const std::int64_t bias_bytes = element_bytes(problem.c_type);
    if (problem.bias == Bias::for_each_row) step.bias = {cursor.m0 * bias_bytes, piece.m * bias_bytes};
    if (problem.bias == Bias::for_each_column) step.bias = {cursor.n0 * bias_bytes, piece.n * bias_bytes};
  }
  step.first_k = stage == Stage::reduce || cursor.k0 == 0;
  step.last_k = last_k;
  // The workspace is the same memory for every piece, C is not. A's and B's panels are apart.
  step.barrier_before =
      stage_begins && (plan.workspace_bytes > 0 ? stage != Stage::pack_b || !has(Stage::pack_a) : cursor.k0 > 0 || first_piece);
  slice.count = 1;
  slice.work = static_cast<double>(columns * rows * layers) * grid.group_work;

  cursor.group_x += columns;
  if (cursor.group_x < right) return slice;
  cursor.group_x = left;
  cursor.group_y += rows;
  if (cursor.group_y < bottom) return slice;
  cursor.group_x = right;
  cursor.group_y = top;
  if (right < grid.x) return slice;
  cursor.group_x = 0;
  cursor.group_y = bottom;
  if (bottom < grid.y) return slice;
  cursor.group_y = 0;
  cursor.item += layers;
  if (cursor.item < grid.layers) return slice;
  cursor.item = 0;
  for (++cursor.stage; cursor.stage < static_cast<int>(std::size(all_stages)); ++cursor.stage)
    if (has(all_stages[cursor.stage])) return slice;
  cursor.stage = 0;
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
  PlanSize result;
  result.pieces = product_of({ceil_div(problem.m, plan.piece_m), ceil_div(problem.n, plan.piece_n),
                              ceil_div(problem.batch, plan.piece_batch), problem.k == 0 ? 1 : ceil_div(problem.k, plan.piece_k)});
  /// Pieces of one size along one axis, and how many of them there are: the first, the last, and those between.
  struct Kind {
    std::int64_t size, count;
    bool first, last;
  };
  const auto kinds = [](std::int64_t all, std::int64_t piece) {
    const std::int64_t pieces = all == 0 ? 1 : ceil_div(all, piece);
    std::vector<Kind> found{{std::min(all, piece), 1, true, pieces == 1}};
    if (pieces > 2) found.push_back({piece, pieces - 2, false, false});
    if (pieces > 1) found.push_back({all - (pieces - 1) * piece, 1, false, true});
    return found;
  };
  for (const Kind& m : kinds(problem.m, plan.piece_m))
    for (const Kind& n : kinds(problem.n, plan.piece_n))
      for (const Kind& batch : kinds(problem.batch, plan.piece_batch))
        for (const Kind& k : kinds(problem.k, plan.piece_k))
          for (const Stage stage : all_stages) {
            if (!has_stage(plan, stage, m.first, n.first, k.last)) continue;
            const Grid grid = grid_of(plan, stage, {m.size, n.size, k.size, batch.size});
            const std::int64_t rectangles = ceil_div(grid.x, grid.max_columns) * ceil_div(grid.y, grid.max_rows);
            std::int64_t dispatches = product_of({rectangles, grid.layers});
            if (stage == Stage::multiply && kernels::packs_items(plan.kernel))
              dispatches = ceil_div(grid.layers, plan.slice_items);
            else if (rectangles == 1)
              dispatches = ceil_div(grid.layers,
                                    std::max<std::int64_t>(1, std::min(plan.slice_items, plan.slice_groups / (grid.x * grid.y))));
            result.work[static_cast<std::size_t>(stage)] +=
                static_cast<double>(product_of({m.count, n.count, batch.count, k.count})) *
                static_cast<double>(product_of({grid.x, grid.y, grid.layers})) * grid.group_work;
            const std::int64_t more = product_of({m.count, n.count, batch.count, k.count, dispatches});
            result.dispatches += std::min(more, int64_max - result.dispatches);
          }
  result.slices = result.dispatches;
  return result;
}

}  // namespace glgemm
