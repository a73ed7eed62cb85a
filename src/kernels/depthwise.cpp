// depthwise.comp: a convolution in which each output channel is made of one input channel. No product: it is a step by itself.
#include "kernels/family.hpp"
#include "kernels/interface.hpp"

namespace glgemm::kernels {
namespace of_depthwise {

struct Depthwise {
  int filter_h = 3;
  int filter_w = 3;
  int stride = 1;
  int run = 4;
  int workgroup = 64;
};
constexpr Parameter<Depthwise> list[] = {
    {"filter_h", "FILTER_H", &Depthwise::filter_h, integers(0, 7), "the filter's height; 0: filters of all sizes"},
    {"filter_w", "FILTER_W", &Depthwise::filter_w, integers(0, 7), "the filter's width; 0: filters of all sizes"},
    {"stride", "STRIDE", &Depthwise::stride, powers_of_two(1, 2), "the stride along height and width"},
    {"run", "RUN", &Depthwise::run, powers_of_two(1, 8), "elements of the output along the width for each invocation"},
    {"workgroup", "WORKGROUP", &Depthwise::workgroup, powers_of_two(4, 256), "invocations"}};

constexpr About about{.name = "depthwise", .summary = "a convolution of each channel by itself: reads and writes it once"};

class DepthwiseFamily final : public FamilyOf<Family, about, list> {
  std::string conflict(const Depthwise& k) const override {
    if ((k.filter_h == 0) != (k.filter_w == 0))
      return fmt::format("depthwise: filter_h={} and filter_w={}: both are 0, or none", k.filter_h, k.filter_w);
    if (k.filter_h == 0 && (k.stride != 1 || k.run != 1))
      return fmt::format("depthwise: stride={} and run={} are 1 where filters have any size", k.stride, k.run);
    return {};
  }
  std::array<int, 3> workgroup(const Kernel& kernel) const override { return {read(kernel).workgroup, 1, 1}; }
  bool declares(const ProgramKey& key, unsigned buffer) const override {
    return (buffer == binding_a && key.vector_reads != VectorReads::image) || buffer == binding_b || buffer == binding_c ||
           ((buffer == binding_d || buffer == binding_bias) && declares_of_epilogue(key, buffer));
  }
  bool has_panels_uniform(const ProgramKey&) const override { return false; }
  bool has_parts_uniform(const ProgramKey&) const override { return false; }
  bool has_task_uniform() const noexcept override { return true; }
};

}  // namespace of_depthwise

const Family& family_depthwise() {
  static constexpr of_depthwise::DepthwiseFamily family;
  return family;
}

}  // namespace glgemm::kernels
