// tiled.comp, the paper's kernel: a workgroup of tile x tile invocations computes a block of C through shared memory.
#include "base/device_class.hpp"
#include "base/rounding.hpp"
#include "kernels/family.hpp"
#include "kernels/kernels.hpp"

namespace glgemm::kernels {
namespace of_tiled {

struct Tiled {
  int tile = 32;
};
constexpr Parameter<Tiled> list[] = {
    {"tile", "TILE", &Tiled::tile, powers_of_two(2, 32), "rows and columns of C for each workgroup, and its step along k"}};

constexpr About about{.name = "tiled",
                      .summary = "the paper's: square blocks through shared memory",
                      .takes_precision = true,
                      .default_slice = 64};  // the paper's

class TiledFamily final : public FamilyOf<ProductFamily, about, list> {
  MaxSizes max_sizes(const Kernel&) const override { return {}; }

  std::array<int, 3> workgroup(const Kernel& kernel) const override {
    const int tile = read(kernel).tile;
    return {tile, tile, 1};
  }
  Block block_of(const Kernel& kernel) const override {
    const int tile = read(kernel).tile;
    return {tile, tile};
  }
  std::int64_t shared_bytes(const Kernel& kernel, Type type) const override {
    const std::int64_t tile = read(kernel).tile;
    return 2 * element_bytes(accumulator(type)) * tile * tile;
  }

  Traffic traffic(const Problem& problem, const Kernel& kernel) const override {
    // Each block of C reads its rows of A and its columns of B once. Each invocation of the block, those beyond the edge
    // included, reads every element of its row and column from shared memory.
    const int tile = read(kernel).tile;
    Traffic result;
    result.buffer_reads_of_a = static_cast<double>(ceil_div(problem.n, tile));
    result.buffer_reads_of_b = static_cast<double>(ceil_div(problem.m, tile));
    result.shared_reads_of_a = result.buffer_reads_of_a * tile;
    result.shared_reads_of_b = result.buffer_reads_of_b * tile;
    return result;
  }

  std::int64_t k_step(const Kernel& kernel) const override { return read(kernel).tile; }
  Loops loops(const Kernel& kernel) const override { return {.outside = 0, .of_a_step = 1 + read(kernel).tile}; }

  Cost cost(const Problem&, const Kernel& kernel, const Limits&, const CostTerms& terms) const override {
    const Prices& price = terms.price;
    return {.step = 2 * price.shared_load + terms.multiply_add + (2 * price.storage_load + 2 * price.barrier) / read(kernel).tile,
            .elements = 1,
            .finish = price.finish,
            .written_out = 1,
            .waits = 1.0 / read(kernel).tile,
            .shared_waits = 1};
  }
  std::vector<Kernel> candidates(const Problem& problem, const Limits& limits, Precision) const override {
    if (emulates_doubles(sum_type(problem), limits)) return {make({16})};
    // With 1024 invocations each has few registers on Intel's GPUs, and complex doubles want many.
    if (!limits.cpu && sum_type(problem) == Type::c128 && traits(limits).max_registers <= 128) return {make({16})};
    // The compilers for Adreno up to 6xx keep a few numbers of 1024 invocations in memory.
    if (is_between(limits.device_class, DeviceClass::adreno_5xx, DeviceClass::adreno_6xx)) return {make({16})};
    if (limits.workgroup_invocations < 1024) return {make({8})};
    if (limits.cpu) return {make({32})};
    return {make({32}), make({16})};
  }
  std::vector<Kernel> space(const Problem&, const Limits&) const override { return {make({8}), make({16}), make({32})}; }
};

}  // namespace of_tiled

const ProductFamily& family_tiled() {
  static constexpr of_tiled::TiledFamily family;
  return family;
}

}  // namespace glgemm::kernels
