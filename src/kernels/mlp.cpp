// mlp.comp: several fully connected layers for a block of samples. No product: it is a step by itself.
#include <algorithm>
#include <cmath>

#include "base/rounding.hpp"
#include "kernels/family.hpp"
#include "kernels/kernels.hpp"

namespace glgemm::kernels {
namespace of_mlp {

struct MlpKernel {
  int width = 64;
  int tile_m = 8;
  int tile_n = 8;
  int lanes = 8;
  int groups = 8;
  int step_k = 16;
  int broadcast = 1;
  int vectors = 0;
};
constexpr Parameter<MlpKernel> list[] = {
    {"width", "WIDTH", &MlpKernel::width, multiples_of(16, 16, 256), "the most inputs and outputs of a layer"},
    {"tile_m", "TILE_M", &MlpKernel::tile_m, powers_of_two(4, 16), "outputs for each invocation"},
    {"tile_n", "TILE_N", &MlpKernel::tile_n, powers_of_two(4, 16), "samples for each invocation"},
    {"lanes", "LANES", &MlpKernel::lanes, powers_of_two(1, 64), "invocations along the samples"},
    {"groups", "GROUPS", &MlpKernel::groups, integers(1, 64),
     "invocations along the outputs, which share what lies in shared memory; 1: nothing is shared"},
    {"step_k", "STEP_K", &MlpKernel::step_k, powers_of_two(4, 32), "inputs whose weights are in shared memory at a time"},
    {"broadcast", "BROADCAST", &MlpKernel::broadcast, powers_of_two(1, 8),
     "with one group: lanes of a subgroup that read different weights and tell each other; 1: each reads all"},
    {"vectors", "BY_VECTORS", &MlpKernel::vectors, integers(0, 15),
     "what is read or written 16 bytes at a time, a sum of 1: the input; 2: the weights of layers where they lie so; 4: the "
     "output; 8: with "
     "2, the weights of all layers"}};

constexpr About about{.name = "mlp", .summary = "several layers of a network: what is between them stays on the chip"};

class MlpFamily final : public FamilyOf<Family, about, list> {
 public:
  static MlpKernel values(const Kernel& kernel) { return read(kernel); }
  Kernel kernel(const MlpKernel& values) const { return make(values); }

 private:
  std::string conflict(const MlpKernel& k) const override {
    if (k.groups > 1 && k.groups * k.tile_m != k.width)
      return fmt::format("mlp: {} groups of {} outputs are not width={}", k.groups, k.tile_m, k.width);
    if (k.groups > 1 && k.width % k.step_k != 0)
      return fmt::format("mlp: width={} is no multiple of step_k={}", k.width, k.step_k);
    if (k.groups == 1 && k.tile_m < 8) return fmt::format("mlp: tile_m={} is 8 or 16 with one group", k.tile_m);
    if ((k.vectors & 10) == 8) return fmt::format("mlp: vectors={} has 8 without 2", k.vectors);
    if (k.groups > 1 && k.lanes * k.groups * 4 % k.step_k != 0)
      return fmt::format("mlp: workgroups of {} invocations load no whole lines of step_k={}", k.lanes * k.groups, k.step_k);
    if (k.broadcast > 1 && (k.groups > 1 || k.broadcast != k.lanes))
      return fmt::format("mlp: broadcast={} is for one group of as many lanes; this has {} groups of {}", k.broadcast, k.groups,
                         k.lanes);
    return {};
  }
  std::vector<Macro> derived_macros(const MlpKernel& k) const override {
    return {{"FEW_ROWS", k.tile_m / 4}, {"WORKGROUP", k.lanes * k.groups}};
  }
  std::array<int, 3> workgroup(const Kernel& kernel) const override {
    const MlpKernel k = read(kernel);
    return {k.lanes * k.groups, 1, 1};
  }
  bool declares(const ProgramKey& key, unsigned buffer) const override {
    const int images = key.vector_reads == VectorReads::image ? read(key.kernel).vectors : 0;
    return (buffer == binding_a && (images & 1) == 0) || (buffer == binding_b && (images & 2) == 0) || buffer == binding_c ||
           buffer == binding_bias;
  }
  bool has_panels_uniform(const ProgramKey&) const override { return false; }
  bool has_parts_uniform(const ProgramKey&) const override { return false; }
};

constexpr MlpFamily family;

std::int64_t shared_bytes(const MlpKernel& k) {
  return k.groups == 1 ? 0 : std::int64_t{4} * k.width * (k.lanes * k.tile_n + k.step_k + 4);
}

}  // namespace of_mlp

using of_mlp::MlpKernel;

const Family& family_mlp() {
  return of_mlp::family;
}

std::int64_t shared_bytes_of_mlp(const Kernel& kernel) {
  return of_mlp::shared_bytes(of_mlp::MlpFamily::values(kernel));
}

std::int64_t samples_of_mlp(const Kernel& kernel) {
  const MlpKernel k = of_mlp::MlpFamily::values(kernel);
  return std::int64_t{k.lanes} * k.tile_n;
}

std::vector<Kernel> mlp_candidates(std::span<const Problem> layers, const Limits& limits) {
  std::vector<Kernel> result;
  std::int64_t widest = 1;
  for (const Problem& layer : layers) widest = std::max({widest, layer.m, layer.k});
  if (widest > 256) return result;
  MlpKernel k{.width = static_cast<int>(round_up(widest, 16))};
  const auto add = [&] {
    const std::int64_t invocations = std::int64_t{k.lanes} * k.groups;
    if (invocations <= std::min(limits.workgroup_invocations, limits.workgroup_size[0]) &&
        of_mlp::shared_bytes(k) <= limits.shared_bytes)
      result.push_back(of_mlp::family.kernel(k));
  };
  if (limits.cpu) {
    k.groups = 1;
    k.broadcast = broadcast_lanes(layers.front(), limits) == 8 ? 8 : 1;
    // Larger tiles are faster by little, and take drivers' compilers seconds: see docs/performance.md.
    const auto has_enough = [&] { return layers.front().n >= k.lanes * k.tile_n * 2 * limits.concurrent_groups; };
    // 16 outputs share what is read of their inputs, where that computes few more than there are.
    const auto computed = [&](std::int64_t rows) {
      std::int64_t sum = 0;
      for (const Problem& layer : layers) sum += round_up(layer.m, rows) * layer.k;
      return sum;
    };
    if (k.broadcast > 1 && 10 * computed(16) <= 11 * computed(8)) k.tile_m = 16;
    for (k.tile_n = k.broadcast > 1 ? 128 / k.tile_m : 8; k.tile_n > 4 && !has_enough();) k.tile_n /= 2;
    for (; k.tile_n >= 4; k.tile_n /= 2) add();
    return result;
  }
  // Compilers for devices with few registers spill with 64 sums, Intel's with 32: tools/gpu-code --check has them compile this.
  // A subgroup, or two, are enough for a workgroup: many of these fit beside each other, and wait for each other's barriers less.
  const bool has_least = is_between(limits.device_class, DeviceClass::intel_gen7, DeviceClass::intel_xe2);
  const int most_sums = has_least ? 16 : traits(limits).max_registers <= 128 ? 32 : 64;
  for (int sums = most_sums; sums >= 16; sums /= 2) {
    k.tile_m = std::min(8, sums / 4);
    k.tile_n = sums / k.tile_m;
    k.groups = k.width / k.tile_m;
    for (k.lanes = 32; k.lanes >= 4; k.lanes /= 2)
      for (k.step_k = 16; k.step_k >= 4 && (k.lanes * k.groups <= 64 || k.lanes == 4); k.step_k /= 2) add();
  }
  std::stable_partition(result.begin(), result.end(), [&](const Kernel& kernel) {
    return shared_bytes_of_mlp(kernel) <= 24 * 1024;  // so that two workgroups, or more, run at a time
  });
  return result;
}

std::int64_t turns_of_mlp(std::span<const Problem> layers, const Kernel& kernel) {
  const MlpKernel k = of_mlp::MlpFamily::values(kernel);
  // The series and fractions of activation.glsl, of which a driver may run both for each element.
  const auto of_activation = [](ActivationKind kind) -> std::int64_t {
    switch (kind) {
      case ActivationKind::gelu_erf:
        return 130;
      case ActivationKind::gelu_tanh:
      case ActivationKind::tanh:
      case ActivationKind::softplus:
        return 24;
      default:
        return 4;
    }
  };
  const std::int64_t columns = k.tile_n / 4;
  std::int64_t turns = 2 * k.width * columns;  // the input and the output
  for (const Problem& layer : layers) {
    turns += ceil_div(layer.m, k.groups * k.tile_m) * (ceil_div(layer.k, 4) + k.tile_m) + 8;
    if (layer.activation > ActivationKind::leaky_relu)
      turns += ceil_div(layer.m, k.groups) * columns * 4 * (of_activation(layer.activation) + 1);
  }
  return turns;
}

double expected_seconds_of_mlp(std::span<const Problem> layers, const Kernel& kernel, const Limits& limits) {
  const MlpKernel k = of_mlp::MlpFamily::values(kernel);
  const Prices price = prices(limits);
  const auto number = [](std::int64_t x) { return static_cast<double>(x); };
  const double invocations = k.lanes * k.groups, in_step = std::ceil(invocations / price.lanes), columns = k.tile_n / 4.0;
  const double vector = k.groups > 1 ? price.shared_vector
                        : limits.cpu ? 2  // an array of the invocation's own, which the first cache has
                                     : price.storage_vector;
  const double weights = k.groups > 1 ? price.shared_vector : price.image_vector;
  double of_group = price.group, outputs = 0;
  for (const Problem& layer : layers) {
    const bool few = k.groups > 1 && layer.m <= k.groups * k.tile_m / 4;
    const double rows = few ? k.tile_m / 4.0 : k.tile_m, turns = std::ceil(number(layer.m) / (rows * k.groups));
    const double of_k = rows * k.tile_n * price.multiply_add + columns * vector + rows * weights / 4;
    double one = turns * (number(round_up(layer.k, 4)) * of_k + rows * columns * 4 * vector);
    if (k.groups > 1)
      one += 2 * price.barrier * std::ceil(number(layer.k) / k.step_k) +
             number(layer.m * layer.k) / invocations * price.storage_load;
    of_group += in_step * one;
    outputs = number(layer.m);
  }
  const double moved = (number(layers.front().k) + outputs) * k.lanes * k.tile_n / invocations;
  of_group += in_step * moved * price.storage_vector / 4;
  const double units = std::max(1.0, number(limits.concurrent_groups) / price.groups);
  const double groups = std::ceil(number(layers.front().n) / (k.lanes * k.tile_n));
  const double bytes = 4 * (number(layers.front().k) + outputs) * number(layers.front().n);
  return 1e-9 * (price.start + price.dispatch + std::max(std::ceil(groups / units) * of_group, bytes * price.memory / units));
}

}  // namespace glgemm::kernels
