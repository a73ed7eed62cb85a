// Bytes that a product moves: the least that it can, and what a kernel and a plan do.
#include <glgemm/inspect.hpp>

#include <algorithm>
#include <limits>

#include <glgemm/quantization.hpp>

#include "base/rounding.hpp"
#include "kernels/kernels.hpp"
#include "plan/problem.hpp"

namespace glgemm {
namespace {

/// The bytes of one item's matrix, with the scales and zeros of a quantised one. Codes lie along k.
std::int64_t item_bytes(const Problem& problem, Role role) {
  const ElementFormat& format = format_of(problem, role);
  const std::int64_t lines = role == Role::b ? problem.n : problem.m,
                     length = role == Role::a || role == Role::b ? problem.k : problem.n;
  if (!format.quantization) return saturating_product({lines, length, element_bytes(format.type)});
  const QuantizedBytes bytes = quantized_bytes(format.quantization, lines, length);
  return bytes.codes + bytes.scales + bytes.zeros;
}

double number(std::int64_t value) {
  return static_cast<double>(value);
}

/// With what follows from the bytes.
Traffic with_ratio(Traffic traffic, const Problem& problem) {
  const double flops =
      (is_complex(sum_type(problem)) ? 8 : 2) * number(problem.m) * number(problem.n) * number(problem.k) * number(problem.batch);
  traffic.flops_per_byte = traffic.bytes > 0 ? flops / traffic.bytes : 0;
  return traffic;
}

/// How many items of an operand the plan packs, again for each piece where other panels have taken their place in between: as
/// has_stage() in slices.cpp.
double packings(const Plan& plan, Role role) {
  const Problem& problem = plan.problem;
  const bool cuts_k = plan.piece_k < problem.k;
  std::int64_t times = 1;
  if (role == Role::a && cuts_k) times = ceil_div(problem.n, plan.piece_n);
  if (role == Role::b && (cuts_k || plan.piece_n < problem.n)) times = ceil_div(problem.m, plan.piece_m);
  const std::int64_t items = ceil_div(problem.batch, plan.piece_batch) * kernels::packed_items(problem, role, plan.piece_batch);
  return number(times) * number(std::min(problem.batch, items));
}

}  // namespace

std::int64_t least_bytes(const Problem& problem, Role role) {
  return saturating_product({kernels::packed_items(problem, role, problem.batch), item_bytes(problem, role)});
}

std::int64_t least_bytes(const Problem& problem) {
  std::int64_t sum = 0;
  for (const Role role : {Role::a, Role::b, Role::c})
    sum += std::min(least_bytes(problem, role), std::numeric_limits<std::int64_t>::max() - sum);
  return sum;
}

Traffic traffic(const Problem& problem, const Kernel& kernel) {
  Traffic result = kernels::product_family(kernel).traffic(problem, kernel);
  result.bytes = number(problem.batch) *
                 (number(item_bytes(problem, Role::a)) * result.buffer_reads_of_a +
                  number(item_bytes(problem, Role::b)) * result.buffer_reads_of_b + number(item_bytes(problem, Role::c)));
  return with_ratio(result, problem);
}

Traffic traffic(const Plan& plan) {
  const Problem& problem = plan.problem;
  if (problem.m == 0 || problem.n == 0 || problem.batch == 0) return {};
  const Type sums = sum_type(problem);
  const double batch = number(problem.batch);
  Traffic result = kernels::product_family(plan.kernel).traffic(problem, plan.kernel);
  for (const Role role : {Role::a, Role::b}) {
    double& reads = role == Role::a ? result.buffer_reads_of_a : result.buffer_reads_of_b;
    const double stored = number(item_bytes(problem, role));
    if (!plan.packs(role)) {
      result.bytes += batch * reads * stored;
      continue;
    }
    const double panels = number(role == Role::a ? problem.m : problem.n) * number(problem.k) * number(element_bytes(sums));
    const double packed = packings(plan, role);
    result.bytes += packed * (stored + panels) + batch * reads * panels;
    reads += packed / batch;
  }
  // Each window of k but the first reads what the one before it left.
  const double windows = problem.k == 0 ? 1 : number(ceil_div(problem.k, plan.piece_k)),
               of_sums = number(plan.parts * kernels::sum_bytes(sums, plan.precision)),
               of_c = number(element_bytes(problem.c.format.type));
  const bool reduces = plan.reduces();
  const double left = reduces || plan.workspace.sums.size_bytes > 0 ? of_sums : of_c;
  result.bytes += batch * number(problem.m) * number(problem.n) * (2 * (windows - 1) * left + (reduces ? 2 * of_sums : 0) + of_c);
  return with_ratio(result, problem);
}

}  // namespace glgemm
