// Choosing a kernel: the caller's, a tuned one, or the one that the cost model takes for the fastest.
#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <stdexcept>
#include <utility>

#include <glgemm/error.hpp>
#include <glgemm/tuning.hpp>

#include "base/device_class.hpp"
#include "base/rounding.hpp"
#include "base/text.hpp"
#include "kernels/kernels.hpp"
#include "plan/choose.hpp"
#include "plan/cost_model.hpp"
#include "plan/piece.hpp"
#include "plan/problem.hpp"

namespace glgemm {
namespace {

using By = Explanation::By;
using Why = Explanation::Why;
using PassedOver = Explanation::PassedOver;

/// The parts that k may be in: those that a loop's limit needs, and those that keep the device busy where they are more.
struct Parts {
  std::int64_t least = 1;
  std::int64_t most = 1;
};
Parts parts_for(const Problem& problem, const Kernel& kernel, const Limits& limits, std::int64_t asked) {
  const kernels::ProductFamily& family = kernels::product_family(kernel);
  if (!family.can_split() || problem.k == 0) return {};
  const std::int64_t step = family.k_step(kernel);
  if (asked > 0) return {std::min(asked, ceil_div(problem.k, step)), 1};
  const Block block = block_of(kernel);
  const std::int64_t groups =
      saturating_product({ceil_div(problem.m, block.rows), ceil_div(problem.n, block.columns), problem.batch});
  const std::int64_t min_k = limits.cpu ? 512 : 256;  // a shorter part saves less than its reduction costs
  const std::int64_t wanted = std::min(2 * limits.concurrent_groups / std::max<std::int64_t>(1, groups), problem.k / min_k);
  const std::int64_t needed =
      groups <= 16 * limits.concurrent_groups ? ceil_div(problem.k, kernels::max_k(kernel, limits.loop_iterations)) : 1;
  return {std::clamp<std::int64_t>(needed, 1, 1024), std::clamp<std::int64_t>(wanted, 1, 1024)};
}

/// What a plan for that precision has. Integers are exact in any order, and OpenGL itself computes in none narrower than f32.
Precision planned(Precision asked, const Problem& problem) {
  return asked == Precision::fast || is_integer(sum_type(problem)) ? Precision::standard : asked;
}

std::string why_planned(Precision asked, const Problem& problem) {
  if (asked == planned(asked, problem)) return {};
  return fmt::format("{} is standard here: {}", to_string(asked),
                     is_integer(sum_type(problem)) ? "products of integers are exact in any order"
                                                   : "OpenGL itself computes in no type narrower than f32");
}

/// @throws Unsupported  the precision is not for this product, or not for this driver
void check_precision(const Problem& problem, const Limits& limits, Precision precision) {
  if (precision == Precision::standard) return;
  const std::string who = fmt::format("gemm: {}", to_string(precision));
  if (limits.language == ShadingLanguage::essl_310)
    throw Unsupported(who + " products need `precise`, which OpenGL ES 3.1 does not have");
  if (precision == Precision::extended && sum_type(problem) != Type::f32)
    throw Unsupported(fmt::format("{} products are summed from floats of 32 bits and fewer, and this is {}", who,
                                  to_string(sum_type(problem))));
  if (precision == Precision::reproducible && !info(problem.activation).is_reproducible) {
    std::vector<ActivationInfo> known;
    std::copy_if(activation_table.begin(), activation_table.end(), std::back_inserter(known),
                 std::mem_fn(&ActivationInfo::is_reproducible));
    throw Unsupported(fmt::format("{} products have no {}, since drivers' functions differ; activations that they have: {}", who,
                                  info(problem.activation).name, names_of(known, &ActivationInfo::name)));
  }
}

/// A multiply-add of doubles is faster than what it takes to keep two floats.
bool sums_in_doubles(const Limits& limits, Precision precision) {
  constexpr double least_rate = 1.0 / 16;
  return precision == Precision::extended && limits.f64 && limits.language == ShadingLanguage::glsl_430 &&
         traits(limits).f64_rate >= least_rate;
}

/// parts_for() for precise products: one part for each canonical block.
std::int64_t parts_in_blocks(const Problem& problem, std::int64_t parts) {
  constexpr std::int64_t max_parts = 1024;
  const std::int64_t blocks = ceil_div(problem.k, canonical_block);
  return parts > 1 && blocks <= max_parts ? std::max<std::int64_t>(1, blocks) : 1;
}

/// A kernel, and how it would run the problem.
struct Choice {
  Kernel kernel;
  By by = By::model;
  bool transposed = false;
  std::int64_t parts = 1;
  double seconds = 0;
  const TunedChoice* tuned = nullptr;  ///< the entry that chose it
};

bool is_faster(const Choice& x, const Choice& y) {
  return x.seconds < y.seconds;
}

/// Which kernels may run a problem, in the order in which they are tried.
class Chooser {
 public:
  Chooser(const Problem& problem, const PlannerInputs& inputs, const PlanOptions& options)
      : problem_(problem), inputs_(inputs), options_(options), precision_(planned(options.precision, problem)) {
    check_precision(problem, inputs.limits, precision_);
    if (options.kernel)
      force(*options.kernel);
    else
      collect();
  }

  /// The first choice that can be cut into pieces.  @throws Unsupported  none can
  Plan choose(Explanation* why) {
    for (const Choice& choice : choices_) {
      Plan plan;
      plan.problem = choice.transposed ? transposed(problem_) : problem_;
      plan.transposed = choice.transposed;
      plan.kernel = choice.kernel;
      plan.precision = precision_of(choice.kernel);
      plan.doubles = sums_in_doubles(inputs_.limits, precision_);
      // Turned over, C may take more of the tiles of a kernel that packs items than it does as it is.
      std::string reason;
      if (plan.transposed && kernels::product_family(plan.kernel).packs_items())
        reason = why_not(plan.problem, plan.kernel, inputs_.limits);
      if (reason.empty()) reason = cut(plan, inputs_, options_, choice.parts);
      if (!reason.empty() && plan.transposed) reason += " (of C^T, whose A is the given B)";
      Why kind = Why::cannot_run;
      if (reason.empty()) {
        reason = why_struck_off(plan);
        plan.sealed = !reason.empty() && precision_ != Precision::standard;
        if (plan.sealed) reason = why_struck_off(plan);
        if (!reason.empty()) kind = Why::struck_off;
      }
      if (inputs_.why_not)
        for (const Stage stage : plan.stages())
          if (reason.empty()) reason = inputs_.why_not(plan.program(stage));
      if (reason.empty()) {
        if (why) *why = explain(choice);
        return plan;
      }
      refused_.push_back({choice.kernel, kind, std::move(reason)});
    }
    std::string tried;
    for (const Choice& choice : choices_) tried += fmt::format("{}{}", tried.empty() ? "" : "; ", to_string(choice.kernel));
    throw Unsupported(fmt::format("gemm: no kernel can run this: {}{}", refused_.back().reason,
                                  choices_.size() > 1 ? "; tried: " + tried : ""));
  }

 private:
  void force(const Kernel& kernel);
  void collect();
  void consider(const Kernel& kernel, By by, std::int64_t split_k, const TunedChoice* tuned = nullptr);
  /// Which of the plan's programs is struck off; empty if none is.
  std::string why_struck_off(const Plan& plan) const;
  std::string why_cannot(const Kernel& kernel) const;
  /// What a plan of the kernel's has: the planned precision, or `fast` where it computes in a narrower type.
  Precision precision_of(const Kernel& kernel) const {
    const bool is_fast = options_.precision == Precision::fast && kernels::product_family(kernel).has_fast(problem_);
    return is_fast ? Precision::fast : precision_;
  }
  Explanation explain(const Choice& taken) const;

  const Problem& problem_;
  const PlannerInputs& inputs_;
  const PlanOptions& options_;
  const Precision precision_;
  std::vector<Choice> choices_;      ///< the best first
  std::vector<PassedOver> refused_;  ///< those that cannot run, or are struck off
};

/// The caller's kernel and no other.
void Chooser::force(const Kernel& kernel) {
  if (const std::string reason = kernels::family(kernel).malformed(kernel); !reason.empty()) throw std::invalid_argument(reason);
  if (const std::string reason = why_cannot(kernel); !reason.empty()) throw Unsupported(reason);
  consider(kernel, By::caller, options_.split_k);
}

/// First the kernels that were tuned for problems near this one, then the others, the fastest by the cost model first.
void Chooser::collect() {
  for (const TunedChoice* tuned : nearby(inputs_.tuning, problem_))
    consider(tuned->kernel, By::tuning, options_.split_k != 0 ? options_.split_k : tuned->split_k, tuned);
  const auto tuned_choices = static_cast<std::ptrdiff_t>(choices_.size());
  for (const Kernel& kernel : kernels::candidates(problem_, inputs_.limits, precision_))
    consider(kernel, By::model, options_.split_k);
  std::stable_sort(choices_.begin() + tuned_choices, choices_.end(), is_faster);
}

std::string Chooser::why_cannot(const Kernel& kernel) const {
  std::string reason = why_not(problem_, kernel, inputs_.limits);
  if (reason.empty() && inputs_.by_shaders && is_library(kernel))
    reason = fmt::format("{} takes a product whole, and those of jobs, streams, convolutions and networks are cut", name(kernel));
  if (!reason.empty() || precision_ == Precision::standard) return reason;
  const std::string products = fmt::format("{} products", to_string(precision_));
  if (!kernels::product_family(kernel).takes_precision()) return to_string(kernel) + " has no " + products;
  const std::int64_t most = kernels::max_k(kernel, inputs_.limits.loop_iterations), block = std::min(canonical_block, problem_.k);
  if (most >= block) return {};
  return fmt::format("{} can add {} terms in a loop here, and {} need {}", to_string(kernel), most, products, block);
}

void Chooser::consider(const Kernel& kernel, By by, std::int64_t split_k, const TunedChoice* tuned) {
  if (std::string reason = why_cannot(kernel); !reason.empty()) {
    refused_.push_back({kernel, Why::cannot_run, std::move(reason)});
    return;
  }
  const bool turns = kernels::product_family(kernel).runs_transposed(problem_);
  Choice choice{.kernel = kernel, .by = by, .transposed = inputs_.transposed.value_or(turns), .tuned = tuned};
  const Problem as_run = choice.transposed ? transposed(problem_) : problem_;
  const Parts parts = parts_for(as_run, kernel, inputs_.limits, split_k);
  std::vector<Choice> cuts;
  const auto add = [&](std::int64_t of_k) {
    choice.parts = precision_ == Precision::standard ? of_k : parts_in_blocks(as_run, of_k);
    choice.seconds = slowdown(precision_, sums_in_doubles(inputs_.limits, precision_)) *
                     expected_seconds(as_run, kernel, inputs_.limits, choice.parts, std::max(1.0, options_.experimental->runs),
                                      precision_of(kernel));
    cuts.push_back(choice);
  };
  for (std::int64_t of_k = parts.least; of_k < parts.most; of_k *= 2) add(of_k);
  add(std::max(parts.least, parts.most));
  std::stable_sort(cuts.begin(), cuts.end(), is_faster);
  // The program that sums a part, or the one that adds parts up, may be struck off.
  choices_.insert(choices_.end(), cuts.begin(), inputs_.struck_off.empty() && !inputs_.why_not ? cuts.begin() + 1 : cuts.end());
}

std::string Chooser::why_struck_off(const Plan& plan) const {
  if (inputs_.struck_off.empty()) return {};
  for (const Stage stage : plan.stages())
    for (const StruckOff& each : inputs_.struck_off)
      if (each.program == plan.program(stage))
        return fmt::format("{} {}{}{}", to_string(each.program), each.fault(),
                           precision_ == Precision::standard ? ""
                                                             : fmt::format(": this driver has no {} products of {} of it",
                                                                           to_string(precision_), to_string(sum_type(problem_))),
                           each.reason.empty() ? "" : " (" + each.reason + ")");
  return {};
}

std::string milliseconds(double seconds) {
  return fmt::format("{:.3g} ms", seconds * 1e3);
}

Explanation Chooser::explain(const Choice& taken) const {
  Explanation why{.chosen_by = taken.by, .expected_seconds = taken.seconds};
  if (taken.tuned) why.tuned = *taken.tuned;
  if (precision_of(taken.kernel) != options_.precision) why.precision = why_planned(options_.precision, problem_);
  const auto index = static_cast<std::size_t>(&taken - choices_.data());
  for (const Choice& other : std::span(choices_).subspan(index + 1))
    if (other.by == By::model && other.kernel != taken.kernel &&
        std::none_of(why.passed_over.begin(), why.passed_over.end(),
                     [&](const PassedOver& x) { return x.kernel == other.kernel; }))
      why.passed_over.push_back({other.kernel, Why::slower,
                                 milliseconds(other.seconds) + " by the cost model, against " + milliseconds(taken.seconds)});
  why.passed_over.insert(why.passed_over.end(), refused_.begin(), refused_.end());
  return why;
}

}  // namespace

PlannerInputs::PlannerInputs(const Limits& device, const PlanOptions& options, const PlanConstraints& constraints)
    : limits(limits_for(options, device)),
      tuning(options.experimental->tuning),
      struck_off(options.experimental->struck_off),
      by_shaders(constraints.by_shaders),
      transposed(constraints.transposed ? constraints.transposed : options.experimental->transposed),
      panels_b(constraints.panels_b ? constraints.panels_b : options.experimental->panels_b) {}

Plan make_plan(const Problem& problem, const Limits& limits, const PlanOptions& options, Explanation* why) {
  return make_plan(problem, PlannerInputs(limits, options), options, why);
}

Plan make_plan(const Problem& problem, const PlannerInputs& inputs, const PlanOptions& options, Explanation* why) {
  validate(problem);
  const Limits& limits = inputs.limits;
  validate(limits);
  if (options.experimental->slice_columns < 0 || options.experimental->slice_rows < 0)
    throw std::invalid_argument(fmt::format("make_plan: a slice of {}x{} workgroups", options.experimental->slice_columns,
                                            options.experimental->slice_rows));
  if (options.split_k < 0) throw std::invalid_argument(fmt::format("make_plan: k in {} parts", options.split_k));
  if (!limits.f64 && needs_f64(sum_type(problem)))
    throw Unsupported(fmt::format("gemm: this driver has no doubles, and the product is {}", to_string(sum_type(problem))));
  return Chooser(problem, inputs, options).choose(why);
}

}  // namespace glgemm
