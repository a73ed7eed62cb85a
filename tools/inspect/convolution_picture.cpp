// Draws plans of convolutions.
#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "inspect/convolution.hpp"
#include "inspect/numbers.hpp"
#include "inspect/picture.hpp"
#include "product/convolution.hpp"
#include "product/shapes.hpp"

namespace glgemm::tools {
namespace {

using Three = ConvolutionProblem::Three;

/// Rows and columns: an image's last two dimensions, which are drawn.
struct Place {
  std::int64_t row, column;
};

/// Images of one dimension have one row, and those of three are drawn as one of their planes.
Place plane_of(const Three& values) {
  return {values[1], values[2]};
}

/// A grid of elements in a box: the element (0, 0) lies at `origin`, each is a square of `unit`.
struct Grid2 {
  Point origin;
  double unit;

  Box box(Place first, Place size) const {
    return {origin.x + unit * static_cast<double>(first.column), origin.y + unit * static_cast<double>(first.row),
            unit * static_cast<double>(size.column), unit * static_cast<double>(size.row)};
  }
  /// Lines between elements, where these are large enough to be seen.
  void draw_lines(Drawing& picture, Place first, Place size) const {
    if (unit < 5) return;
    for (std::int64_t row = 0; row <= size.row; ++row) {
      const Box line = box({first.row + row, first.column}, {0, size.column});
      picture.line({line.x, line.y}, {line.x + line.width, line.y}, "faint");
    }
    for (std::int64_t column = 0; column <= size.column; ++column) {
      const Box line = box({first.row, first.column + column}, {size.row, 0});
      picture.line({line.x, line.y}, {line.x, line.y + line.height}, "faint");
    }
  }
};

/// A grid that shows the elements first to first + size, at most so high, below `top`.
Grid2 grid_of(Place first, Place size, double top, double most_height) {
  const double unit = std::min({22.0, (panel_width - 20) / static_cast<double>(std::max<std::int64_t>(1, size.column)),
                                most_height / static_cast<double>(std::max<std::int64_t>(1, size.row))});
  return {{10 - unit * static_cast<double>(first.column), top - unit * static_cast<double>(first.row)}, unit};
}

/// The output's pixel whose filter is drawn: the first row's second, so that a border shows.
Place shown_pixel(const ConvolutionProblem& problem) {
  return {0, std::min<std::int64_t>(1, problem.output[2] - 1)};
}

/// The input's elements that the filter meets at a pixel of the output.
std::vector<Place> met_at(const ConvolutionProblem& problem, Place pixel) {
  const auto meets = [&](std::size_t d, std::int64_t at) {
    std::vector<std::int64_t> places;
    for (std::int64_t tap = 0; tap < problem.filter[d]; ++tap) {
      const std::int64_t reach = tap * problem.dilation[d];
      if (!problem.transposed)
        places.push_back(at * problem.stride[d] + reach - problem.before[d]);
      else if ((at + problem.before[d] - reach) % problem.stride[d] == 0)
        places.push_back((at + problem.before[d] - reach) / problem.stride[d]);
    }
    return places;
  };
  std::vector<Place> result;
  for (const std::int64_t row : meets(1, pixel.row))
    for (const std::int64_t column : meets(2, pixel.column)) result.push_back({row, column});
  return result;
}

/// What of the input is read: the image and the copy's border.
struct Shown2 {
  Place first, size;
};
Shown2 shown_input(const ConvolutionPlan& plan) {
  const Place image = plane_of(plan.problem.input);
  Place first{0, 0}, last = image;
  if (plan.border().size_bytes > 0) {
    const Place begin = plane_of(plan.border().first), size = plane_of(plan.border().size);
    first = {std::min<std::int64_t>(0, begin.row), std::min<std::int64_t>(0, begin.column)};
    // The copy of other pieces reaches further down.
    last = {std::max(image.row - std::min<std::int64_t>(0, begin.row), begin.row + size.row),
            std::max(image.column, begin.column + size.column)};
    if (plan.pieces == 1) last.row = std::max(image.row, begin.row + size.row);
  }
  for (const Place& place : met_at(plan.problem, shown_pixel(plan.problem))) {
    first = {std::min(first.row, place.row), std::min(first.column, place.column)};
    last = {std::max(last.row, place.row + 1), std::max(last.column, place.column + 1)};
  }
  return {first, {last.row - first.row, last.column - first.column}};
}

std::string pixel_text(Place pixel) {
  return fmt::format("({}, {})", pixel.row, pixel.column);
}

double draw_input(Drawing& picture, const PlannedConvolution& planned) {
  const ConvolutionPlan& plan = planned.plan;
  const Place image = plane_of(plan.problem.input);
  picture.text({0, 14}, "The input, and what is read of it", "title");
  const Shown2 shown = shown_input(plan);
  const Grid2 grid = grid_of(shown.first, shown.size, 28, 330);
  const bool copied = plan.border().size_bytes > 0;
  if (copied)
    picture.rectangle(grid.box(plane_of(plan.border().first), plane_of(plan.border().size)), "c3 wash",
                      "the copy of the first piece");
  picture.rectangle(grid.box({0, 0}, image), "paper");
  picture.rectangle(grid.box({0, 0}, image), "c0 wash", "the image");
  if (copied) {  // darker
    const Place begin = plane_of(plan.border().first), size = plane_of(plan.border().size);
    const Place from{std::max<std::int64_t>(0, begin.row), std::max<std::int64_t>(0, begin.column)};
    const Place to{std::min(image.row, begin.row + size.row), std::min(image.column, begin.column + size.column)};
    if (to.row > from.row && to.column > from.column)
      picture.rectangle(grid.box(from, {to.row - from.row, to.column - from.column}), "c0 wash",
                        "of the image, in the first copy");
  }
  grid.draw_lines(picture, shown.first, shown.size);
  for (const Place& place : met_at(plan.problem, shown_pixel(plan.problem)))
    picture.rectangle(grid.box(place, {1, 1}), "c5 fill", fmt::format("under the filter: {}", pixel_text(place)));
  picture.rectangle(grid.box({0, 0}, image), "frame");
  if (copied) picture.rectangle(grid.box(plane_of(plan.border().first), plane_of(plan.border().size)), "frame");
  std::vector<std::string> lines{fmt::format("an image: {} elements of {}", sizes_text(plan.problem.input, planned.convolution),
                                             counted(plan.problem.input_channels, "channel"))};
  if (copied) {
    lines.push_back(fmt::format("the first piece's copy, with zeros outside the image: {} elements, {}",
                                sizes_text(plan.border().size, planned.convolution),
                                binary_bytes_text(plan.border().size_bytes)));
  } else {
    lines.emplace_back("no copy: the image is read as it lies");
  }
  lines.push_back(fmt::format("filled: what the filter meets at pixel {} of the output", pixel_text(shown_pixel(plan.problem))));
  if (plan.problem.input[0] > 1) lines.emplace_back("One plane of the image is drawn.");
  return lines_of_text(picture, 0, 28 + grid.unit * static_cast<double>(shown.size.row) + 6, lines);
}

double draw_output(Drawing& picture, const PlannedConvolution& planned) {
  const ConvolutionPlan& plan = planned.plan;
  const ConvolutionProblem& problem = plan.problem;
  const Place image = plane_of(problem.output);
  picture.text({0, 14}, plan.depthwise ? "The output" : "The output, in pieces", "title");
  const Grid2 grid = grid_of({0, 0}, image, 28, 330);
  picture.rectangle(grid.box({0, 0}, image), "c2 wash", "the image");
  Place piece = image;
  if (plan.axis == 1 && !plan.depthwise) piece.row = plan.piece_rows;
  if (plan.axis == 2 && !plan.depthwise) piece.column = plan.piece_rows;
  picture.rectangle(grid.box({0, 0}, piece), "c2 fill", "the first piece");
  grid.draw_lines(picture, {0, 0}, image);
  if (plan.axis > 0 && !plan.depthwise && grid.unit * static_cast<double>(plan.piece_rows) >= 3)
    for (std::int64_t at = plan.piece_rows; at < problem.output[plan.axis]; at += plan.piece_rows)
      picture.rectangle(plan.axis == 1 ? grid.box({at, 0}, {0, image.column}) : grid.box({0, at}, {image.row, 0}), "frame");
  if (problem.transposed) {
    const Place phases{std::min(problem.stride[1], image.row), std::min(problem.stride[2], image.column)};
    for (std::int64_t row = 0; row < phases.row; ++row)
      for (std::int64_t column = 0; column < phases.column; ++column)
        picture.rectangle(grid.box({row, column}, {1, 1}), fmt::format("c{} fill", (row * phases.column + column) % 6),
                          fmt::format("phase {}", row * phases.column + column + 1));
  }
  const Place pixel = shown_pixel(problem);
  picture.rectangle(grid.box(pixel, {1, 1}), problem.transposed ? "frame" : "c5 fill", "the pixel whose filter is drawn");
  picture.rectangle(grid.box({0, 0}, image), "frame");
  std::vector<std::string> lines{fmt::format("an image: {} pixels of {}", sizes_text(problem.output, planned.convolution),
                                             counted(problem.output_channels, "channel"))};
  if (!plan.depthwise)
    lines.push_back(fmt::format("{}, each of {} and {}; one after the other", counted(plan.pieces, "piece"),
                                counted(plan.piece_images, "image"), counted(plan.piece_rows, "row")));
  if (problem.transposed && plan.products().size() > 1)
    lines.push_back(fmt::format("{}, each a product: pixels that share their filter's elements; one of each is filled",
                                counted(std::ssize(plan.products()), "phase")));
  return lines_of_text(picture, 0, 28 + grid.unit * static_cast<double>(image.row) + 6, lines);
}

/// The neighbourhood of one pixel's filter, enlarged.
double draw_filter(Drawing& picture, const PlannedConvolution& planned) {
  const ConvolutionProblem& problem = planned.plan.problem;
  const Place pixel = shown_pixel(problem), image = plane_of(problem.input);
  picture.text({0, 14}, fmt::format("A filter at pixel {}", pixel_text(pixel)), "title");
  const std::vector<Place> here = met_at(problem, pixel);
  if (here.empty()) return lines_of_text(picture, 0, 20, {"No element of the filter meets the input there."});
  Place first = here.front(), last = here.front();
  for (const Place& place : here) {
    first = {std::min(first.row, place.row), std::min(first.column, place.column)};
    last = {std::max(last.row, place.row), std::max(last.column, place.column)};
  }
  constexpr std::int64_t around = 2, most = 24;
  first = {problem.input[1] > 1 ? first.row - around : 0, first.column - around};
  const Place size{std::min(most, (problem.input[1] > 1 ? last.row + around : 0) - first.row + 1),
                   std::min(most, last.column + around - first.column + 1)};
  const Grid2 grid = grid_of(first, size, 28, 220);
  for (std::int64_t row = first.row; row < first.row + size.row; ++row)
    for (std::int64_t column = first.column; column < first.column + size.column; ++column) {
      const bool inside = row >= 0 && row < image.row && column >= 0 && column < image.column;
      if (inside) picture.rectangle(grid.box({row, column}, {1, 1}), "c0 wash", pixel_text({row, column}));
    }
  grid.draw_lines(picture, first, size);
  for (const Place& place : here)
    if (place.row < first.row + size.row && place.column < first.column + size.column)
      picture.rectangle(grid.box(place, {1, 1}), "c5 fill", pixel_text(place));
  std::vector<std::string> lines{
      fmt::format("{} of {} elements of a filter, each times {}", here.size(), problem.filter[1] * problem.filter[2],
                  counted(problem.input_channels / problem.groups, "channel")),
      "without colour: outside the image, where the input is 0"};
  if (problem.filter[0] > 1) lines.push_back(fmt::format("One of the filter's {} planes is drawn.", problem.filter[0]));
  const auto distance = [&](const char* what, const Three& values) {
    if (values != ConvolutionProblem::ones) lines.push_back(fmt::format("{} {}", what, sizes_text(values, planned.convolution)));
  };
  distance("stride", problem.stride);
  distance("dilation", problem.dilation);
  return lines_of_text(picture, 0, 28 + grid.unit * static_cast<double>(size.row) + 6, lines);
}

/// C = A B of the first product: A is the matrix of what lies under the filter, which nobody stores.
double draw_matrices(Drawing& picture, const PlannedConvolution& planned) {
  const ConvolutionPlan& plan = planned.plan;
  picture.text({0, 14}, "The product: C = A B", "title");
  if (plan.products().empty())
    return lines_of_text(
        picture, 0, 20,
        {"None: each channel of output comes from its own channel of input.", "A kernel of its own reads the image as it lies."});
  const Plan& product = plan.products().front();
  const auto [m, n, k] = sizes_of(product);
  const Proportions length({m, n, k});
  constexpr double gap = 10, room_x = panel_width - 70 - gap, room_y = 260;
  const double unit = std::min(room_x / (length(k) + length(n)), room_y / (length(k) + length(m)));
  const double wide_k = unit * length(k), wide_n = unit * length(n), high_m = unit * length(m), top = 44;
  const double left = std::max(20.0, (panel_width - wide_k - gap - wide_n) / 2);
  const Box b{left + wide_k + gap, top, wide_n, wide_k}, a{left, top + wide_k + gap, wide_k, high_m}, c{b.x, a.y, wide_n, high_m};
  picture.rectangle(a, "c0 wash", "A, " + times({m, k}));
  picture.rectangle(b, "c1 wash", "B, " + times({k, n}));
  picture.rectangle(c, "c2 wash", "C, " + times({m, n}));
  // The row of the pixel whose filter is drawn.
  const double row = std::max(2.0, high_m / static_cast<double>(std::max<std::int64_t>(1, m)));
  picture.rectangle({a.x, a.y, a.width, row}, "c5 fill", "a pixel's row");
  picture.rectangle({c.x, c.y, c.width, row}, "c5 fill", "a pixel's channels");
  for (const Box& box : {a, b, c}) picture.rectangle(box, "frame");
  picture.text({b.x + b.width / 2, b.y - 6}, "B", {}, Drawing::Anchor::middle);
  picture.text({a.x - 8, a.y + a.height / 2 + 4}, "A", {}, Drawing::Anchor::end);
  picture.text({c.x + c.width + 8, c.y + c.height / 2 + 4}, "C");
  const Operand& input = product.transposed ? product.problem.b : product.problem.a;
  std::vector<std::string> lines{
      fmt::format("A: {}, a row for each pixel: what lies under the filter", times({m, k})),
      input.addressing == Addressing::indexed
          ? fmt::format("It is not stored: two tables of {} and {} offsets say where its elements lie.", grouped(m), grouped(k))
          : "It is the input as it lies, without tables.",
      fmt::format("B: {}, the filters", times({k, n})), fmt::format("C: {}, the output's channels of each pixel", times({m, n})),
      fmt::format("kernel: {}", name(product.kernel))};
  if (planned.products() > 1)
    lines.push_back(fmt::format("{} in all: {}, {}, {}", counted(planned.products(), "product"),
                                counted(std::ssize(plan.products()), "phase"), counted(plan.problem.groups, "group"),
                                counted(plan.pieces, "piece")));
  if (!length.true_to_scale()) lines.emplace_back("Not to scale: the longer sides are drawn shorter.");
  return lines_of_text(picture, 0, c.y + c.height + 8, lines);
}

double draw_bytes_of(Drawing& picture, const PlannedConvolution& planned) {
  const ConvolutionPlan& plan = planned.plan;
  const ConvolutionProblem& problem = plan.problem;
  const Shape product = product_of(planned.convolution);
  const std::int64_t element = element_bytes(problem.input_type);
  std::vector<BytesRow> rows{{"input", input_elements(planned.convolution) * element, "c0 fill"},
                             {"filters", storage_bytes(problem.filters, filter_elements(planned.convolution)), "c1 fill"},
                             {"output", output_elements(planned.convolution) * element_bytes(problem.output_type), "c2 fill"},
                             {"a piece's copy", plan.border().size_bytes, "c3 fill"},
                             {"workspace", plan.workspace_bytes, "c3 fill"}};
  if (problem.transposed) return draw_bars(picture, rows);
  rows.push_back({"A, if stored", problem.groups * product.m * product.k * element, "c0 wash"});
  return lines_of_text(picture, 0, draw_bars(picture, rows), {"The last one is im2col's matrix, which is not there."});
}

}  // namespace

std::string picture_of(const PlannedConvolution& planned, const Device& device) {
  Drawing picture;
  constexpr double margin = 24, gutter = 40, width = 2 * margin + 2 * panel_width + gutter;
  const Convolution& convolution = planned.convolution;
  const std::string types =
      to_string(Formats{{convolution.input.type}, {convolution.filters.type, convolution.filters.quantization}});
  const std::string title = fmt::format("{} in {}", planned.text, types);
  picture.move_to({margin, margin});
  picture.text({0, 14}, title, "headline");
  double seconds = 0;
  for (const double each : planned.expected_seconds) seconds += each;
  std::vector<std::string> lines{"on " + device.name, decimal(flops_of(convolution) / 1e9) + " GFLOP"};
  if (seconds > 0)
    lines.push_back(fmt::format("expected {} ms by the cost model for the first group of a piece", decimal(1e3 * seconds)));
  const double top = margin + 18 + lines_of_text(picture, 0, 20, lines, 2 * panel_characters);
  std::array<double, 2> y{top + 6, top + 6};
  for (const auto draw : {draw_input, draw_output, draw_filter, draw_matrices, draw_bytes_of}) {
    const std::size_t column = y[0] <= y[1] ? 0 : 1;
    picture.move_to({margin + static_cast<double>(column) * (panel_width + gutter), y[column]});
    y[column] += draw(picture, planned) + 34;
  }
  return picture.file(width, std::max(y[0], y[1]), "glgemm: " + title);
}

}  // namespace glgemm::tools
