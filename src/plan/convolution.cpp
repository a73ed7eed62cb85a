// Plans of convolutions: pieces, the copy with a border, and products.
#include "plan/convolution.hpp"
#include "plan/depthwise.hpp"

#include <algorithm>
#include <limits>

#include <glgemm/error.hpp>

#include "base/rounding.hpp"
#include "kernels/kernels.hpp"

namespace glgemm {
namespace {

/// An element of a filter that outputs of a phase read, and the input's element that it meets at the phase's first output.
struct Tap {
  std::int64_t place, meets;
};

/// Along one dimension: the outputs first, first + step, ... that share their taps. From one output to the next, what a tap meets
/// moves by `moves` elements of the input.
struct Phase {
  std::int64_t first, step, count, moves;
  std::vector<Tap> taps;
};

/// The phases of the first `outputs` outputs along a dimension.
std::vector<Phase> phases_of(const ConvolutionProblem& problem, std::size_t d, std::int64_t outputs) {
  const std::int64_t stride = problem.stride[d], count = problem.transposed ? std::min(stride, outputs) : 1;
  std::vector<Phase> phases;
  for (std::int64_t first = 0; first < count; ++first) {
    const std::int64_t step = problem.transposed ? stride : 1;
    Phase phase{first, step, ceil_div(outputs - first, step), problem.transposed ? 1 : stride, {}};
    for (std::int64_t place = 0; place < problem.filter[d] && problem.multiplies; ++place) {
      if (!problem.transposed) {
        phase.taps.push_back({place, first * stride + place * problem.dilation[d] - problem.before[d]});
        continue;
      }
      const std::int64_t distance = first + problem.before[d] - place * problem.dilation[d];
      if (distance % stride == 0) phase.taps.push_back({place, distance / stride});
    }
    phases.push_back(std::move(phase));
  }
  return phases;
}

using Phases = std::array<std::vector<Phase>, 3>;

/// Those of the first `rows` rows of output.
Phases phases_of(const ConvolutionPlan& plan, std::int64_t rows) {
  Phases result;
  for (std::size_t d = 0; d < 3; ++d) result[d] = phases_of(plan.problem, d, d == plan.axis ? rows : plan.problem.output[d]);
  return result;
}

Reach reach_of(const Phases& phases) {
  Reach result;
  for (std::size_t d = 0; d < 3; ++d) {
    std::int64_t least = std::numeric_limits<std::int64_t>::max(), most = std::numeric_limits<std::int64_t>::min();
    for (const Phase& phase : phases[d])
      for (const Tap& tap : phase.taps) {
        least = std::min(least, tap.meets);
        most = std::max(most, tap.meets + (phase.count - 1) * phase.moves);
      }
    if (least <= most) result.first[d] = least, result.last[d] = most;
  }
  return result;
}

/// The most elements over which tables can reach: a binding begins at an aligned offset, and shaders count its bytes with an int.
std::int64_t most_elements(Type type, const Limits& limits) {
  const std::int64_t bytes = std::min<std::int64_t>(std::numeric_limits<std::int32_t>::max(), limits.storage_block_bytes) -
                             std::max<std::int64_t>(limits.storage_offset_alignment, 16);
  return std::max<std::int64_t>(0, bytes / 4 * 4) / element_bytes(type);
}

/// Whether pixels and channels lie in equal steps, so that the plan of a product cuts what is too large.
bool is_plain(const ConvolutionProblem& problem) {
  return problem.filter == ConvolutionProblem::ones && problem.stride == ConvolutionProblem::ones && problem.before == Three{} &&
         problem.input == problem.output;
}

/// Whether the input is copied: a tap leaves the image, or tables would have to reach over more than a binding holds.
bool needs_copy(const ConvolutionPlan& plan, const Limits& limits) {
  const ConvolutionProblem& problem = plan.problem;
  if (problem.input_channels == 0) return false;
  const Reach reach = reach_of(phases_of(plan, problem.output[plan.axis]));
  bool leaves = false;
  for (std::size_t d = 0; d < 3; ++d) {
    if (reach.first[d] > reach.last[d]) return false;  // no tap meets anything
    leaves = leaves || reach.first[d] < 0 || reach.last[d] >= problem.input[d];
  }
  return leaves || (!is_plain(problem) && saturating_product({volume(problem.input), problem.input_channels}) >
                                              most_elements(problem.input_type, limits));
}

/// The equal steps in which offsets go on, or -1.
std::int64_t step_of(const std::vector<std::int64_t>& offsets) {
  const std::int64_t step = offsets.size() > 1 ? offsets[1] - offsets[0] : 0;
  for (std::size_t i = 1; i < offsets.size(); ++i)
    if (step < 0 || offsets[i] - offsets[i - 1] != step) return -1;
  return step;
}

/// Sets how the elements of a matrix lie whose rows and columns go on in these steps; -1: in none.
void set_lying(PlacedMatrix& matrix, std::int64_t row_step, std::int64_t column_step) {
  const std::int64_t rows = matrix.row_count, columns = matrix.column_count;
  Operand& operand = matrix.operand;
  if (rows == 0 || columns == 0) return;
  // One row, or column, has no step of its own.
  const std::int64_t row = rows == 1 ? columns : row_step, column = columns == 1 ? 1 : column_step;
  if (column == 1 && row >= columns) {
    operand.ld = row;
  } else if (row_step == 1 && column >= rows) {
    operand.layout = Layout::column_major;
    operand.ld = column;
  } else {
    operand.layout = row_step < column_step ? Layout::column_major : Layout::row_major;
    operand.addressing = row_step >= 0 && column_step >= 0 ? Addressing::strided : Addressing::indexed;
    if (operand.addressing == Addressing::strided) operand.row_stride = row_step, operand.column_stride = column_step;
  }
}

/// The matrix of elements in equal steps.
PlacedMatrix in_steps(std::int64_t rows, std::int64_t columns, std::int64_t row_step, std::int64_t column_step) {
  PlacedMatrix result{.row_count = rows, .column_count = columns};
  set_lying(result, row_step, column_step);
  return result;
}

PlacedMatrix placed(const std::vector<std::int64_t>& rows, const std::vector<std::int64_t>& columns) {
  PlacedMatrix result{.row_count = std::ssize(rows), .column_count = std::ssize(columns)};
  set_lying(result, step_of(rows), step_of(columns));
  Operand& operand = result.operand;
  for (const auto& [offsets, table] : {std::pair{&rows, &result.rows}, {&columns, &result.columns}}) {
    if (offsets->empty()) continue;
    const std::int64_t least = *std::min_element(offsets->begin(), offsets->end());
    result.first += least;
    if (operand.addressing != Addressing::indexed) continue;
    for (const std::int64_t offset : *offsets) table->push_back(static_cast<std::int32_t>(offset - least));
    operand.largest_offset += *std::max_element(table->begin(), table->end());
  }
  return result;
}

/// Every combination of one element of each of three lists, the last list's running fastest.
template <class List, class Work>
void combine(const std::array<List, 3>& lists, const Work& work) {
  for (const auto& x : lists[0])
    for (const auto& y : lists[1])
      for (const auto& z : lists[2]) work(std::array{&x, &y, &z});
}

/// Whether the input's channels run faster along k than the filter's elements: as the filters have them.
bool channels_run_fastest(const ConvolutionProblem& problem) {
  return problem.transposed ? problem.input_layout == TensorLayout::nhwc : problem.filter_layout != FilterLayout::oihw;
}

/// Whether all images are rows of one product. Of NCHW each is an item of a batch, so that pixels lie in equal steps.
bool joins_images(const ConvolutionProblem& problem) {
  return problem.input_layout == TensorLayout::nhwc && problem.output_layout == TensorLayout::nhwc;
}

/// The rows of a product's matrices: the input's first element under the filter, and the output's element, for each pixel.
void place_pixels(const std::array<const Phase*, 3>& phase, const TensorSteps& in, const TensorSteps& out, std::int64_t images,
                  std::vector<std::int64_t>& of_input, std::vector<std::int64_t>& of_output) {
  for (std::int64_t image = 0; image < images; ++image)
    for (std::int64_t x = 0; x < phase[0]->count; ++x)
      for (std::int64_t y = 0; y < phase[1]->count; ++y)
        for (std::int64_t z = 0; z < phase[2]->count; ++z) {
          const Three q{x, y, z};
          std::int64_t from = image * in.image, to = image * out.image;
          for (std::size_t d = 0; d < 3; ++d) {
            from += q[d] * phase[d]->moves * in.step[d];
            to += (phase[d]->first + q[d] * phase[d]->step) * out.step[d];
          }
          of_input.push_back(from);
          of_output.push_back(to);
        }
}

/// Where an element of a transposed convolution's filters lies, of the first group.
std::int64_t place_of_weight(const ConvolutionProblem& problem, std::int64_t tap, std::int64_t input_channel,
                             std::int64_t output_channel) {
  const std::int64_t taps = volume(problem.filter), outputs = problem.output_channels / problem.groups;
  if (problem.filter_layout == FilterLayout::oihw) return (input_channel * outputs + output_channel) * taps + tap;
  if (problem.filter_layout == FilterLayout::ohwi) return (input_channel * taps + tap) * outputs + output_channel;
  return (tap * outputs + output_channel) * problem.input_channels + input_channel;
}

/// The columns of the input's matrix, and a transposed convolution's filters.
void place_taps(const ConvolutionProblem& problem, const std::array<const Phase*, 3>& phase, const TensorSteps& in,
                const Three& from, std::vector<std::int64_t>& of_input, std::vector<std::int64_t>& of_filters) {
  const std::int64_t channels = problem.input_channels / problem.groups;
  const auto add = [&](const std::array<const Tap*, 3>& tap, std::int64_t channel) {
    std::int64_t at = channel * in.channel;
    for (std::size_t d = 0; d < 3; ++d) at += (tap[d]->meets - from[d]) * in.step[d];
    of_input.push_back(at);
    const std::int64_t number = (tap[0]->place * problem.filter[1] + tap[1]->place) * problem.filter[2] + tap[2]->place;
    of_filters.push_back(place_of_weight(problem, number, channel, 0));
  };
  const std::array lists{phase[0]->taps, phase[1]->taps, phase[2]->taps};
  if (channels_run_fastest(problem))
    combine(lists, [&](const auto& tap) {
      for (std::int64_t channel = 0; channel < channels; ++channel) add(tap, channel);
    });
  else
    for (std::int64_t channel = 0; channel < channels; ++channel) combine(lists, [&](const auto& tap) { add(tap, channel); });
}

/// The filters of a convolution that is not transposed, of the first group, as they are stored.
PlacedMatrix filter_matrix(const ConvolutionProblem& problem, std::int64_t k) {
  const std::int64_t outputs = problem.output_channels / problem.groups;
  PlacedMatrix result;
  if (problem.filter_layout == FilterLayout::hwio) {
    result = {.row_count = k, .column_count = outputs};
    result.operand.ld = problem.output_channels;
  } else {
    result = {.row_count = outputs, .column_count = k};
    result.operand.ld = filters_of_group(problem) / outputs;
    result.operand.op = Op::transpose;
  }
  return result;
}

ConvolutionProduct product_of(const ConvolutionProblem& problem, const std::array<const Phase*, 3>& phase,
                              const BorderedCopy& border, std::int64_t images) {
  const bool copied = border.size_bytes > 0, joined = joins_images(problem);
  const TensorSteps in = copied ? TensorSteps{border.step, border.channel, border.image}
                                : steps_of(problem.input_layout, problem.input, problem.input_channels);
  const TensorSteps out = steps_of(problem.output_layout, problem.output, problem.output_channels);
  std::vector<std::int64_t> pixels, results, taps, weights, filters, outputs;
  place_taps(problem, phase, in, copied ? border.first : Three{}, taps, weights);
  for (std::int64_t o = 0; o < problem.output_channels / problem.groups; ++o) {
    filters.push_back(place_of_weight(problem, 0, 0, o));
    outputs.push_back(o * out.channel);
  }
  const std::int64_t rows = joined ? images : 1;
  ConvolutionProduct result{.m = rows * phase[0]->count * phase[1]->count * phase[2]->count,
                            .n = std::ssize(outputs),
                            .k = std::ssize(taps),
                            .images = joined ? 1 : images};
  if (is_plain(problem)) {  // pixel after pixel: no tables, which could be very long
    result.input = in_steps(result.m, result.k, in.step[2], in.channel);
    result.output = in_steps(result.m, result.n, out.step[2], out.channel);
  } else {
    place_pixels(phase, in, out, rows, pixels, results);
    result.input = placed(pixels, taps);
    result.output = placed(results, outputs);
  }
  result.filters = problem.transposed ? placed(weights, filters) : filter_matrix(problem, result.k);
  result.input.operand.format = {problem.input_type};
  result.filters.operand.format = problem.filters;
  result.output.operand.format = {problem.output_type};
  if (result.images > 1) result.input.operand.batch_stride = in.image, result.output.operand.batch_stride = out.image;
  return result;
}

}  // namespace

BorderedCopy copy_of(const ConvolutionProblem& problem, const Reach& reach, std::int64_t images) {
  const auto& [first, last] = reach;
  BorderedCopy result{.first = first};
  const std::int64_t per_vector = 16 / element_bytes(problem.input_type);
  // A line that begins at a multiple of 16 bytes can be read so much at a time.
  if (problem.input_layout == TensorLayout::nchw && problem.input[2] % per_vector == 0)
    result.first[2] = first[2] >= 0 ? first[2] / per_vector * per_vector : -round_up(-first[2], per_vector);
  for (std::size_t d = 0; d < 3; ++d) result.size[d] = last[d] - result.first[d] + 1;
  const std::int64_t channels = problem.input_channels, bytes = element_bytes(problem.input_type);
  const bool inside = problem.input_layout == TensorLayout::nhwc;  // channels lie inside a line
  const std::int64_t line = round_up(result.size[2] * (inside ? channels : 1) * bytes, 16) / bytes;
  result.step = {line * result.size[1], line, inside ? channels : 1};
  const std::int64_t planes = result.size[0] * result.step[0];
  result.channel = inside ? 1 : planes;
  result.image = inside ? planes : planes * channels;
  result.size_bytes = saturating_product({result.size[0], result.size[1], line, inside ? 1 : channels, images, bytes});
  return result;
}

TensorSteps steps_of(TensorLayout layout, const Three& size, std::int64_t channels) {
  const std::int64_t pixel = layout == TensorLayout::nhwc ? channels : 1;
  const Three step{size[1] * size[2] * pixel, size[2] * pixel, pixel};
  return {step, layout == TensorLayout::nhwc ? 1 : volume(size), volume(size) * channels};
}

std::int64_t PlacedMatrix::offset(std::int64_t i, std::int64_t j) const {
  if (operand.addressing == Addressing::strided) return i * operand.row_stride + j * operand.column_stride;
  if (operand.addressing == Addressing::lines)
    return operand.layout == Layout::row_major ? i * operand.ld + j : i + j * operand.ld;
  return std::int64_t{rows[static_cast<std::size_t>(i)]} + columns[static_cast<std::size_t>(j)];
}

std::int64_t filters_of_group(const ConvolutionProblem& problem) {
  const std::int64_t inputs = problem.input_channels / problem.groups, outputs = problem.output_channels / problem.groups,
                     taps = volume(problem.filter);
  if (problem.filter_layout == FilterLayout::hwio) return problem.transposed ? inputs : outputs;
  if (problem.transposed) return inputs * taps * outputs;
  return outputs * round_up(taps * inputs, block_codes(problem.filters.quantization));
}

std::int64_t input_row(const ConvolutionPlan& plan, std::int64_t row) {
  const std::int64_t stride = plan.problem.stride[plan.axis];
  return plan.problem.transposed ? row / stride : row * stride;
}

ConvolutionPiece piece_of(const ConvolutionPlan& plan, std::int64_t images, std::int64_t rows) {
  const Phases phases = phases_of(plan, rows);
  ConvolutionPiece piece;
  if (plan.program) piece.border = copy_of(plan.problem, reach_of(phases), images);
  combine(phases, [&](const std::array<const Phase*, 3>& phase) {
    piece.products.push_back(product_of(plan.problem, phase, piece.border, images));
  });
  return piece;
}

std::int64_t pieces_of(const ConvolutionPlan& plan, const ConvolutionPlan::Shape& shape) {
  const auto count = [](std::int64_t all, std::int64_t of_piece, std::int64_t size) {
    return size == of_piece ? all / of_piece : 1;
  };
  return count(plan.problem.batch, plan.piece_images, shape.images) *
         count(plan.problem.output[plan.axis], plan.piece_rows, shape.rows);
}

PlanOptions options_of_products(const ConvolutionPlan& plan, PlanOptions options) {
  const std::int64_t copied = plan.border().size_bytes, left = options.workspace_bytes - copied;
  if (copied > 0) options.workspace_bytes = left / kernels::workspace_alignment * kernels::workspace_alignment;
  return options;
}

const BorderedCopy& ConvolutionPlan::border() const noexcept {
  static const BorderedCopy none;
  return shapes.empty() ? none : shapes.front().border;
}

const std::vector<Plan>& ConvolutionPlan::products() const noexcept {
  static const std::vector<Plan> none;
  return shapes.empty() ? none : shapes.front().products;
}

Problem problem_of(const ConvolutionPlan& plan, const ConvolutionPiece& piece, const ConvolutionProduct& product) {
  const ConvolutionProblem& problem = plan.problem;
  Problem result{.m = product.m, .n = product.n, .k = product.k, .batch = product.images};
  result.a = product.input.operand;
  result.b = product.filters.operand;
  result.c = product.output.operand;
  // Kernels may read 16 bytes at a time if every piece and group begins at a multiple of that.
  const auto is_aligned = [](std::int64_t elements, Type type) { return elements * element_bytes(type) % 16 == 0; };
  const TensorSteps in = steps_of(problem.input_layout, problem.input, problem.input_channels);
  const std::int64_t of_group = problem.groups > 1 ? problem.input_channels / problem.groups * in.channel : 0;
  const std::int64_t of_rows =
      plan.piece_rows < problem.output[plan.axis] ? input_row(plan, plan.piece_rows) * in.step[plan.axis] : 0;
  result.a.aligned = is_aligned(product.input.first, problem.input_type) && is_aligned(of_group, problem.input_type) &&
                     (piece.border.size_bytes > 0 || (problem.input_aligned && is_aligned(in.image, problem.input_type) &&
                                                      is_aligned(of_rows, problem.input_type)));
  result.b.aligned = problem.filters_aligned && is_aligned(product.filters.first, problem.filters.type) &&
                     (problem.groups == 1 || is_aligned(filters_of_group(problem), problem.filters.type));
  result.residual = problem.residual;
  if (problem.residual) result.d = result.c, result.d.format = {};
  result.bias = problem.bias ? Bias::for_each_column : Bias::none;
  result.activation = problem.activation;
  return result;
}

namespace {

/// How the copy reads the images: 16 bytes at a time where they lie so, on CPU drivers as an image.
VectorReads copy_reads(const ConvolutionPlan& plan, const Limits& limits) {
  const ConvolutionProblem& problem = plan.problem;
  const std::int64_t bytes = element_bytes(problem.input_type);
  const TensorSteps in = steps_of(problem.input_layout, problem.input, problem.input_channels);
  const std::int64_t first = copy_of(problem, reach_of(phases_of(plan, plan.piece_rows)), 1).first[2];
  // Pieces along a line begin at any of its elements.
  const bool cuts_lines = plan.axis == 2 && plan.piece_rows < problem.output[2];
  if (!problem.input_aligned || in.step[1] * bytes % 16 != 0 || (cuts_lines ? in.step[2] : first * in.step[2]) * bytes % 16 != 0)
    return VectorReads::none;
  const bool as_image = limits.cpu && saturating_product({plan.piece_images, in.image, bytes}) <= limits.image_buffer_bytes - 256;
  return as_image ? VectorReads::image : VectorReads::storage;
}

constexpr std::int64_t max_pixels = std::int64_t{1} << 22;  // of a piece: tables have an offset for each

/// @throws Unsupported  there are too many phases
void check_phases(const ConvolutionProblem& problem) {
  constexpr std::int64_t most = 4096;
  const auto& [x, y, z] = problem.stride;
  const Three& out = problem.output;
  const std::int64_t phases = saturating_product({std::min(x, out[0]), std::min(y, out[1]), std::min(z, out[2])});
  if (problem.transposed && phases > most)
    throw Unsupported(fmt::format("convolve: strides of {}x{}x{} make {} phases; {} at most", x, y, z, phases, most));
}

/// Over how many elements of output tables reach in a piece of so many pixels; nothing where they lie in equal steps.
std::int64_t reach_of_output(const ConvolutionProblem& problem, std::int64_t pixels) {
  if (!problem.transposed || problem.stride == ConvolutionProblem::ones) return 0;
  if (problem.output_layout == TensorLayout::nhwc) return saturating_product({pixels, problem.output_channels});
  return saturating_product({problem.output_channels / problem.groups, volume(problem.output)});
}

/// @throws Unsupported  always: what there is no room for
[[noreturn]] void refuse_row(const ConvolutionProblem& problem, std::int64_t pixels, std::int64_t copied, std::int64_t max_copy,
                             std::int64_t workspace, std::int64_t binding) {
  if (copied > max_copy)
    throw Unsupported(
        fmt::format("convolve: one row of output takes a copy of {} bytes of input; a workspace of {} bytes and "
                    "bindings of {} bytes have room for {}",
                    copied, workspace, binding, max_copy));
  throw Unsupported(
      fmt::format("convolve: a row of output has {} pixels, and tables reach over {} elements of it; a piece has {} "
                  "pixels at most, and bindings have {} bytes",
                  pixels, reach_of_output(problem, pixels), max_pixels, binding));
}

/// Images that a piece has, or if one image is too much, rows; `fits` says whether there is room.
template <class Fits>
void cut(ConvolutionPlan& plan, const Fits& fits) {
  const ConvolutionProblem& problem = plan.problem;
  const auto largest = [](std::int64_t most, std::int64_t step, const auto& is_small) {
    std::int64_t low = 0, high = ceil_div(most, step) + 1;  // low fits, high does not
    while (high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      (is_small(std::min(most, middle * step)) ? low : high) = middle;
    }
    return std::min(most, low * step);
  };
  const std::int64_t all_rows = problem.output[plan.axis];
  plan.piece_rows = all_rows;
  plan.piece_images = largest(problem.batch, 1, [&](std::int64_t images) { return fits(images, all_rows); });
  if (plan.piece_images > 0) return;
  plan.piece_images = 1;
  const std::int64_t step = problem.transposed ? problem.stride[plan.axis] : 1;  // so that all pieces have the same phases
  plan.piece_rows = largest(all_rows, step, [&](std::int64_t rows) { return fits(1, rows); });
}

/// Cuts the output into pieces.  @throws Unsupported  there is no room for a row
void cut(ConvolutionPlan& plan, const Limits& limits, const PlanOptions& options, bool copies) {
  const ConvolutionProblem& problem = plan.problem;
  const std::int64_t all_rows = problem.output[plan.axis], pixels_of_row = volume(problem.output) / all_rows;
  const std::int64_t max_input = most_elements(problem.input_type, limits),
                     max_output = most_elements(problem.output_type, limits);
  // A copy leaves at least half of the workspace to the products.
  const std::int64_t max_copy = std::min(options.workspace_bytes / 2, max_input * element_bytes(problem.input_type));
  const bool joins = joins_images(problem);
  const auto copied_bytes = [&](std::int64_t images, std::int64_t rows) {
    return copies ? copy_of(problem, reach_of(phases_of(plan, rows)), images).size_bytes : 0;
  };
  cut(plan, [&](std::int64_t images, std::int64_t rows) {
    if (is_plain(problem) && !problem.transposed) return true;
    const std::int64_t joined = joins ? images : 1, pixels = joined * rows * pixels_of_row;
    if (pixels > max_pixels) return false;
    if (reach_of_output(problem, pixels) > max_output) return false;
    if (copies) return copied_bytes(images, rows) <= max_copy;
    return saturating_product({joined, volume(problem.input), problem.input_channels}) <= max_input;
  });
  if (plan.piece_rows == 0)
    refuse_row(problem, pixels_of_row, copied_bytes(1, 1), max_copy, options.workspace_bytes, limits.storage_block_bytes);
  plan.pieces = ceil_div(problem.batch, plan.piece_images) * ceil_div(all_rows, plan.piece_rows);
}

/// Plans the products of a piece of each size: all images of a piece and those that are left, all rows and those that are left.
void plan_shapes(ConvolutionPlan& plan, const PlannerInputs& inputs, const PlanOptions& options) {
  std::int64_t needed = 0;
  for (const std::int64_t images : {plan.piece_images, plan.problem.batch % plan.piece_images})
    for (const std::int64_t rows : {plan.piece_rows, plan.problem.output[plan.axis] % plan.piece_rows}) {
      if (images == 0 || rows == 0) continue;
      const ConvolutionPiece piece = piece_of(plan, images, rows);
      plan.shapes.push_back({images, rows, piece.border, {}});
      for (const ConvolutionProduct& product : piece.products) {
        Plan product_plan = make_plan(problem_of(plan, piece, product), inputs, options_of_products(plan, options));
        needed = std::max(needed, product_plan.workspace.size_bytes);
        plan.shapes.back().products.push_back(std::move(product_plan));
      }
    }
  const std::int64_t copied = plan.border().size_bytes;
  plan.border_offset_bytes = copied > 0 ? kernels::workspace_aligned(needed) : 0;
  plan.workspace_bytes = copied > 0 ? plan.border_offset_bytes + copied : needed;
}

}  // namespace

ConvolutionPlan make_plan(const ConvolutionProblem& problem, const Limits& limits, const PlanOptions& options) {
  return make_plan(problem, PlannerInputs(limits, options, {.by_shaders = true}), options);
}

ConvolutionPlan make_plan(const ConvolutionProblem& problem, const PlannerInputs& inputs, const PlanOptions& options) {
  validate(problem);
  const Limits& limits = inputs.limits;
  ConvolutionPlan plan;
  plan.problem = problem;
  if (!problem.multiplies) plan.problem.filters.quantization = {};  // filters are not read
  while (plan.axis < 2 && problem.output[plan.axis] == 1) ++plan.axis;
  if (problem.batch == 0 || volume(problem.output) == 0 || problem.output_channels == 0) return plan;
  plan.largest_dispatch = {.groups = limits.groups, .groups_product = limits.groups_product};
  plan.window_bytes = window_bytes(limits);
  const auto may_have = [&](const ProgramKey& program) {
    return (!inputs.why_not || inputs.why_not(program).empty()) &&
           std::ranges::find(inputs.struck_off, program, &StruckOff::program) == inputs.struck_off.end();
  };
  const bool may_be_depthwise = problem.multiplies && !options.kernel && options.precision == Precision::standard;
  if (may_be_depthwise && why_not_depthwise(problem, limits).empty())
    if (const ProgramKey program = depthwise_program(problem, limits); may_have(program)) {
      plan_depthwise(plan, limits, program);
      return plan;
    }
  check_phases(problem);
  const bool copies = needs_copy(plan, limits);
  cut(plan, limits, options, copies);
  if (copies)
    plan.program = ProgramKey{.kernel = kernels::border(element_bytes(problem.input_type)),
                              .a = {Type::u32},
                              .b = {Type::u32},
                              .c_type = Type::u32,
                              .vector_reads = copy_reads(plan, limits),
                              .few_buffers = limits.storage_blocks < kernels::storage_buffers};
  plan_shapes(plan, inputs, options);
  return plan;
}

}  // namespace glgemm
