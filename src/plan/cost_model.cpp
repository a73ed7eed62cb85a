// How long a kernel is expected to take: what its family says of its inner loop, its workgroups, and the steps beside it.
#include "plan/cost_model.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/kernels.hpp"

namespace glgemm {

double expected_seconds(const Problem& problem, const Kernel& kernel, const Limits& limits, std::int64_t parts, double runs,
                        Precision precision) {
  const kernels::ProductFamily& family = kernels::product_family(kernel);
  if (is_library(kernel)) return 1e-9 * family.nanoseconds(problem, limits, precision);
  const kernels::Prices price = kernels::prices(limits);
  const auto number = [](std::int64_t x) { return static_cast<double>(x); };
  const double m = number(problem.m), n = number(problem.n), k = number(problem.k), batch = number(problem.batch);
  const double words = number(element_bytes(sum_type(problem))) / 4;
  const double per_vector = 4 / words;
  const std::array<int, 3> size = workgroup(kernel);
  const double invocations = size[0] * size[1];
  const double vectors = std::ceil(invocations / price.lanes);
  const kernels::Cost cost =
      family.cost(problem, kernel, limits,
                  {.price = price,
                   .multiply_add = price.multiply_add * kernels::multiply_adds(sum_type(problem), limits),
                   .per_vector = per_vector,
                   .vector = panels(kernel) == VectorReads::image ? price.image_vector : price.storage_vector,
                   .invocations = invocations});
  // A register that the device does not have is stored and loaded in each turn of the loop along k. One that it has, but that
  // keeps other invocations from running meanwhile, makes for waiting.
  const DeviceTraits& device = traits(limits);
  const std::int64_t registers = limits.cpu ? 0 : family.registers(kernel, kernels::read_type(problem));
  const double spills = number(std::max<std::int64_t>(0, registers - device.max_registers)) * 2 * price.storage_load /
                        number(family.k_step(kernel));
  const double waiting = 1 + 0.25 * std::max(0.0, number(registers) / device.registers - 1);
  const Block block = block_of(kernel);
  double groups = std::ceil(m / number(block.rows)) * std::ceil(n / number(block.columns)) * batch;
  if (family.packs_items()) groups = std::ceil(groups / invocations);
  const double group_time =
      price.group + vectors * (k / number(parts) * (cost.step + spills) + cost.elements * cost.finish) * waiting;
  const double running = number(std::max<std::int64_t>(1, limits.concurrent_groups));
  double time = price.dispatch + group_time * std::ceil(groups * number(parts) / running);
  double programs = 1;
  for (const Role role : {Role::a, Role::b}) {
    if (kernels::panel_width(kernel, role, sum_type(problem)) == 0) continue;
    const double loads = (role == Role::a ? m : n) * k * number(kernels::packed_items(problem, role, problem.batch)) / per_vector;
    time += price.dispatch + loads / price.lanes * (per_vector * price.storage_load + price.storage_vector) / running;
    if (role == Role::b) programs += 0.3;
  }
  if (parts > 1) {
    time += price.dispatch + m * n * batch / price.lanes * (number(parts) * price.storage_load + price.finish) / running;
    programs += 0.3;
  }
  return 1e-9 * (time + (price.compile * programs + price.compile_multiply_add * cost.written_out) / runs);
}

}  // namespace glgemm
