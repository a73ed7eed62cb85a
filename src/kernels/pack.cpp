// pack.comp: brings an operand into panels. A step before a product.
#include "kernels/family.hpp"
#include "kernels/interface.hpp"

namespace glgemm::kernels {
namespace of_pack {

struct Pack {
  int workgroup = 64;
};
constexpr Parameter<Pack> list[] = {{"workgroup", "WORKGROUP", &Pack::workgroup, powers_of_two(1, 1024), "invocations"}};

constexpr About about{.name = "pack", .summary = "brings an operand into panels, before a product"};

class PackFamily final : public FamilyOf<Family, about, list> {
  std::array<int, 3> workgroup(const Kernel& kernel) const override { return {read(kernel).workgroup, 1, 1}; }
  bool declares(const ProgramKey& key, unsigned buffer) const override {
    return buffer == binding_a || buffer == binding_partial || (buffer == binding_offsets && reads_offsets(key)) ||
           (buffer == binding_items && key.items) ||
           ((buffer == binding_scales || buffer == binding_zeros) && reads_array_of_quantization(key, buffer));
  }
  bool has_panels_uniform(const ProgramKey&) const override { return true; }
  bool has_parts_uniform(const ProgramKey&) const override { return false; }
};

}  // namespace of_pack

const Family& family_pack() {
  static constexpr of_pack::PackFamily family;
  return family;
}

}  // namespace glgemm::kernels
