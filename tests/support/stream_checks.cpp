#include "support/stream_checks.hpp"

#include <fmt/core.h>

#include <cmath>
#include <glgemm/error.hpp>
#include <glgemm/experimental.hpp>
#include <glgemm/streaming.hpp>

#include "kernels/kernels.hpp"
#include "stream/stream_plan.hpp"
#include "support/quantised.hpp"
#include "support/random.hpp"
#include "support/samples.hpp"

namespace glgemm::test {
namespace {

Problem draw_problem(Random& random) {
  Problem problem;
  const auto size = [&] {
    const std::int64_t most = random.pick({2, 100, 100, 3000, 3000, 16384});
    return 1 + random.below(most);
  };
  problem.m = size();
  problem.n = size();
  problem.k = random.below(16) == 0 ? 0 : random.below(8) == 0 ? 100 * size() : size();
  for (Operand* const x : {&problem.a, &problem.b}) {
    x->layout = random.pick({Layout::row_major, Layout::column_major});
    x->op = random.pick({Op::none, Op::transpose, Op::conjugate_transpose});
  }
  problem.c.layout = problem.d.layout = random.pick({Layout::row_major, Layout::column_major});
  if (random.below(3) == 0) {  // codes
    const bool is_a = random.coin();
    Operand& x = is_a ? problem.a : problem.b;
    const bool any_group = random.below(8) == 0;
    x.format = {Type::f32, any_group ? Quantization::nbits(random.pick({4, 8}), 16 << random.below(14), random.coin())
                                     : random.one_of(quantizations())};
    x.layout = (x.op == Op::none) == is_a ? Layout::row_major : Layout::column_major;
  } else {
    do {
      problem.a.format.type = random.one_of(all_types);
      problem.b.format.type = random.coin() ? problem.a.format.type : random.one_of(all_types);
    } while (!can_multiply(problem.a.format.type, problem.b.format.type));
  }
  const Type a = problem.a.format.type, b = problem.b.format.type, sum = sum_type(a, b);
  problem.c.format.type = random.coin() && is_type_of_c(a, b, a) ? a : sum;
  problem.residual = random.below(3) == 0;
  problem.bias = random.pick({Bias::none, Bias::for_each_row, Bias::for_each_column});
  if (!is_complex(sum) && !is_integer(sum) && random.below(4) == 0) problem.activation = ActivationKind::relu;
  return problem;
}

struct StreamCase {
  StreamCase(DeviceClass device_class, const Kernel* kernel, Random& random)
      : problem(draw_problem(random)), limits(usual_limits(device_class)) {
    const auto one_in = [&](int chances) { return random.below(chances) == 0; };
    if (one_in(4)) limits.storage_blocks = random.pick({4, 5, 8, 16});
    if (one_in(4)) limits.concurrent_groups = random.pick({1, 264, 4000});
    if (one_in(4)) limits.storage_block_bytes = 4096 << random.below(12);
    if (one_in(8)) limits.groups = {3, 3, 3};
    if (one_in(8)) limits.loop_iterations = 100 + random.below(10000);
    const auto bytes = [&] {
      return static_cast<std::int64_t>(100 * std::pow((1 << 20) / 100.0, static_cast<double>(random.uniform() + 1) / 2));
    };
    const std::int64_t which = random.below(3);
    if (which != 0) options.device_memory_limit_bytes = bytes();
    if (which != 1) options.memory_limit_bytes = bytes();
    PlanOptions& plan = options.plan;
    if (kernel)
      plan.kernel = *kernel;
    else if (!one_in(4))
      plan.kernel = random.one_of(sampled_kernels());
    if (one_in(4)) plan.split_k = 1 + random.below(4);
    if (one_in(8)) plan.experimental.edit().transposed = random.coin();
    if (one_in(6)) plan.precision = random.pick({Precision::extended, Precision::reproducible});
  }

  StreamPlan planned() const { return make_stream_plan(problem, limits, std::int64_t{64} << 20, options); }
  /// What is wrong with its plan.  @throws  as make_stream_plan
  std::string fault() const;
  /// What is wrong with its refusal.
  std::string fault_of(const MemoryTooSmall& refusal) const;

  Problem problem;
  Limits limits;
  StreamOptions options;
};

std::string text(const StreamCase& x) {
  const Problem& p = x.problem;
  const PlanOptions& plan = x.options.plan;
  return fmt::format("{}x{}x{} of {} and {} by {}, k in {} parts, {}, within {} and {} bytes", p.m, p.n, p.k,
                     to_string(p.a.format), to_string(p.b.format), plan.kernel ? to_string(*plan.kernel) : "any kernel",
                     plan.split_k, to_string(plan.precision), x.options.device_memory_limit_bytes, x.options.memory_limit_bytes);
}

std::string StreamCase::fault() const {
  const StreamPlan plan = planned();
  if (options.device_memory_limit_bytes > 0 && plan.device_bytes > options.device_memory_limit_bytes)
    return fmt::format("{} bytes on the device", plan.device_bytes);
  if (options.memory_limit_bytes > 0 && plan.device_bytes + plan.host_bytes > options.memory_limit_bytes)
    return fmt::format("{} and {} bytes", plan.device_bytes, plan.host_bytes);
  if (plan.moved_bytes < plan.bound_bytes * (1 - 1e-9))
    return fmt::format("{} bytes are moved, and at least {} have to be", plan.moved_bytes, plan.bound_bytes);
  // Windows at the edges have room in the workspace of the whole ones.
  const std::int64_t last_k = problem.k - (plan.windows() - 1) * plan.piece_k;
  for (const std::int64_t m : {plan.piece_m, problem.m % plan.piece_m})
    for (const std::int64_t n : {plan.piece_n, problem.n % plan.piece_n})
      for (const std::int64_t k : {plan.piece_k, last_k}) {
        if (m == 0 || n == 0) continue;
        const auto [window, with, constraints] = window_problem(plan, options.plan, m, n, k, k == last_k);
        const Plan at_edge = make_plan(window, PlannerInputs(limits, options.plan, constraints), with);
        if (at_edge.workspace.size_bytes > plan.window.workspace.size_bytes + kernels::workspace_padding)
          return fmt::format("a window of {}x{}x{} takes a workspace of {} bytes, and the whole one {}", m, n, k,
                             at_edge.workspace.size_bytes, plan.window.workspace.size_bytes);
      }
  return {};
}

std::string StreamCase::fault_of(const MemoryTooSmall& refusal) const {
  const auto is_least_of = [](std::int64_t least, std::int64_t named, std::int64_t limit) {
    return named == 0 ? least == 0 : named == limit && least > limit;
  };
  if (!is_least_of(refusal.least.device, refusal.limits.device, options.device_memory_limit_bytes) ||
      !is_least_of(refusal.least.both, refusal.limits.both, options.memory_limit_bytes))
    return refusal.what();
  StreamCase other = *this;
  const auto raise = [&](std::int64_t less) {
    if (refusal.least.device > 0) other.options.device_memory_limit_bytes = refusal.least.device - less;
    if (refusal.least.both > 0) other.options.memory_limit_bytes = refusal.least.both - less;
  };
  raise(0);
  try {
    if (const std::string wrong = other.fault(); !wrong.empty()) return "the least that was named: " + wrong;
  } catch (const std::exception& error) {
    return std::string("the least that was named: ") + error.what();
  }
  raise(1);
  try {
    other.planned();
    return "less than the least that was named does as well";
  } catch (const MemoryTooSmall& again) {
    const bool same = again.least.device == refusal.least.device && again.least.both == refusal.least.both;
    return same ? "" : std::string("another least: ") + again.what();
  }
}

}  // namespace

const std::vector<Kernel>& sampled_kernels() {
  static const std::vector<Kernel> list = [] {
    std::vector<Kernel> result;
    for (const Sample& sample : samples()) {
      result.insert(result.end(), sample.quick.begin(), sample.quick.end());
      result.insert(result.end(), sample.all.begin(), sample.all.end());
    }
    return result;
  }();
  return list;
}

std::string fault_of_stream_plan(DeviceClass device_class, const Kernel* kernel, std::uint64_t seed, StreamChecks& checks) {
  Random random(seed);
  StreamCase x(device_class, kernel, random);
  std::string fault;
  try {
    fault = x.fault();
    ++checks.planned;
  } catch (const MemoryTooSmall& refusal) {
    fault = x.fault_of(refusal);
    ++checks.refused;
  } catch (const Unsupported& error) {  // whatever the memory
    ++checks.unsupported;
    const StreamCase as_drawn = x;
    x.options.device_memory_limit_bytes = x.options.memory_limit_bytes = 0;
    try {
      x.planned();
      fault = fmt::format("with more memory it is not refused: {}", error.what());
      x = as_drawn;
    } catch (const Unsupported&) {
    }
  }
  return fault.empty() ? fault : fmt::format("{}, seed {}: {}: {}", to_string(device_class), seed, text(x), fault);
}

}  // namespace glgemm::test
