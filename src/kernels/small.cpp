// small.comp: many items of a batch to a workgroup, a block of one item's C for each invocation.
#include <algorithm>

#include "base/rounding.hpp"
#include "kernels/family.hpp"

namespace glgemm::kernels {
namespace of_small {

struct Small {
  int tile_m = 4;
  int tile_n = 4;
  int workgroup = 64;
};
constexpr Parameter<Small> list[] = {{"tile_m", "TM", &Small::tile_m, integers(1, 8), "rows of C for each invocation"},
                                     {"tile_n", "TN", &Small::tile_n, integers(1, 8), "columns of C for each invocation"},
                                     {"workgroup", "WORKGROUP", &Small::workgroup, powers_of_two(1, 1024), "invocations"}};

constexpr About about{.name = "small", .summary = "batches of small items: many items for each workgroup", .packs_items = true};

class SmallFamily final : public FamilyOf<ProductFamily, about, list> {
  MaxSizes max_sizes(const Kernel&) const override { return {.m = 64, .n = 64}; }
  std::string cannot(const Problem& problem, const Kernel& kernel, const Limits& limits) const override {
    const Small k = read(kernel);
    const std::int64_t blocks = ceil_div(problem.m, k.tile_m) * ceil_div(problem.n, k.tile_n);
    const std::int64_t most = std::min(limits.groups[0], limits.groups_product) * k.workgroup;
    if (blocks <= most) return {};
    return fmt::format("{} needs {} invocations for an item; the driver allows {} in one dispatch", to_string(kernel), blocks,
                       most);
  }

  std::array<int, 3> workgroup(const Kernel& kernel) const override { return {read(kernel).workgroup, 1, 1}; }
  Block block_of(const Kernel& kernel) const override {
    const Small k = read(kernel);
    return {k.tile_m, k.tile_n};
  }

  Traffic traffic(const Problem& problem, const Kernel& kernel) const override {
    // An invocation reads its rows and columns once; those beyond the edge repeat the last one.
    const Small k = read(kernel);
    const double m = static_cast<double>(problem.m), n = static_cast<double>(problem.n);
    const double down = static_cast<double>(ceil_div(problem.m, k.tile_m)),
                 across = static_cast<double>(ceil_div(problem.n, k.tile_n));
    return {.buffer_reads_of_a = across * (m > 0 ? down * k.tile_m / m : 0),
            .buffer_reads_of_b = down * (n > 0 ? across * k.tile_n / n : 0)};
  }

  std::int64_t k_step(const Kernel&) const override { return 1; }
  Loops loops(const Kernel& kernel) const override {
    const Small k = read(kernel);
    return {.outside = 0, .of_a_step = 1 + k.tile_n + k.tile_m * (1 + k.tile_n)};
  }

  Cost cost(const Problem&, const Kernel& kernel, const Limits&, const CostTerms& terms) const override {
    const Small k = read(kernel);
    const double elements = k.tile_m * k.tile_n;
    return {.step = (k.tile_m + k.tile_n) * terms.price.storage_load + elements * terms.multiply_add,
            .elements = elements,
            .finish = terms.price.finish,
            .written_out = elements};
  }
  std::vector<Kernel> candidates(const Problem& problem, const Limits& limits, Precision) const override {
    if (problem.batch <= 1) return {};
    if (emulates_doubles(sum_type(problem), limits)) return {make({.tile_m = 1, .tile_n = 1})};
    if (shares_through_memory(limits) && is_complex(sum_type(problem))) return {make({.tile_m = 4, .tile_n = 2})};
    // Midgard has too few registers for 16 sums beside the decoding of codes.
    if (limits.device_class == DeviceClass::arm_midgard && (problem.a.format.quantization || problem.b.format.quantization))
      return {make({.tile_m = 2, .tile_n = 2})};
    std::vector<Kernel> result{make({.tile_m = 4, .tile_n = 4})};
    const bool zeros = problem.a.format.quantization.zeros || problem.b.format.quantization.zeros;
    const std::int64_t sums = 64 * element_bytes(sum_type(problem)) / 4;
    // Parts of complex products are values of their own. So are zeros of groups, for which Apple's compiler lacks 8 registers,
    // and that for Adreno 5xx 10 of its 192 with codes of 8 bits.
    const std::int64_t of_zeros = limits.device_class == DeviceClass::adreno_5xx ? 2 * sums : sums;
    const std::int64_t parts = is_complex(sum_type(problem)) ? sums / 2 : zeros ? of_zeros : 0;
    if (limits.cpu || sums + parts < traits(limits).max_registers) result.push_back(make({.tile_m = 8, .tile_n = 8}));
    return result;
  }
  std::vector<Kernel> space(const Problem& problem, const Limits& limits) const override {
    std::vector<Kernel> result;
    if (problem.batch <= 1) return result;
    for (const int m : {1, 2, 4, 8})
      for (const int n : {1, 2, 4, 8})
        for (const int size : limits.cpu ? std::array{8, 64} : std::array{64, 128}) result.push_back(make({m, n, size}));
    return result;
  }
};

}  // namespace of_small

const ProductFamily& family_small() {
  static constexpr of_small::SmallFamily family;
  return family;
}

}  // namespace glgemm::kernels
