// How long a kernel is expected to take: what its family says of its inner loop, its workgroups, and the steps beside it.
#include "plan/cost_model.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/kernels.hpp"

namespace glgemm {
namespace {

/// The invocations that a compute unit of a GPU runs at a time, at most, and with as many registers as DeviceTraits calls good.
constexpr double max_at_once = 2048, roomy_at_once = 512;

/// The bytes of A, B and C. As doubles, since a problem may be larger than its bytes can be counted.
double bytes_of_operands(const Problem& problem) {
  const auto number = [](std::int64_t x) { return static_cast<double>(x); };
  const double m = number(problem.m), n = number(problem.n), k = number(problem.k);
  constexpr std::int64_t some = 1024;  // whole blocks of codes
  double bytes = 0;
  for (const auto& [x, elements] : {std::pair{&problem.a, m * k}, std::pair{&problem.b, k * n}, std::pair{&problem.c, m * n}})
    bytes += elements * number(storage_bytes(x->format, some)) / some * (x->batch_stride == 0 ? 1 : number(problem.batch));
  return bytes;
}

}  // namespace

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
  const double k_of_part = k / number(parts), ending = cost.elements * cost.finish;
  const double group_time = price.group + vectors * (k_of_part * (cost.step + spills) + ending) * waiting;
  // A compute unit that has many groups is as fast as its instructions. Where it has few, each waits for its loads and for its
  // own instructions; and none is faster than the device's memory. All three count, the longest most.
  const double units = std::max(1.0, number(limits.concurrent_groups) / price.groups);
  const double of_unit = std::ceil(groups * number(parts) / units);
  const double with_registers = roomy_at_once * number(device.registers) / number(std::max<std::int64_t>(32, registers));
  const double at_once = std::max(1.0, std::floor(std::min(with_registers, max_at_once) / invocations));
  const double alone =
      k_of_part * (cost.waits * price.load_latency + cost.shared_waits * price.shared_latency + price.alone * cost.step) +
      price.alone * ending;
  const double busy = of_unit * group_time, idle = std::ceil(of_unit / at_once) * alone;
  const double reading = bytes_of_operands(problem) * price.memory / units;
  const double running = price.load_latency > 0 ? std::hypot(busy, idle, reading) : busy;
  double time = price.start + price.dispatch + running;
  double programs = 1;
  for (const Role role : {Role::a, Role::b}) {
    if (kernels::panel_width(kernel, role, sum_type(problem)) == 0) continue;
    const double loads = (role == Role::a ? m : n) * k * number(kernels::packed_items(problem, role, problem.batch)) / per_vector;
    // Many invocations that each decode a code wait less than those of a product's blocks.
    const double codes = 0.4 * kernels::code_price(format_of(problem, role).quantization, limits) * price.multiply_add;
    time += price.dispatch + std::max(loads / price.lanes * (per_vector * (price.storage_load + codes) + price.storage_vector),
                                      loads * 2 * 16 * price.memory) /
                                 units;
    if (role == Role::b) programs += 0.3;
  }
  if (parts > 1) {
    time += price.dispatch + m * n * batch / price.lanes * (number(parts) * price.storage_load + price.finish) / units;
    programs += 0.3;
  }
  return 1e-9 * (time + (price.compile * programs + price.compile_multiply_add * cost.written_out) / runs);
}

double expected_seconds(const ConvolutionPlan& plan, const Limits& limits, double work) {
  const kernels::Prices price = kernels::prices(limits);
  const Type input = plan.problem.input_type, sums = sum_type(input, plan.problem.filters.type);
  const double units = std::max(1.0, static_cast<double>(limits.concurrent_groups) / price.groups),
               per_vector = 16.0 / static_cast<double>(element_bytes(plan.depthwise ? sums : input));
  const double load = plan.program->vector_reads != VectorReads::none ? price.storage_vector / per_vector : price.storage_load;
  // Work counts the elements of a copy, and the multiply-adds of a depthwise convolution.
  const double rest =
      plan.depthwise ? price.multiply_add * kernels::multiply_adds(sums, limits) : price.storage_vector / per_vector;
  return 1e-9 * (price.dispatch + work * (load + rest) / price.lanes / units);
}

}  // namespace glgemm
