// row.comp: neighbouring elements of a row of C for each invocation.
#include "base/rounding.hpp"
#include "kernels/family.hpp"

namespace glgemm::kernels {
namespace {

struct Row {
  int tile_n = 4;
  int workgroup = 32;
};
constexpr Parameter<Row> list[] = {{"tile_n", "TN", &Row::tile_n, powers_of_two(1, 8), "columns of C for each invocation"},
                                   {"workgroup", "WORKGROUP", &Row::workgroup, powers_of_two(4, 256), "invocations"}};

constexpr About about{.name = "row", .summary = "a part of a row of C for each invocation", .takes_precision = true};

class RowFamily final : public FamilyOf<ProductFamily, about, list> {
  MaxSizes max_sizes(const Kernel&) const override { return {}; }
  std::array<int, 3> workgroup(const Kernel& kernel) const override { return {read(kernel).workgroup, 1, 1}; }
  Block block_of(const Kernel& kernel) const override {
    const Row k = read(kernel);
    return {1, std::int64_t{k.tile_n} * k.workgroup};
  }
  Traffic traffic(const Problem& problem, const Kernel&) const override {
    return {.buffer_reads_of_a = static_cast<double>(problem.n), .buffer_reads_of_b = static_cast<double>(problem.m)};
  }
  std::int64_t k_step(const Kernel&) const override { return 1; }
  Loops loops(const Kernel& kernel) const override {
    const int columns = read(kernel).tile_n;
    return {.outside = columns, .of_a_step = columns};
  }
  Cost cost(const Problem&, const Kernel& kernel, const Limits&, const CostTerms& terms) const override {
    const double elements = read(kernel).tile_n;
    return {.step = elements * (2 * terms.price.storage_load + terms.multiply_add),
            .elements = elements,
            .finish = terms.price.finish,
            .written_out = 1};
  }
  std::vector<Kernel> candidates(const Problem&, const Limits&, Precision) const override { return {make({})}; }
  std::vector<Kernel> space(const Problem&, const Limits&) const override { return {make({}), make({.tile_n = 8})}; }
};

}  // namespace

const ProductFamily& family_row() {
  static constexpr RowFamily family;
  return family;
}

}  // namespace glgemm::kernels
