// From the plan of a convolution to its steps, one after the other.
#include <algorithm>
#include <optional>

#include "base/rounding.hpp"
#include "kernels/kernels.hpp"
#include "plan/convolution.hpp"
#include "plan/depthwise.hpp"
#include "plan/grid.hpp"

namespace glgemm {
namespace {

/// A part of a line of things that are counted.
struct Range {
  std::int64_t begin, end;
  bool is_empty() const { return begin >= end; }
};
/// What of `count` things from `begin` on is among the first `all`.
Range inside(std::int64_t begin, std::int64_t count, std::int64_t all) {
  return {std::clamp<std::int64_t>(begin, 0, all), std::clamp<std::int64_t>(begin + count, 0, all)};
}

/// The most rows, and layers of all rows, of a grid that a dispatch may have.
void limit(Grid& grid, const LargestDispatch& largest) {
  grid.max_columns = std::min({grid.x, largest.groups[0], largest.groups_product});
  grid.max_rows = std::min({grid.y, largest.groups[1], largest.groups_product / grid.max_columns});
  grid.max_layers = std::min(largest.groups[2], largest.groups_product / (grid.x * grid.y));
}

Grid copy_grid(const ConvolutionPlan& plan, const CopyWork& copy) {
  Grid grid;
  grid.columns = workgroup(plan.program->kernel)[0] * kernels::border_vectors;
  grid.x = ceil_div(copy.to_line, grid.columns);
  grid.y = copy.to_lines;
  grid.layers = copy.to_planes * copy.to_volumes;
  grid.group_work = static_cast<double>(grid.columns * 16 / element_bytes(plan.problem.input_type));
  limit(grid, plan.largest_dispatch);
  // So many whole volumes, or lines, lie in a binding. Layers may begin at any plane of a volume.
  const std::int64_t units = plan.window_bytes / copy.unit_bytes, volumes = units / std::max<std::int64_t>(1, copy.volume),
                     lines = std::max<std::int64_t>(1, units / std::max<std::int64_t>(1, copy.line) - 1);
  if (volumes > 0)
    grid.max_layers = std::min(grid.max_layers, (volumes - 1) * copy.to_planes + 1);
  else if (std::min(copy.to_lines, copy.lines) <= lines)
    grid.max_layers = std::min<std::int64_t>(grid.max_layers, 1);
  else
    grid.max_rows = std::min(grid.max_rows, lines), grid.max_layers = 0;
  return grid;
}

/// What a step of the copy reads of the input, whose piece begins at image `place.image`.
Window read_window(const ConvolutionPlan& plan, const CopyWork& copy, const ConvolutionPlace& place, const Step& step) {
  const std::int64_t planes = copy.to_planes, last = step.z0 + step.groups[2] - 1, volume = step.z0 / planes,
                     volumes = last / planes - volume + 1;
  const Range of_planes = volumes > 1 ? inside(copy.first_plane, planes, copy.planes)
                                      : inside(copy.first_plane + step.z0 % planes, step.groups[2], copy.planes),
              of_lines = inside(copy.first_line + step.y0, step.groups[1], copy.lines),
              of_units = inside(copy.first_unit, copy.to_line * 16 / copy.unit_bytes, copy.length);
  if (of_planes.is_empty() || of_lines.is_empty() || of_units.is_empty()) return {};
  const std::int64_t begin = volume * copy.volume + of_planes.begin * copy.plane + of_lines.begin * copy.line + of_units.begin,
                     end = (volume + volumes - 1) * copy.volume + (of_planes.end - 1) * copy.plane +
                           (of_lines.end - 1) * copy.line + of_units.end;
  const TensorSteps in = steps_of(plan.problem.input_layout, plan.problem.input, plan.problem.input_channels);
  return {place.image * in.image * element_bytes(plan.problem.input_type) + begin * copy.unit_bytes,
          (end - begin) * copy.unit_bytes};
}

/// The next step of a grid; the cursor moves past it. `at_end`: it was the last one.
struct Next {
  Step step;
  bool at_end;
};
Next next_of(const Grid& grid, Stage stage, Cursor& cursor, double work) {
  Next result{};
  const Slice slice = slice_at(grid, cursor, false, work);
  result.step.stage = stage;
  cover(result.step, grid, cursor, slice);
  result.step.barrier_before = is_at_begin(cursor);
  result.at_end = !advance(cursor, grid, slice);
  return result;
}

/// The grid of a depthwise convolution of so many images.
Grid depthwise_grid(const ConvolutionPlan& plan, const DepthwiseWork& work, std::int64_t images) {
  const Kernel& kernel = plan.program->kernel;
  const ConvolutionProblem& problem = work.problem;
  Grid grid;
  grid.columns = workgroup(kernel)[0];
  grid.x = ceil_div(work.channels * work.runs, grid.columns);
  grid.y = ceil_div(problem.output[1], plan.strip_rows);
  grid.layers = images * problem.output[0];
  grid.group_work = static_cast<double>(grid.columns * work.vector * parameter(kernel, "run")) *
                    static_cast<double>(plan.strip_rows * volume(problem.filter));
  limit(grid, plan.largest_dispatch);
  return grid;
}

Step next_depthwise(const ConvolutionPlan& plan, ConvolutionCursor& cursor, double work) {
  const DepthwiseWork depthwise = depthwise_work(plan.problem, *plan.program);
  const ConvolutionProblem& problem = depthwise.problem;
  const std::int64_t images = images_at(plan, cursor.place), image = cursor.place.image;
  auto [step, at_end] = next_of(depthwise_grid(plan, depthwise, images), Stage::depthwise, cursor.at, work);
  step.barrier_before = step.barrier_before && image == 0;
  step.first_item = image;
  step.piece_items = images;
  const std::int64_t of_a = depthwise.input.image * depthwise.vector * element_bytes(problem.input_type),
                     of_c = depthwise.output.image * element_bytes(problem.output_type);
  step.a = {image * of_a, images * of_a};
  step.b = {0, volume(problem.filter) * problem.output_channels * element_bytes(problem.filters.type)};
  step.c = {image * of_c, images * of_c};
  if (problem.residual) step.d = step.c;
  if (problem.bias) step.bias = {0, problem.output_channels * element_bytes(problem.output_type)};
  if (at_end) cursor.place.image += plan.piece_images;
  return step;
}

Step next_copy(const ConvolutionPlan& plan, ConvolutionCursor& cursor, double work) {
  const CopyWork copy = copy_work(plan, cursor.place);
  auto [step, at_end] = next_of(copy_grid(plan, copy), Stage::copy, cursor.at, work);
  step.a = read_window(plan, copy, cursor.place, step);
  step.c = {plan.border_offset_bytes, copy.to_volumes * copy.to_volume * 16};
  step.first_item = cursor.place.image;
  step.piece_items = images_at(plan, cursor.place);
  cursor.copied = at_end;
  return step;
}

/// The shape of the piece at a place.
std::size_t shape_at(const ConvolutionPlan& plan, const ConvolutionPlace& place) {
  const std::int64_t rows = std::min(plan.piece_rows, plan.problem.output[plan.axis] - place.row);
  return static_cast<std::size_t>(
      std::find_if(plan.shapes.begin(), plan.shapes.end(),
                   [&](const auto& each) { return each.images == images_at(plan, place) && each.rows == rows; }) -
      plan.shapes.begin());
}

/// Moves on to the next product: of the phases, the groups, the rows and the images.
void advance_product(const ConvolutionPlan& plan, ConvolutionCursor& cursor) {
  ConvolutionPlace& place = cursor.place;
  cursor.at = {};
  if (++place.product < plan.shapes[place.shape].products.size()) return;
  place.product = 0;
  if (++place.group < plan.problem.groups) return;
  place.group = 0;
  cursor.copied = false;
  place.row += plan.piece_rows;
  if (place.row < plan.problem.output[plan.axis]) return;
  place.row = 0;
  place.image += plan.piece_images;
}

bool is_at_end(const ConvolutionPlan& plan, const ConvolutionPlace& place) {
  return (!plan.depthwise && plan.pieces == 0) || place.image >= plan.problem.batch;
}

}  // namespace

std::int64_t images_at(const ConvolutionPlan& plan, const ConvolutionPlace& place) {
  return std::min(plan.piece_images, plan.problem.batch - place.image);
}

CopyWork copy_work(const ConvolutionPlan& plan, const ConvolutionPlace& place) {
  const ConvolutionProblem& problem = plan.problem;
  const BorderedCopy& border = plan.shapes[place.shape].border;
  const bool last = problem.input_layout == TensorLayout::nhwc;
  const TensorSteps in = steps_of(problem.input_layout, problem.input, problem.input_channels);
  const std::int64_t bytes = element_bytes(problem.input_type), per_vector = 16 / bytes;
  // Elements of more than four bytes are several words, and vectors are several elements.
  const std::int64_t unit = plan.program->vector_reads != VectorReads::none ? 16 : std::min<std::int64_t>(bytes, 4);
  const auto units = [&](std::int64_t elements) { return elements * bytes / unit; };
  Three first = border.first;
  first[plan.axis] += input_row(plan, place.row);
  return {.unit_bytes = unit,
          .line = units(in.step[1]),
          .plane = units(in.step[0]),
          .volume = units(last ? in.image : in.channel),
          .length = units(problem.input[2] * in.step[2]),
          .lines = problem.input[1],
          .planes = problem.input[0],
          .first_unit = units(first[2] * in.step[2]),
          .first_line = first[1],
          .first_plane = first[0],
          .to_lines = border.size[1],
          .to_planes = border.size[0],
          .to_volumes = images_at(plan, place) * (last ? 1 : problem.input_channels),
          .to_line = border.step[1] / per_vector,
          .to_plane = border.step[0] / per_vector,
          .to_volume = (last ? border.image : border.channel) / per_vector};
}

std::optional<ConvolutionStep> next_slice(const ConvolutionPlan& plan, ConvolutionCursor& cursor, double work) {
  for (;;) {
    if (is_at_end(plan, cursor.place)) return {};
    if (plan.depthwise) {
      const ConvolutionPlace place = cursor.place;
      return ConvolutionStep{place, next_depthwise(plan, cursor, work)};
    }
    cursor.place.shape = shape_at(plan, cursor.place);
    const ConvolutionPlace place = cursor.place;
    if (!cursor.copied && plan.program) return ConvolutionStep{place, next_copy(plan, cursor, work)};
    if (const std::optional<Step> step = next_slice(plan.shapes[place.shape].products[place.product], cursor.at, work))
      return ConvolutionStep{place, *step};
    advance_product(plan, cursor);
  }
}

std::array<double, stage_count> work_of(const ConvolutionPlan& plan) {
  std::array<double, stage_count> result{};
  const auto of = [&](Stage stage) -> double& { return result[static_cast<std::size_t>(stage)]; };
  if (plan.depthwise) {
    of(Stage::depthwise) = work_of(depthwise_grid(plan, depthwise_work(plan.problem, *plan.program), plan.problem.batch));
    return result;
  }
  for (const ConvolutionPlan::Shape& shape : plan.shapes) {
    const auto pieces = static_cast<double>(pieces_of(plan, shape));
    for (const Plan& product : shape.products) {
      const PlanSize product_size = size(product);
      for (std::size_t i = 0; i < stage_count; ++i)
        result[i] += pieces * static_cast<double>(plan.problem.groups) * product_size.work[i];
    }
    const ConvolutionPlace place{.image = shape.images == plan.piece_images ? 0 : plan.problem.batch - shape.images,
                                 .shape = static_cast<std::size_t>(&shape - plan.shapes.data())};
    if (plan.program) of(Stage::copy) += pieces * work_of(copy_grid(plan, copy_work(plan, place)));
  }
  return result;
}

}  // namespace glgemm
