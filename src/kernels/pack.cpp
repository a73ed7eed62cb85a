// pack.comp: brings an operand into panels. A step before a product.
#include "kernels/family.hpp"

namespace glgemm::kernels {
namespace {

struct Pack {
  int workgroup = 64;
};
constexpr Parameter<Pack> list[] = {{"workgroup", "WORKGROUP", &Pack::workgroup, powers_of_two(1, 1024), "invocations"}};

class PackFamily final : public FamilyOf<Family, list> {
  std::string_view name() const noexcept override { return "pack"; }
  std::string_view summary() const noexcept override { return "brings an operand into panels, before a product"; }
  std::array<int, 3> workgroup(const Kernel& kernel) const override { return {read(kernel).workgroup, 1, 1}; }
  bool declares(const ProgramKey& key, unsigned buffer) const override {
    return buffer == 0 || buffer == 6 || (buffer == 5 && key.items);
  }
  bool has_panels_uniform(const ProgramKey&) const override { return true; }
  bool has_parts_uniform(const ProgramKey&) const override { return false; }
  std::string conflict(const Pack&) const override { return {}; }
  std::vector<Macro> derived_macros(const Pack&) const override { return {}; }
};

}  // namespace

const Family& family_pack() {
  static constexpr PackFamily family;
  return family;
}

}  // namespace glgemm::kernels
