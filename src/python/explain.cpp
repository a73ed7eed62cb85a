#include "python/explain.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <glgemm/inspect.hpp>

#include "python/strided.hpp"

namespace glgemm::python {
namespace {

std::string counted(std::int64_t count, const char* one, const char* ending = "s") {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : ending);
}

/// The dispatches of a plan, each as large as it may be, as far as they are counted.
template <class Cursor, class Plan>
std::string dispatches_of(const Plan& plan) {
  constexpr std::int64_t most = 100'000;
  Cursor cursor;
  std::int64_t count = 0;
  while (count < most && next_slice(plan, cursor)) ++count;
  return counted(count, "dispatch", "es") + (count == most ? " or more" : "");
}

Precision precision_of(const ConvolutionPlan& plan) {
  return plan.depthwise            ? plan.program->precision
         : plan.products().empty() ? Precision::standard
                                   : plan.products().front().precision;
}

std::string precision_text(Precision precision, const PlanOptions& options, const std::string& reason = {}) {
  if (options.precision == Precision::standard) return {};
  return fmt::format("precision: {}{}{}\n", to_string(precision), reason.empty() ? "" : ", since ", reason);
}

/// The layers of a network, from 0 on, that run together.
std::string group_text(const MlpPlan::Group& group) {
  std::string text = group.count == 1 ? fmt::format("layer {}", group.first)
                                      : fmt::format("layers {} to {}", group.first, group.first + group.count - 1);
  if (group.program)
    text += fmt::format(": one dispatch, kernel {}", to_string(group.program->kernel));
  else if (!group.products.empty())
    text += fmt::format(": a product, kernel {}", to_string(group.products.front().kernel));
  return text + (group.why_apart.empty() ? "" : "; apart from the next, since " + group.why_apart) + "\n";
}

}  // namespace

std::string plan_text(const Engine& engine, const Gemm& product, const PlanOptions& options) {
  Explanation why;
  const Plan plan = make_plan(engine, problem_of(product), options, &why);
  return fmt::format("kernel: {}{}; {}, workspace {} bytes\n", to_string(plan.kernel),
                     plan.transposed ? ", of the transposed product" : "", counted(size(plan).dispatches, "dispatch", "es"),
                     plan.workspace.size_bytes) +
         precision_text(plan.precision, options, why.precision);
}

std::string plan_text(const Engine& engine, const Convolution& convolution, const PlanOptions& options) {
  const ConvolutionPlan plan = make_plan(engine, problem_of(convolution), options);
  std::vector<std::string> kernels;
  if (plan.depthwise) kernels.push_back(to_string(plan.program->kernel));
  for (const Plan& product : plan.products())
    if (std::string kernel = to_string(product.kernel); std::ranges::find(kernels, kernel) == kernels.end())
      kernels.push_back(std::move(kernel));
  std::string lines = "runs: depthwise, each channel of the output from its own channel of x\n";
  if (!plan.depthwise)
    lines = fmt::format("runs: {} of at most {} and {} of output\n", counted(plan.pieces, "piece"),
                        counted(plan.piece_images, "image"), counted(plan.piece_rows, "row"));
  if (const std::int64_t bytes = plan.border().size_bytes; bytes > 0)
    lines += fmt::format("border: each piece of x is copied with zeros around it, {} bytes\n", bytes);
  return lines +
         fmt::format("kernel: {}; {}, workspace {} bytes\n", fmt::join(kernels, " and "), dispatches_of<ConvolutionCursor>(plan),
                     plan.workspace_bytes) +
         precision_text(precision_of(plan), options);
}

std::string plan_text(const Engine& engine, const Mlp& mlp, const PlanOptions& options) {
  const MlpPlan plan = make_plan(engine, problem_of(mlp), options);
  std::string lines;
  for (const MlpPlan::Group& group : plan.groups) lines += group_text(group);
  if (const std::int64_t bytes = plan.weights.size_bytes + plan.biases.size_bytes; bytes > 0)
    lines += fmt::format("weights: each call copies {} bytes, since weights or biases lie in several buffers\n", bytes);
  return lines +
         fmt::format("runs: {}, {} of at most {}, workspace {} bytes\n", dispatches_of<MlpCursor>(plan),
                     counted(plan.pieces, "piece"), counted(plan.piece_samples, "sample"), plan.workspace_bytes) +
         precision_text(plan.precision, options);
}

std::string memory_text(const Engine& engine, std::int64_t bytes) {
  return fmt::format("on the device: {} bytes of {}\n", bytes, engine.device_memory_bytes());
}

Precision planned_precision(const Engine& engine, const Gemm& product, const PlanOptions& options) {
  return make_plan(engine, problem_of(product), options).precision;
}
Precision planned_precision(const Engine& engine, const Convolution& convolution, const PlanOptions& options) {
  return precision_of(make_plan(engine, problem_of(convolution), options));
}
Precision planned_precision(const Engine& engine, const Mlp& mlp, const PlanOptions& options) {
  return make_plan(engine, problem_of(mlp), options).precision;
}

void ExplainedArrays::add(const std::string& name, const Array& array, const char* how) {
  const Quantization quantization = elements_of(array)->quantization;
  lines += fmt::format("{}: {} {}, on the device{}\n", name, text(array.layout.shape),
                       quantization ? to_string(quantization) : std::string(info(array.layout.type).numpy), how);
  bytes += bytes_of(array);
}

}  // namespace glgemm::python
