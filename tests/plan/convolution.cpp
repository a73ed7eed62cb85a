// Plans of convolutions: their pieces write each element of the output once, read inside the images or their copy, and keep to
// the workspace and to the limits.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <glgemm/error.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/rounding.hpp"
#include "plan/convolution.hpp"
#include "plan/depthwise.hpp"
#include "plan/grid.hpp"
#include "support/plan_checks.hpp"
#include "support/random.hpp"

using namespace glgemm;

namespace {

/// What is wrong with the plan of a product.
std::string wrong_product(const ConvolutionPlan& plan, const Plan& product, const Limits& limits, const PlanOptions& options) {
  if (plan.border().size_bytes > 0 && product.workspace.size_bytes > plan.border_offset_bytes)
    return fmt::format("a product's {} bytes reach into the copy at {}", product.workspace.size_bytes, plan.border_offset_bytes);
  return test::wrong_steps(product, limits, options_of_products(plan, options), 1e4);
}

/// What is wrong with the plan of a convolution; empty if nothing is.
std::string wrong_pieces(const ConvolutionPlan& plan, const Limits& limits, const PlanOptions& options) {
  const ConvolutionProblem& problem = plan.problem;
  const TensorSteps in = steps_of(problem.input_layout, problem.input, problem.input_channels),
                    out = steps_of(problem.output_layout, problem.output, problem.output_channels);
  const std::int64_t inputs = problem.input_channels / problem.groups, outputs = problem.output_channels / problem.groups;
  std::vector<int> writes(static_cast<std::size_t>(problem.batch * out.image), 0);
  std::int64_t pieces = 0;
  std::vector<ConvolutionPiece> sizes;
  for (const ConvolutionPlan::Shape& shape : plan.shapes) {
    sizes.push_back(piece_of(plan, shape.images, shape.rows));
    for (const Plan& product : shape.products)
      if (const std::string wrong = wrong_product(plan, product, limits, options); !wrong.empty()) return wrong;
  }
  for (std::int64_t image = 0; image < problem.batch && plan.pieces > 0; image += plan.piece_images)
    for (std::int64_t row = 0; row < problem.output[plan.axis]; row += plan.piece_rows, ++pieces) {
      const auto shape = std::find_if(plan.shapes.begin(), plan.shapes.end(), [&](const ConvolutionPlan::Shape& each) {
        return each.images == std::min(plan.piece_images, problem.batch - image) &&
               each.rows == std::min(plan.piece_rows, problem.output[plan.axis] - row);
      });
      if (shape == plan.shapes.end()) return "a piece has a size of its own";
      const ConvolutionPiece* const piece = &sizes[static_cast<std::size_t>(shape - plan.shapes.begin())];
      const BorderedCopy& border = piece->border;
      for (std::int64_t group = 0; group < problem.groups; ++group)
        for (const ConvolutionProduct& product : piece->products) {
          const std::int64_t to =
              product.output.first + image * out.image + row * out.step[plan.axis] + group * outputs * out.channel;
          for (std::int64_t item = 0; item < product.images; ++item)
            for (std::int64_t i = 0; i < product.m; ++i)
              for (std::int64_t j = 0; j < product.n; ++j)
                ++writes.at(
                    static_cast<std::size_t>(to + item * product.output.operand.batch_stride + product.output.offset(i, j)));
          if (product.m == 0 || product.k == 0 || product.images == 0) continue;
          const bool copied = border.size_bytes > 0;
          const std::int64_t from = product.input.first + (copied ? group * inputs * border.channel
                                                                  : image * in.image + input_row(plan, row) * in.step[plan.axis] +
                                                                        group * inputs * in.channel);
          const std::int64_t all = copied ? border.size_bytes / element_bytes(problem.input_type) : problem.batch * in.image;
          std::int64_t last = 0;
          for (std::int64_t i = 0; i < product.m; ++i)
            for (std::int64_t j = 0; j < product.k; ++j) last = std::max(last, product.input.offset(i, j));
          const std::int64_t end = from + (product.images - 1) * product.input.operand.batch_stride + last;
          if (from < 0 || end >= all) return fmt::format("elements {} to {} of {} are read", from, end, all);
        }
    }
  if (pieces != plan.pieces) return fmt::format("{} pieces and not {}", pieces, plan.pieces);
  if (std::any_of(writes.begin(), writes.end(), [](int count) { return count != 1; }))
    return "an element of output is not written once";
  return {};
}

/// Counts of what steps do: each is to be done once.
class Once {
 public:
  explicit Once(std::int64_t count) : counts_(static_cast<std::size_t>(count)) {}
  void add(std::int64_t i) { ++counts_.at(static_cast<std::size_t>(i)); }
  bool all() const {
    return std::all_of(counts_.begin(), counts_.end(), [](int count) { return count == 1; });
  }

 private:
  std::vector<int> counts_;
};

/// Counts the workgroups that a step has in a grid.
void add_groups(Once& done, const Step& step, std::int64_t columns, std::int64_t x, std::int64_t y) {
  for (std::int64_t k = 0; k < step.groups[2]; ++k)
    for (std::int64_t j = 0; j < step.groups[1]; ++j)
      for (std::int64_t i = 0; i < step.groups[0]; ++i) done.add(((step.z0 + k) * y + step.y0 + j) * x + step.x0 / columns + i);
}

/// What is wrong with the steps of a convolution that are each worth about `work`; empty if nothing is.
std::string wrong_steps(const ConvolutionPlan& plan, const Limits& limits, double work) {
  const ConvolutionProblem& problem = plan.problem;
  const TensorSteps in = steps_of(problem.input_layout, problem.input, problem.input_channels);
  const std::int64_t input_bytes = problem.batch * in.image * element_bytes(problem.input_type);
  std::array<double, stage_count> done{};
  std::optional<Once> groups;
  ConvolutionPlace last;
  std::int64_t copies = 0;
  Cursor product;
  for (ConvolutionCursor cursor;;) {
    const bool begins = is_at_begin(cursor.at);
    const std::optional<ConvolutionStep> next = next_slice(plan, cursor, work);
    if (!next) break;
    const auto& [place, step] = *next;
    done[static_cast<std::size_t>(step.stage)] += step.work;
    for (std::size_t i = 0; i < 3; ++i)
      if (step.groups[i] < 1 || step.groups[i] > limits.groups[i]) return fmt::format("{} groups along {}", step.groups[i], i);
    if (saturating_product({step.groups[0], step.groups[1], step.groups[2]}) > limits.groups_product) return "too many groups";
    for (const Window& window : {step.a, step.b, step.c, step.d})
      if (window.size_bytes > limits.storage_block_bytes && window != step.c) return "a window is larger than a binding";
    if (step.stage == Stage::copy || step.stage == Stage::depthwise) {
      if (step.a.offset_bytes < 0 || step.a.offset_bytes + step.a.size_bytes > input_bytes) return "it reads outside the input";
      const std::int64_t columns = workgroup(plan.program->kernel)[0];
      if (step.stage == Stage::copy) {
        const CopyWork copy = copy_work(plan, place);
        const std::int64_t x = ceil_div(copy.to_line, 4 * columns);
        if (begins) groups.emplace(x * copy.to_lines * copy.to_planes * copy.to_volumes), ++copies;
        add_groups(*groups, step, 4 * columns, x, copy.to_lines);
      } else {
        const DepthwiseWork depthwise = depthwise_work(problem, *plan.program);
        const std::int64_t x = ceil_div(depthwise.channels * depthwise.runs, columns),
                           y = ceil_div(depthwise.problem.output[1], plan.strip_rows);
        if (begins) groups.emplace(x * y * images_at(plan, place) * depthwise.problem.output[0]);
        add_groups(*groups, step, columns, x, y);
      }
      if (const bool ends = step.stage == Stage::copy ? cursor.copied : cursor.place != place; ends && !groups->all())
        return "a workgroup does not run once";
      continue;
    }
    if (place != last) product = {};
    last = place;
    if (plan.program && copies == 0) return "a product comes before its copy";
    if (next_slice(plan.shapes[place.shape].products[place.product], product, work) != step) return "not the product's step";
  }
  if (plan.program && !plan.depthwise && copies != plan.pieces) return fmt::format("{} copies", copies);
  const std::array<double, stage_count> all = work_of(plan);
  for (std::size_t i = 0; i < stage_count; ++i)
    if (std::abs(all[i] - done[i]) > 1e-9 * all[i]) return fmt::format("stage {} is worth {} and not {}", i, done[i], all[i]);
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
    CHECK(plan->border().size_bytes <= limits.storage_block_bytes);
    CHECK(wrong_pieces(*plan, limits, options) == "");
    for (const double work : {0.0, 300.0, 1e9}) CHECK(wrong_steps(*plan, limits, work) == "");
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
    CHECK(plan.border().size_bytes < std::int64_t{1} << 31);
    CHECK(plan.pieces * plan.piece_rows >= 2 * 4096);
    CHECK(plan.products().front().problem.a.addressing == Addressing::indexed);
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
  CHECK(plain.products().front().problem.m == 8192 * 16384);
}

TEST_CASE("convolutions: the steps of a depthwise one, on devices with small bindings and grids") {
  for (const bool last : {true, false})
    for (const bool small : {true, false}) {
      Limits limits;
      if (small) limits.groups = {3, 2, 4}, limits.groups_product = 10, limits.storage_block_bytes = 1 << 14;
      ConvolutionProblem problem{.batch = 5,
                                 .input_channels = 12,
                                 .output_channels = 12,
                                 .groups = 12,
                                 .input = {1, 17, 13},
                                 .output = {1, 17, 13},
                                 .filter = {1, 3, 3},
                                 .before = {0, 1, 1}};
      if (!last) problem.input_layout = problem.output_layout = TensorLayout::nchw;
      const ConvolutionPlan plan = make_plan(problem, limits);
      CHECK(plan.depthwise);
      CHECK((plan.piece_images < problem.batch) == small);
      for (const double work : {0.0, 3000.0, 1e9}) CHECK(wrong_steps(plan, limits, work) == "");
    }
}
