// Shows what would run for a convolution, for people and as JSON.
#include "inspect/convolution.hpp"

#include <algorithm>

#include <fmt/core.h>
#include <glgemm/engine.hpp>
#include <glgemm/experimental.hpp>
#include <nlohmann/json.hpp>

#include "arguments/json.hpp"
#include "inspect/numbers.hpp"
#include "product/convolution.hpp"

namespace glgemm::tools {
namespace {

using Json = nlohmann::ordered_json;
using Three = ConvolutionProblem::Three;

constexpr std::size_t most_phases = 9;  ///< that are listed

std::string_view name_of(TensorLayout layout) {
  return layout == TensorLayout::nhwc ? "nhwc" : "nchw";
}
std::string_view name_of(FilterLayout layout) {
  return layout == FilterLayout::ohwi ? "ohwi" : layout == FilterLayout::oihw ? "oihw" : "hwio";
}

/// Those of the numbers that belong to the dimensions of the images: "56 x 56".
std::string text_of(const Three& values, const Convolution& convolution, std::string_view between = " x ") {
  std::string text;
  for (std::size_t d = 3 - convolution.input.size.size(); d < 3; ++d)
    text += fmt::format("{}{}", text.empty() ? "" : between, grouped(values[d]));
  return text;
}

/// The sizes of a plan's product as the convolution has them: m pixels of the output, n of its channels.
Shape sizes_of(const Plan& product) {
  const Problem& p = product.problem;
  return product.transposed ? Shape{p.n, p.m, p.k} : Shape{p.m, p.n, p.k};
}

/// How an operand's elements are found.
std::string_view addressing_text(const Operand& operand) {
  switch (operand.addressing) {
    case Addressing::indexed:
      return "indexed: two tables say where its elements lie";
    case Addressing::strided:
      return "in equal steps along both sides";
    default:
      return "plain: rows or columns without tables";
  }
}

std::string_view addressing_name(const Operand& operand) {
  return operand.addressing == Addressing::indexed ? "indexed" : operand.addressing == Addressing::strided ? "strided" : "plain";
}

void print_product(const PlannedConvolution& planned, std::size_t number) {
  const Plan& product = planned.plan.products()[number];
  const Shape size = sizes_of(product);
  const std::size_t count = planned.plan.products().size();
  line(count == 1 ? "product" : fmt::format("phase {}", number + 1),
       "{} (m x n x k){}: pixels x channels of output x elements "
       "under the filter",
       times({size.m, size.n, size.k}), product.problem.batch > 1 ? fmt::format(", {} images", product.problem.batch) : "");
  if (size.m == 0 || size.n == 0) return;
  line("  kernel", "{}", to_string(product.kernel));
  const Operand &a = product.transposed ? product.problem.b : product.problem.a,
                &b = product.transposed ? product.problem.a : product.problem.b;
  line("  input", "{}", addressing_text(a));
  line("  filters", "{}", addressing_text(b));
  line("  output", "{}", addressing_text(product.problem.c));
  line("  stages", "{}; {} bytes of workspace", stage_names(product, ", "), grouped(product.workspace.size_bytes));
  if (const double seconds = planned.expected_seconds[number]; seconds > 0)
    line("  expected", "{} ms by the cost model", decimal(1e3 * seconds));
}

}  // namespace

PlannedConvolution plan_of(const Convolution& convolution, const Device& device, const PlanOptions& options) {
  PlannedConvolution result{
      to_string(convolution), convolution, make_plan(problem_of(convolution), device.limits, options), {}};
  for (const Plan& product : result.plan.products()) {
    PlanOptions again = options;
    again.kernel = product.kernel;
    again.split_k = product.parts;
    again.experimental.edit().transposed = false;  // the plan's problem is as it runs
    Explanation why;
    if (product.problem.m > 0 && product.problem.n > 0) make_plan(product.problem, device.limits, again, &why);
    result.expected_seconds.push_back(why.expected_seconds);
  }
  return result;
}

void print(const PlannedConvolution& planned, const Device& device) {
  const ConvolutionPlan& plan = planned.plan;
  const ConvolutionProblem& problem = plan.problem;
  const Convolution& convolution = planned.convolution;
  line("device", "{}", device.name);
  line("  class", "{}", to_string(device.limits.device_class));
  line("convolution", "{} in {}, {} GFLOP", planned.text, to_string(formats_of(convolution)),
       decimal(flops_of(convolution) / 1e9));
  const auto bytes = [](std::int64_t elements, Type type) { return grouped(elements * element_bytes(type)); };
  line("  input", "{} of {}, {}, {}, {} bytes", counted(problem.batch, "image"), text_of(problem.input, convolution),
       counted(problem.input_channels, "channel"), name_of(problem.input_layout),
       bytes(input_elements(convolution), problem.input_type));
  line("  filters", "{} of {}, {}, {}, {} bytes", counted(problem.output_channels, "filter"),
       text_of(problem.filter, convolution), counted(problem.input_channels / problem.groups, "channel"),
       name_of(problem.filter_layout), grouped(storage_bytes(problem.filters, filter_elements(convolution))));
  line("  output", "{} of {}, {}, {}, {} bytes\n", counted(problem.batch, "image"), text_of(problem.output, convolution),
       counted(problem.output_channels, "channel"), name_of(problem.output_layout),
       bytes(output_elements(convolution), problem.output_type));
  if (plan.depthwise)
    line("runs", "depthwise, by a kernel of its own: each channel of output from its own channel of input, at once");
  else
    line("runs", "{}, each of {} and {} of output", counted(plan.pieces, "piece"), counted(plan.piece_images, "image"),
         counted(plan.piece_rows, "row"));
  if (plan.border().size_bytes > 0)
    line("copy", "{} elements of each image of a piece, its border included, from ({}) on, {} bytes",
         text_of(plan.border().size, convolution), text_of(plan.border().first, convolution, ", "),
         grouped(plan.border().size_bytes));
  else
    line("copy", "none: the input is read as it lies");
  line("workspace", "{} bytes", grouped(plan.workspace_bytes));
  for (std::size_t i = 0; i < std::min(plan.products().size(), most_phases); ++i) print_product(planned, i);
  if (plan.products().size() > most_phases)
    line("", "and {}", counted(std::ssize(plan.products()) - static_cast<std::int64_t>(most_phases), "more phase"));
  if (const std::int64_t products = std::ssize(plan.products()) * problem.groups * plan.pieces; products > 1)
    line("in all", "{}: {}, {}, {}", counted(products, "product"), counted(std::ssize(plan.products()), "phase"),
         counted(problem.groups, "group"), counted(plan.pieces, "piece"));
}

std::string json_of(const PlannedConvolution& planned, const Device& device) {
  const ConvolutionPlan& plan = planned.plan;
  const Shape product = product_of(planned.convolution);
  Json products = Json::array();
  for (std::size_t i = 0; i < plan.products().size(); ++i) {
    const Plan& each = plan.products()[i];
    const Shape size = sizes_of(each);
    const bool swapped = each.transposed;
    products.push_back({{"m", size.m},
                        {"n", size.n},
                        {"k", size.k},
                        {"batch", each.problem.batch},
                        {"kernel", to_string(each.kernel)},
                        {"input", addressing_name(swapped ? each.problem.b : each.problem.a)},
                        {"filters", addressing_name(swapped ? each.problem.a : each.problem.b)},
                        {"output", addressing_name(each.problem.c)},
                        {"workspace_bytes", each.workspace.size_bytes},
                        {"expected_seconds", planned.expected_seconds[i]}});
  }
  return json_text(
      Json{{"device", device.name},
           {"class", to_string(device.limits.device_class)},
           {"convolution", planned.text},
           {"type", to_string(formats_of(planned.convolution))},
           {"m", product.m},
           {"n", product.n},
           {"k", product.k},
           {"groups", plan.problem.groups},
           {"flops", flops_of(planned.convolution)},
           {"depthwise", plan.depthwise},
           {"pieces", plan.pieces},
           {"piece_images", plan.piece_images},
           {"piece_rows", plan.piece_rows},
           {"copy", {{"first", plan.border().first}, {"size", plan.border().size}, {"bytes", plan.border().size_bytes}}},
           {"workspace_bytes", plan.workspace_bytes},
           {"products", products}});
}

}  // namespace glgemm::tools
