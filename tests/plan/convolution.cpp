// Plans of convolutions: their pieces write each element of the output once, read inside the images or their copy, and keep to
// the workspace and to the limits.
#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <glgemm/error.hpp>
#include <glgemm/inspect.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plan/convolution.hpp"
#include "support/plan_checks.hpp"
#include "support/random.hpp"

using namespace glgemm;

namespace {

std::int64_t offset(const std::vector<std::int32_t>& table, std::int64_t step, std::int64_t i) {
  return table.empty() ? i * step : table[static_cast<std::size_t>(i)];
}

/// Of a placement's elements, the last one's.
std::int64_t last(const Placement& place) {
  const auto most = [](const std::vector<std::int32_t>& table, std::int64_t step, std::int64_t count) {
    return table.empty() ? (count - 1) * step : *std::max_element(table.begin(), table.end());
  };
  return most(place.rows, place.row_step, place.row_count) + most(place.columns, place.column_step, place.column_count);
}

/// What is wrong with a product of a plan.
std::string wrong_product(const ConvolutionPlan& plan, const ConvolutionPiece& piece, const ConvolutionProduct& product,
                          const Limits& limits, const PlanOptions& options) {
  const PlanOptions left = options_of_products(plan, options);
  const Plan its = make_plan(problem_of(plan, piece, product), limits, left);
  if (piece.border.size_bytes > 0 && its.workspace.size_bytes > plan.border_offset_bytes)
    return fmt::format("a product's {} bytes reach into the copy at {}", its.workspace.size_bytes, plan.border_offset_bytes);
  return test::wrong_steps(its, limits, left, 1e4);
}

/// What is wrong with the plan of a convolution; empty if nothing is.
std::string wrong_pieces(const ConvolutionPlan& plan, const Limits& limits, const PlanOptions& options) {
  const ConvolutionProblem& problem = plan.problem;
  const TensorSteps in = steps_of(problem.input_layout, problem.input, problem.input_channels),
                    out = steps_of(problem.output_layout, problem.output, problem.output_channels);
  const std::int64_t inputs = problem.input_channels / problem.groups, outputs = problem.output_channels / problem.groups;
  std::vector<int> writes(static_cast<std::size_t>(problem.batch * out.image), 0);
  std::int64_t pieces = 0;
  const std::vector<ConvolutionPiece> sizes = pieces_of(plan);
  for (const ConvolutionPiece& piece : sizes)
    for (const ConvolutionProduct& product : piece.products)
      if (const std::string wrong = wrong_product(plan, piece, product, limits, options); !wrong.empty()) return wrong;
  for (std::int64_t image = 0; image < problem.batch && plan.pieces > 0; image += plan.piece_images)
    for (std::int64_t row = 0; row < problem.output[plan.axis]; row += plan.piece_rows, ++pieces) {
      const auto piece = std::find_if(sizes.begin(), sizes.end(), [&](const ConvolutionPiece& each) {
        return each.images == std::min(plan.piece_images, problem.batch - image) &&
               each.rows == std::min(plan.piece_rows, problem.output[plan.axis] - row);
      });
      if (piece == sizes.end()) return "a piece has a size of its own";
      const BorderedCopy& border = piece->border;
      for (std::int64_t group = 0; group < problem.groups; ++group)
        for (const ConvolutionProduct& product : piece->products) {
          const std::int64_t to =
              product.output.first + image * out.image + row * out.step[plan.axis] + group * outputs * out.channel;
          for (std::int64_t item = 0; item < product.images; ++item)
            for (std::int64_t i = 0; i < product.m; ++i)
              for (std::int64_t j = 0; j < product.n; ++j)
                ++writes.at(static_cast<std::size_t>(to + item * product.output_stride +
                                                     offset(product.output.rows, product.output.row_step, i) +
                                                     offset(product.output.columns, product.output.column_step, j)));
          if (product.m == 0 || product.k == 0 || product.images == 0) continue;
          const bool copied = border.size_bytes > 0;
          const std::int64_t from = product.input.first + (copied ? group * inputs * border.channel
                                                                  : image * in.image + input_row(plan, row) * in.step[plan.axis] +
                                                                        group * inputs * in.channel);
          const std::int64_t all = copied ? border.size_bytes / element_bytes(problem.input_type) : problem.batch * in.image;
          const std::int64_t end = from + (product.images - 1) * product.input_stride + last(product.input);
          if (from < 0 || end >= all) return fmt::format("elements {} to {} of {} are read", from, end, all);
        }
    }
  if (pieces != plan.pieces) return fmt::format("{} pieces and not {}", pieces, plan.pieces);
  if (std::any_of(writes.begin(), writes.end(), [](int count) { return count != 1; }))
    return "an element of output is not written once";
  return {};
}

/// A convolution of images of a few elements along each dimension.
ConvolutionProblem draw(test::Random& random) {
  const auto from = [&](std::int64_t least, std::int64_t most) { return least + random.below(most - least + 1); };
  ConvolutionProblem problem;
  problem.groups = from(1, 2);
  problem.batch = from(0, 3);
  problem.input_channels = problem.groups * from(1, 3);
  problem.output_channels = problem.groups * from(1, 3);
  problem.transposed = random.coin();
  for (std::size_t d = static_cast<std::size_t>(random.below(3)); d < 3; ++d) {
    problem.input[d] = from(1, 14);
    problem.filter[d] = from(1, 4);
    problem.stride[d] = from(1, 3);
    problem.dilation[d] = from(1, 2);
    problem.before[d] = from(0, 2);
    const std::int64_t reach = (problem.filter[d] - 1) * problem.dilation[d] + 1,
                       room = problem.input[d] + problem.before[d] - reach;
    problem.output[d] = problem.transposed ? (problem.input[d] - 1) * problem.stride[d] + reach - problem.before[d] + from(-1, 1)
                                           : (room + from(0, 5)) / problem.stride[d] + 1;
    problem.output[d] = std::max<std::int64_t>(0, problem.output[d]);
  }
  problem.input_layout = random.pick({TensorLayout::nhwc, TensorLayout::nchw});
  problem.output_layout = random.pick({TensorLayout::nhwc, TensorLayout::nchw});
  problem.filter_layout = random.pick({FilterLayout::ohwi, FilterLayout::oihw, FilterLayout::hwio});
  return problem;
}

}  // namespace

TEST_CASE("plans of convolutions: pieces write each output once, within the workspace, small bindings and small grids") {
  test::Random random(5);
  int planned = 0, cut = 0;
  for (int i = 0; i < 400; ++i) {
    const ConvolutionProblem problem = draw(random);
    Limits limits;
    limits.storage_block_bytes = 512 << random.below(8);
    limits.storage_offset_alignment = 16 << random.below(5);
    for (std::int64_t& groups : limits.groups) groups = 1 + random.below(40);
    PlanOptions options;
    if (random.coin()) options.workspace_bytes = 512 << random.below(8);
    options.kernel =
        parse_kernel(random.pick({"naive", "tiled:tile=4", "register:tile_m=4,tile_n=4,step_k=2,workgroup=4,panels=1"}));
    CAPTURE(i);
    std::optional<ConvolutionPlan> plan;
    try {
      plan = make_plan(problem, limits, options);
    } catch (const Unsupported&) {  // no room for a row, or for the kernel's panels
      continue;
    }
    CHECK(plan->workspace_bytes <= options.workspace_bytes);
    CHECK(plan->border.size_bytes <= limits.storage_block_bytes);
    CHECK(wrong_pieces(*plan, limits, options) == "");
    ++planned;
    cut += plan->pieces > 1 ? 1 : 0;
  }
  CHECK(planned > 250);
  CHECK(cut > 30);
}

TEST_CASE("plans of convolutions: images with more elements than an int counts, on a large device") {
  Limits limits;
  limits.storage_block_bytes = (std::int64_t{1} << 32) - 4;
  ConvolutionProblem problem{.batch = 2,
                             .input_channels = 64,
                             .output_channels = 64,
                             .input = {1, 4096, 16384},
                             .output = {1, 4096, 16384},
                             .filter = {1, 3, 3},
                             .before = {0, 1, 1}};
  for (const std::int64_t workspace : {std::int64_t{256} << 20, std::int64_t{1} << 40}) {
    PlanOptions options;
    options.workspace_bytes = workspace;
    const ConvolutionPlan plan = make_plan(problem, limits, options);
    CHECK(plan.workspace_bytes <= workspace);
    CHECK(plan.border.size_bytes < std::int64_t{1} << 31);
    CHECK(plan.pieces * plan.piece_rows >= 2 * 4096);
    CHECK(plan.products.front().problem.a.addressing == Addressing::indexed);
  }
  // Twice as large, channel after channel: its tables cannot reach from the first channel to the last.
  problem.transposed = true;
  problem.output = {1, 8192, 32768};
  problem.stride = {1, 2, 2};
  CHECK(make_plan(problem, limits).pieces > 1);
  problem.output_layout = TensorLayout::nchw;
  CHECK_THROWS_WITH_AS(make_plan(problem, limits), doctest::Contains("tables reach over 17179869184 elements of it"),
                       Unsupported);
  // As the product that it is, it needs no tables.
  problem = {.input_channels = 64, .output_channels = 64, .input = {1, 8192, 16384}, .output = {1, 8192, 16384}};
  const ConvolutionPlan plain = make_plan(problem, limits);
  CHECK(plain.pieces == 1);
  CHECK(plain.products.front().problem.m == 8192 * 16384);
}
