// border.comp: copies images with a border of zeros. A step before a convolution's products.
#include "kernels/family.hpp"
#include "kernels/interface.hpp"

namespace glgemm::kernels {
namespace of_border {

struct Border {
  int workgroup = 64, bits = 32;
};
constexpr Parameter<Border> list[] = {{"workgroup", "WORKGROUP", &Border::workgroup, powers_of_two(1, 1024), "invocations"},
                                      {"bits", "BITS", &Border::bits, powers_of_two(8, 32), "of an element"}};

constexpr About about{.name = "border", .summary = "copies images with a border of zeros, before a convolution"};

class BorderFamily final : public FamilyOf<Family, about, list> {
  std::array<int, 3> workgroup(const Kernel& kernel) const override { return {read(kernel).workgroup, 1, 1}; }
  bool declares(const ProgramKey& key, unsigned buffer) const override {
    return buffer == binding_partial || (buffer == binding_a && key.vector_reads != VectorReads::image);
  }
  bool has_panels_uniform(const ProgramKey&) const override { return false; }
  bool has_parts_uniform(const ProgramKey&) const override { return false; }
};

}  // namespace of_border

const Family& family_border() {
  static constexpr of_border::BorderFamily family;
  return family;
}

}  // namespace glgemm::kernels
