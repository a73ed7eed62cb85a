// naive.comp: one invocation for each element of C, no shared memory. It runs on every driver.
#include "kernels/family.hpp"

namespace glgemm::kernels {
namespace of_naive {

struct Naive {
  int workgroup_x = 8;
  int workgroup_y = 8;
};
constexpr Parameter<Naive> list[] = {
    {"workgroup_x", "WORKGROUP_X", &Naive::workgroup_x, powers_of_two(1, 32), "columns of C for each workgroup"},
    {"workgroup_y", "WORKGROUP_Y", &Naive::workgroup_y, powers_of_two(1, 32), "rows of C for each workgroup"}};

constexpr About about{.name = "naive",
                      .summary = "one invocation for each element of C; runs on every driver",
                      .takes_precision = true,
                      .default_slice = 64};  // the paper's

class NaiveFamily final : public FamilyOf<ProductFamily, about, list> {
  MaxSizes max_sizes(const Kernel&) const override { return {}; }

  std::array<int, 3> workgroup(const Kernel& kernel) const override {
    const Naive k = read(kernel);
    return {k.workgroup_x, k.workgroup_y, 1};
  }
  Block block_of(const Kernel& kernel) const override {
    const Naive k = read(kernel);
    return {k.workgroup_y, k.workgroup_x};
  }

  Traffic traffic(const Problem& problem, const Kernel&) const override {
    return {.buffer_reads_of_a = static_cast<double>(problem.n), .buffer_reads_of_b = static_cast<double>(problem.m)};
  }

  std::int64_t k_step(const Kernel&) const override { return 1; }
  Loops loops(const Kernel&) const override { return {.outside = 0, .of_a_step = 1}; }

  Cost cost(const Problem&, const Kernel&, const Limits&, const CostTerms& terms) const override {
    return {
        .step = 2 * terms.price.storage_load + terms.multiply_add, .elements = 1, .finish = terms.price.finish, .written_out = 1};
  }
  std::vector<Kernel> candidates(const Problem&, const Limits&, Precision) const override { return {make({})}; }
  std::vector<Kernel> space(const Problem&, const Limits&) const override {
    return {make({}), make({.workgroup_x = 32, .workgroup_y = 1})};
  }
};

}  // namespace of_naive

const ProductFamily& family_naive() {
  static constexpr of_naive::NaiveFamily family;
  return family;
}

}  // namespace glgemm::kernels
