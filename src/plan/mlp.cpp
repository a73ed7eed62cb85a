#include "plan/mlp.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>

#include <glgemm/error.hpp>

#include "base/rounding.hpp"
#include "base/text.hpp"
#include "kernels/kernels.hpp"
#include "plan/cost_model.hpp"
#include "plan/depthwise.hpp"
#include "plan/grid.hpp"
#include "plan/piece.hpp"
#include "plan/problem.hpp"

namespace glgemm {
namespace {

using kernels::workspace_aligned;

/// The bytes that a block of this view shows.
std::int64_t bytes_of(const Problem& problem, Role role, std::int64_t samples) {
  const Piece piece{problem.m, samples, problem.k, 1};
  return storage_bytes(format_of(problem, role), extent(problem, role, piece));
}

bool is_in_vectors(const Problem& problem, Role role, bool is_aligned) {
  const Strides stride = strides(problem, role);
  const std::int64_t bytes = element_bytes(type(problem, role));
  return is_aligned && stride.column == 1 && problem.n % 4 == 0 && stride.row * bytes % 16 == 0 &&
         bytes_of(problem, role, problem.n) % 16 == 0;
}

/// Decides how a network runs.
class MlpPlanner {
 public:
  MlpPlanner(const MlpProblem& problem, const PlannerInputs& inputs, const PlanOptions& options)
      : problem_(problem), inputs_(inputs), options_(options), limits_(inputs.limits), window_(window_bytes(inputs.limits)) {
    plan_.problem = problem;
    // A piece has fewer samples, and lines as far apart.
    for (const auto& [operand, role, layer] : {std::tuple{&plan_.problem.layers.front().b, Role::b, &problem.layers.front()},
                                               {&plan_.problem.layers.back().c, Role::c, &problem.layers.back()}})
      if (operand->addressing == Addressing::lines && !operand->format.quantization)
        operand->ld = operand->layout == Layout::row_major ? strides(*layer, role).row : strides(*layer, role).column;
    products_options_.workspace_bytes /= 2;
    plan_.precision = options.precision == Precision::fast ? Precision::standard : options.precision;
    plan_.largest_dispatch = {.groups = limits_.groups, .groups_product = limits_.groups_product};
  }

  MlpPlan make() {
    const std::int64_t samples = problem_.layers.front().n;
    if (samples == 0) return std::move(plan_);
    lay_out(samples);
    choose_groups();
    cut();
    for (MlpPlan::Group& group : plan_.groups) {
      if (group.program) continue;
      for (const std::int64_t of_piece : {plan_.piece_samples, samples % plan_.piece_samples})
        if (of_piece > 0) group.products.push_back(product(group.first, of_piece));
    }
    plan_.pieces = ceil_div(samples, plan_.piece_samples);
    place();
    count_bytes();
    return std::move(plan_);
  }

 private:
  /// Says how what goes between layers lies where a piece has so many samples.
  void lay_out(std::int64_t samples) {
    plan_.piece_samples = samples;
    const Layout layout = problem_.layers.front().b.layout;
    for (std::size_t i = 0; i + 1 < problem_.layers.size(); ++i) {
      const std::int64_t line = layout == Layout::row_major ? samples : problem_.layers[i].m;
      plan_.problem.layers[i].c = plan_.problem.layers[i + 1].b = {
          .format = problem_.layers[i].c.format, .layout = layout, .ld = round_up(std::max<std::int64_t>(1, line), 4)};
    }
  }

  Problem problem_of_piece(std::size_t layer, std::int64_t samples) const {
    Problem result = plan_.problem.layers[layer];
    result.n = samples;
    return result;
  }
  Plan product(std::size_t layer, std::int64_t samples) const {
    return of_layer(layer, problem_.layers.size(),
                    [&] { return make_plan(problem_of_piece(layer, samples), inputs_, products_options_); });
  }

  /// Why one dispatch cannot run these layers; empty if it can, and then `program` is the program.
  std::string why_not(std::size_t first, std::size_t count, ProgramKey& program) const;
  ProgramKey program_of(std::span<const Problem> layers, const Kernel& kernel) const;
  void choose_groups();
  void cut();
  void place();
  void count_bytes();

  const MlpProblem& problem_;
  const PlannerInputs& inputs_;
  const PlanOptions& options_;
  PlanOptions products_options_ = options_;  // they share the workspace with what is between groups
  const Limits& limits_;
  const std::int64_t window_;  ///< the bytes that a binding shows
  const bool copies_weights_ = problem_.weights_span_bytes == 0 || problem_.weights_span_bytes > window_,
             copies_biases_ = problem_.biases_span_bytes == 0 || problem_.biases_span_bytes > window_;
  MlpPlan plan_;
};

/// The program for these layers, with this kernel's tiles.
ProgramKey MlpPlanner::program_of(std::span<const Problem> layers, const Kernel& kernel) const {
  const Problem &front = layers.front(), &back = layers.back();
  const bool is_first = &front == plan_.problem.layers.data(), is_last = &back == &plan_.problem.layers.back();
  const auto lies_along_inputs = [](const Problem& layer) {
    return layer.k % 4 == 0 && strides(layer, Role::a).column == 1 && strides(layer, Role::a).row % 4 == 0;
  };
  const bool can = copies_weights_ || problem_.weights_end_aligned, some = can && std::ranges::any_of(layers, lies_along_inputs),
             all = some && std::ranges::all_of(layers, lies_along_inputs) &&
                   std::ranges::all_of(layers, [&](const Problem&layer) { return copies_weights_ || layer.a.aligned; });
  const int vectors = (is_in_vectors(front, Role::b, !is_first || front.b.aligned) ? 1 : 0) + (some ? 2 : 0) + (all ? 8 : 0) +
                      (is_in_vectors(back, Role::c, !is_last || plan_.problem.output_aligned) ? 4 : 0);
  // CPU drivers whose invocations cannot tell each other what they have read do best with images: see prices.hpp.
  const bool as_image = limits_.cpu && limits_.image_buffer_bytes > 0 && parameter(kernel, "broadcast") == 1 &&
                        (vectors & 3) != 0 && bytes_of(front, Role::b, front.n) <= limits_.image_buffer_bytes;
  const bool needs_function =
      std::ranges::any_of(layers, [](const Problem& layer) { return layer.activation > ActivationKind::leaky_relu; });
  return {.kernel = with(kernel, "vectors", vectors),
          .a = front.b.format,
          .b = front.a.format,
          .c_type = back.c.format.type,
          .epilogue = needs_function,
          .vector_reads = as_image             ? VectorReads::image
                          : (vectors & 3) != 0 ? VectorReads::storage
                                               : VectorReads::none,
          .halves_by_integers =
              !limits_.unpacks_halves && (kernels::unpacks_halves(front.b.format) || kernels::unpacks_halves(front.a.format) ||
                                          back.c.format.type == Type::f16),
          .few_buffers = limits_.storage_blocks < kernels::storage_buffers,
          .precision = plan_.precision};
}

std::string MlpPlanner::why_not(std::size_t first, std::size_t count, ProgramKey& program) const {
  const std::span<const Problem> layers(plan_.problem.layers.data() + first, count);
  const auto is_narrow_float = [](const ElementFormat& format) {
    return !format.quantization && (format.type == Type::f32 || format.type == Type::f16 || format.type == Type::bf16);
  };
  if (plan_.precision == Precision::extended) return "sums of extended precision are products' alone";
  for (const Problem& layer : layers) {
    const std::size_t i = first + static_cast<std::size_t>(&layer - layers.data());
    for (const Role role : {Role::a, Role::b, Role::c})
      if (!is_narrow_float(format_of(layer, role)) || operand(layer, role).addressing != Addressing::lines ||
          operand(layer, role).band != 0)
        return fmt::format(
            "{} of layer {} is {}{}, and a dispatch of several layers takes f32, f16 and bf16 in lines of one buffer",
            role == Role::a   ? "the weight matrix"
            : role == Role::b ? "the input"
                              : "the output",
            i, to_string(format_of(layer, role)), is_narrow_float(format_of(layer, role)) ? " elsewhere" : "");
    if (layer.a.format != layers.front().a.format)
      return fmt::format("the weights of layer {} are {}, and those of layer {} are {}", i, to_string(layer.a.format), first,
                         to_string(layers.front().a.format));
    if (layer.m == 0 || layer.k == 0) return fmt::format("layer {} has {} inputs and {} outputs", i, layer.k, layer.m);
  }
  const Problem &front = layers.front(), &back = layers.back();
  std::int64_t weights = 0;
  for (const Problem& layer : layers) weights += bytes_of(layer, Role::a, 0);
  for (const auto& [bytes, what] :
       {std::pair{bytes_of(front, Role::b, std::min<std::int64_t>(front.n, 1)), "a sample of the input"},
        {bytes_of(back, Role::c, std::min<std::int64_t>(back.n, 1)), "a sample of the output"},
        {weights, "the weights"}})
    if (bytes > window_) return fmt::format("{} takes {} bytes of a binding, which has {}", what, bytes, window_);
  if (copies_weights_ && weights > options_.workspace_bytes / 8)
    return fmt::format("the weights lie in several buffers, and a workspace of {} bytes has no room for their {}",
                       options_.workspace_bytes, weights);
  std::string reason =
      fmt::format("{} values of a sample, the most between two layers, are too many for the device's shared memory or workgroups",
                  std::max(std::ranges::max_element(layers, {}, &Problem::m)->m, front.k));
  for (const Kernel& kernel : kernels::mlp_candidates(layers, limits_)) {
    program = program_of(layers, kernel);
    const std::int64_t turns = kernels::turns_of_mlp(layers, kernel);
    const auto struck = std::ranges::find(inputs_.struck_off, program, &StruckOff::program);
    if (limits_.loop_iterations > 0 && turns > limits_.loop_iterations)
      reason = fmt::format("an invocation's loops would have {} turns, and the driver allows {}", turns, limits_.loop_iterations);
    else if (struck != inputs_.struck_off.end())
      reason = fmt::format("{} {} ({})", to_string(program), struck->fault(), struck->reason);
    else if (inputs_.why_not && !inputs_.why_not(program).empty())
      reason = inputs_.why_not(program);
    else
      return {};
  }
  return reason;
}

/// Which layers share a dispatch: the cheapest way from the first layer to the last.
void MlpPlanner::choose_groups() {
  const std::size_t count = problem_.layers.size();
  struct Way {
    double seconds = std::numeric_limits<double>::infinity();
    MlpPlan::Group group;
  };
  std::vector<Way> ways(count + 1);  // from each layer to the end
  ways[count].seconds = 0;
  std::vector<std::string> reasons(count);  // why one more layer was too many
  for (std::size_t first = count; first-- > 0;) {
    Way& best = ways[first];
    const auto consider = [&](MlpPlan::Group group) {
      const double seconds = group.expected_seconds + ways[first + group.count].seconds;
      if (seconds < best.seconds) best = {seconds, std::move(group)};
    };
    const Plan alone = product(first, plan_.piece_samples);
    consider({first, 1, {}, {}, expected_seconds(alone, options_, limits_)});
    for (std::size_t layers = 1; first + layers <= count; ++layers) {
      ProgramKey program;
      std::string reason = why_not(first, layers, program);
      if (!reason.empty()) {
        reasons[first] = std::move(reason);
        break;
      }
      const std::span<const Problem> these(plan_.problem.layers.data() + first, layers);
      consider({first, layers, program, {}, kernels::expected_seconds_of_mlp(these, program.kernel, limits_)});
    }
  }
  for (std::size_t first = 0; first < count; first += plan_.groups.back().count) {
    MlpPlan::Group& group = plan_.groups.emplace_back(std::move(ways[first].group));
    if (first + group.count == count) continue;
    const std::string& reason = reasons[first];
    group.why_apart = !reason.empty() ? reason : "the cost model expects the layers to be faster apart";
  }
}

/// Cuts the samples into pieces, whose windows fit into bindings, and which leave room for what is between groups.
void MlpPlanner::cut() {
  const std::int64_t samples = problem_.layers.front().n;
  std::int64_t most = std::min<std::int64_t>(samples, std::numeric_limits<std::int32_t>::max() / 4);
  std::int64_t widest = 0;
  const auto fit = [&](const Problem& problem, Role role) {
    const Strides stride = strides(problem, role);
    const std::int64_t bytes = element_bytes(type(problem, role)),
                       one = bytes_of(problem, role, std::min<std::int64_t>(problem.n, 1));
    most = std::min(most, 1 + (window_ - one) / (std::max<std::int64_t>(1, stride.column) * bytes));
  };
  for (const MlpPlan::Group& group : plan_.groups) {
    const std::span<const Problem> layers = layers_of(plan_, group);
    if (group.first > 0) widest = std::max(widest, layers.front().k);
    if (!group.program) continue;
    if (group.first == 0) fit(layers.front(), Role::b);
    if (group.first + group.count == problem_.layers.size()) fit(layers.back(), Role::c);
  }
  if (widest > 0) {
    const std::int64_t bytes = round_up(widest, 4) * element_bytes(plan_.problem.layers.front().c.format.type);
    most = std::min(most, std::min(options_.workspace_bytes / 8, window_) / bytes);
  }
  if (most >= samples) return;
  if (most < 1)
    throw Unsupported(fmt::format("mlp: a workspace of {} bytes has no room for the {} values between two layers of one sample",
                                  options_.workspace_bytes, widest));
  // Pieces begin where vectors of 16 bytes do, unless they are tiny.
  if (most < 8) plan_.problem.layers.front().b.aligned = plan_.problem.output_aligned = false;
  lay_out(most < 8 ? most : most / (most < 512 ? 8 : 512) * (most < 512 ? 8 : 512));
  for (MlpPlan::Group& group : plan_.groups)
    if (group.program) group.program = program_of(layers_of(plan_, group), group.program->kernel);
}

/// The parts of the workspace: what products need first.
void MlpPlanner::place() {
  std::int64_t end = 0;
  for (const MlpPlan::Group& group : plan_.groups)
    for (const Plan& each : group.products) end = std::max(end, each.workspace.size_bytes);
  const auto take = [&](Window& window, std::int64_t bytes) {
    if (bytes == 0) return;
    window = {workspace_aligned(end), bytes};
    end = window.offset_bytes + bytes;
  };
  std::array<std::int64_t, 2> between{};
  for (std::size_t i = 1; i < plan_.groups.size(); ++i) {
    const Problem& next = layers_of(plan_, plan_.groups[i]).front();
    between[i % 2] = std::max(between[i % 2], round_up(bytes_of(next, Role::b, plan_.piece_samples), 16));
  }
  for (std::size_t i = 0; i < 2; ++i) take(plan_.between[i], between[i]);
  std::int64_t weights = 0, biases = 0;
  for (const MlpPlan::Group& group : plan_.groups) {
    if (!group.program) continue;
    for (const CopiedAt& each : copied_at(plan_.problem, group.first, group.count)) {
      weights = std::max(weights, round_up(each.weights + each.weights_bytes, 16));
      biases = std::max(biases, round_up(each.bias + each.bias_bytes, 16));
    }
  }
  // Groups follow each other, and so do their copies: see copied_at().
  if (copies_weights_) take(plan_.weights, weights);
  if (copies_biases_) take(plan_.biases, biases);
  plan_.workspace_bytes = end;
}

void MlpPlanner::count_bytes() {
  for (const MlpPlan::Group& group : plan_.groups) {
    const std::span<const Problem> layers = layers_of(plan_, group);
    if (!group.program) {
      const auto whole = static_cast<double>(problem_.layers.front().n / plan_.piece_samples);
      for (const Plan& each : group.products) plan_.bytes += (&each == &group.products.front() ? whole : 1) * traffic(each).bytes;
      continue;
    }
    const std::int64_t samples = layers.front().n, of_group = kernels::samples_of_mlp(group.program->kernel);
    double weights = 0;
    for (const Problem& layer : layers)
      weights += static_cast<double>(layer.m * layer.k * element_bytes(layer.a.format.type) +
                                     (layer.bias != Bias::none ? layer.m * element_bytes(layer.c.format.type) : 0));
    plan_.bytes += static_cast<double>(ceil_div(samples, of_group)) * weights +
                   static_cast<double>(samples * (layers.front().k * element_bytes(layers.front().b.format.type) +
                                                  layers.back().m * element_bytes(layers.back().c.format.type)));
  }
}

Grid grid_of(const MlpPlan& plan, const MlpPlan::Group& group, std::int64_t samples) {
  Grid grid;
  grid.columns = kernels::samples_of_mlp(group.program->kernel);
  grid.x = ceil_div(samples, grid.columns);
  grid.y = grid.layers = 1;
  grid.group_work = 0;
  for (const Problem& layer : layers_of(plan, group)) grid.group_work += static_cast<double>(layer.m * layer.k * grid.columns);
  grid.max_columns = std::min(plan.largest_dispatch.groups[0], plan.largest_dispatch.groups_product);
  grid.max_layers = 1;
  return grid;
}

}  // namespace

std::span<const Problem> layers_of(const MlpPlan& plan, const MlpPlan::Group& group) {
  return std::span(plan.problem.layers).subspan(group.first, group.count);
}

std::int64_t samples_at(const MlpPlan& plan, std::int64_t sample) {
  return std::min(plan.piece_samples, plan.problem.layers.front().n - sample);
}

std::size_t product_for(const MlpPlan& plan, std::int64_t samples) {
  return samples == plan.piece_samples ? 0 : 1;
}

std::int64_t elements_of_weights(const Problem& layer) {
  return extent(layer, Role::a, {layer.m, layer.n, layer.k, 1});
}

std::vector<CopiedAt> copied_at(const MlpProblem& problem, std::size_t first, std::size_t count) {
  std::vector<CopiedAt> result;
  std::int64_t weights = 0, bias = 0;
  for (std::size_t i = 0; i < first + count; ++i) {
    const Problem& layer = problem.layers[i];
    const CopiedAt each{weights, bias,
                        layer.a.format.quantization ? 0 : elements_of_weights(layer) * element_bytes(layer.a.format.type),
                        layer.bias != Bias::none ? layer.m * element_bytes(layer.c.format.type) : 0};
    weights = round_up(weights + each.weights_bytes, 16);
    bias = round_up(bias + each.bias_bytes, 16);
    if (i >= first) result.push_back(each);
  }
  return result;
}

std::optional<MlpStep> next_slice(const MlpPlan& plan, MlpCursor& cursor, double work) {
  const std::int64_t samples = plan.problem.layers.empty() ? 0 : plan.problem.layers.front().n;
  for (;;) {
    if (cursor.sample >= samples) return {};
    const std::int64_t of_piece = samples_at(plan, cursor.sample);
    const MlpPlan::Group& group = plan.groups[cursor.group];
    MlpStep result{cursor.sample, cursor.group, group.program ? 0 : product_for(plan, of_piece), {}};
    const auto advance_group = [&] {
      cursor.at = {};
      if (++cursor.group < plan.groups.size()) return;
      cursor.group = 0;
      cursor.sample += plan.piece_samples;
    };
    if (!group.program) {
      const std::optional<Step> step = next_slice(group.products[result.product], cursor.at, work);
      if (!step) {
        advance_group();
        continue;
      }
      result.step = *step;
      return result;
    }
    const Grid grid = grid_of(plan, group, of_piece);
    const Slice slice = slice_at(grid, cursor.at, false, work);
    result.step.stage = Stage::layers;
    cover(result.step, grid, cursor.at, slice);
    result.step.barrier_before = is_at_begin(cursor.at);
    result.step.n = of_piece;
    result.step.n0 = cursor.sample;
    const std::span<const Problem> layers = layers_of(plan, group);
    const auto window = [&](const Problem& layer, Role role, bool is_between) {
      const std::int64_t before = is_between ? 0 : cursor.sample * strides(layer, role).column * element_bytes(type(layer, role));
      return Window{before, bytes_of(layer, role, of_piece)};
    };
    result.step.b = window(layers.front(), Role::b, group.first > 0);
    result.step.c = window(layers.back(), Role::c, group.first + group.count < plan.problem.layers.size());
    if (!advance(cursor.at, grid, slice)) advance_group();
    return result;
  }
}

std::vector<double> work_of(const MlpPlan& plan) {
  std::vector<double> result;
  const std::int64_t samples = plan.problem.layers.empty() ? 0 : plan.problem.layers.front().n;
  for (const MlpPlan::Group& group : plan.groups) {
    double& work = result.emplace_back(0);
    for (std::int64_t sample = 0; sample < samples;) {
      const std::int64_t of_piece = samples_at(plan, sample),
                         pieces = of_piece == plan.piece_samples ? samples / plan.piece_samples : 1;
      double of_one = 0;
      if (group.program) {
        of_one = work_of(grid_of(plan, group, of_piece));
      } else {
        const auto stages = size(group.products[product_for(plan, of_piece)]).work;
        of_one = std::accumulate(stages.begin(), stages.end(), 0.0);
      }
      work += static_cast<double>(pieces) * of_one;
      sample += pieces * plan.piece_samples;
    }
  }
  return result;
}

double MlpPlan::multiply_adds() const noexcept {
  double sum = 0;
  for (const Problem& layer : problem.layers)
    sum += static_cast<double>(layer.m) * static_cast<double>(layer.k) * static_cast<double>(layer.n);
  return sum;
}

void validate(const MlpProblem& problem) {
  const std::size_t count = problem.layers.size();
  if (count == 0 || count > Mlp::max_layers)
    throw std::invalid_argument(fmt::format("mlp: {} layers; a network has 1 to {}", count, Mlp::max_layers));
  for (std::size_t i = 0; i < count; ++i) {
    of_layer(i, count, [&] { validate(problem.layers[i]); });
    if (i == 0) continue;
    if (problem.layers[i].k != problem.layers[i - 1].m)
      throw std::invalid_argument(fmt::format("{} has {} inputs, and the layer before it {} outputs", layer_text(i, count),
                                              problem.layers[i].k, problem.layers[i - 1].m));
    if (problem.layers[i].n != problem.layers[0].n)
      throw std::invalid_argument(fmt::format("{} is for {} samples, and the first one for {}", layer_text(i, count),
                                              problem.layers[i].n, problem.layers[0].n));
  }
}

MlpPlan make_plan(const MlpProblem& problem, const Limits& limits, const PlanOptions& options) {
  return make_plan(problem, PlannerInputs(limits, options, {.by_shaders = true}), options);
}

MlpPlan make_plan(const MlpProblem& problem, const PlannerInputs& inputs, const PlanOptions& options) {
  validate(problem);
  if (options.kernel)
    throw std::invalid_argument(
        fmt::format("mlp: the kernel {} is given, and layers take different ones", to_string(*options.kernel)));
  return MlpPlanner(problem, inputs, options).make();
}

}  // namespace glgemm
