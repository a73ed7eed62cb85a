// reduce.comp: adds up the sums over the parts of k. A step after a product.
#include "kernels/family.hpp"
#include "kernels/interface.hpp"

namespace glgemm::kernels {
namespace of_reduce {

struct Reduce {
  int workgroup = 64;
};
constexpr Parameter<Reduce> list[] = {{"workgroup", "WORKGROUP", &Reduce::workgroup, powers_of_two(1, 1024), "invocations"}};

constexpr About about{.name = "reduce", .summary = "adds up the sums over the parts of k, after a product"};

class ReduceFamily final : public FamilyOf<Family, about, list> {
  std::array<int, 3> workgroup(const Kernel& kernel) const override { return {read(kernel).workgroup, 1, 1}; }
  bool declares(const ProgramKey& key, unsigned buffer) const override {
    return buffer == binding_c || buffer == binding_partial || (buffer == binding_offsets && reads_offsets(key)) ||
           ((buffer == binding_d || buffer == binding_bias) && declares_of_epilogue(key, buffer)) ||
           (buffer == binding_items && key.items);
  }
  bool has_panels_uniform(const ProgramKey&) const override { return false; }
  bool has_parts_uniform(const ProgramKey&) const override { return true; }
};

}  // namespace of_reduce

const Family& family_reduce() {
  static constexpr of_reduce::ReduceFamily family;
  return family;
}

}  // namespace glgemm::kernels
