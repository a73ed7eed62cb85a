// naive.comp: one invocation for each element of C, no shared memory. It runs on every driver.
#include "kernels/family.hpp"

namespace glgemm::kernels {
namespace {

struct Naive {
  int workgroup_x = 8;
  int workgroup_y = 8;
};
constexpr Parameter<Naive> list[] = {
    {"workgroup_x", "WORKGROUP_X", &Naive::workgroup_x, powers_of_two(1, 32), "columns of C for each workgroup"},
    {"workgroup_y", "WORKGROUP_Y", &Naive::workgroup_y, powers_of_two(1, 32), "rows of C for each workgroup"}};

class NaiveFamily final : public FamilyOf<ProductFamily, list> {
  std::string_view name() const noexcept override { return "naive"; }
  std::string_view summary() const noexcept override { return "one invocation for each element of C; runs on every driver"; }
  std::string conflict(const Naive&) const override { return {}; }
  std::vector<Macro> derived_macros(const Naive&) const override { return {}; }

  MaxSizes max_sizes(const Kernel&) const override { return {MaxSizes::unlimited, MaxSizes::unlimited, MaxSizes::unlimited}; }
  std::string cannot(const Problem&, const Kernel&, const Limits&) const override { return {}; }

  std::array<int, 3> workgroup(const Kernel& kernel) const override {
    const Naive k = read(kernel);
    return {k.workgroup_x, k.workgroup_y, 1};
  }
  Tile tile(const Kernel& kernel) const override {
    const Naive k = read(kernel);
    return {k.workgroup_y, k.workgroup_x};
  }
  bool packs_items() const override { return false; }
  std::int64_t shared_bytes(const Kernel&, Type) const override { return 0; }
  std::int64_t registers(const Kernel&, Type) const override { return 0; }

  Panels panels(const Kernel&) const override { return Panels::none; }
  std::int64_t panel_width(const Kernel&, Role, Type) const override { return 0; }
  WideReads wide_reads() const override { return WideReads::none; }
  bool reads_wide(const Kernel&, const Problem&, std::int64_t, std::int64_t, std::int64_t) const override { return false; }
  bool reads_wide_as_image(const Kernel&, const Problem&, const Limits&, std::int64_t) const override { return false; }
  Traffic traffic(const Problem& problem, const Kernel&) const override {
    return {.a_from_buffer = static_cast<double>(problem.n), .b_from_buffer = static_cast<double>(problem.m)};
  }

  std::int64_t k_step(const Kernel&) const override { return 1; }
  Loops loops(const Kernel&) const override { return {.outside = 0, .of_a_step = 1}; }
  bool can_split() const override { return false; }
  bool takes_precision() const override { return true; }

  bool runs_transposed(const Problem&) const override { return false; }
  std::int64_t default_slice() const override { return 64; }  // the paper's
  Cost cost(const Problem&, const Kernel&, const Limits&, const CostTerms& terms) const override {
    return {
        .step = 2 * terms.price.storage_load + terms.multiply_add, .elements = 1, .finish = terms.price.finish, .written_out = 1};
  }
  std::vector<Kernel> candidates(const Problem&, const Limits&, Precision) const override { return {make({})}; }
  std::vector<Kernel> space(const Problem&, const Limits&) const override {
    return {make({}), make({.workgroup_x = 32, .workgroup_y = 1})};
  }

  Sample sample() const override {
    return {.quick = {make({.workgroup_x = 4, .workgroup_y = 8})},
            .quick_share = 1,
            .all = {make({}), make({.workgroup_x = 32, .workgroup_y = 1}), make({.workgroup_x = 1, .workgroup_y = 16})}};
  }
};

}  // namespace

const ProductFamily& family_naive() {
  static constexpr NaiveFamily family;
  return family;
}

}  // namespace glgemm::kernels
