#include "support/samples.hpp"

#include <algorithm>
#include <iterator>

namespace glgemm::test {
namespace {

/// Kernels by their parameters, apart from the defaults. Chosen so that few programs reach each way through a shader.
struct Chosen {
  std::string_view family;
  std::vector<const char*> quick;
  int quick_share;
  std::vector<const char*> all;
};
const Chosen chosen[] = {
    {"outer",
     {"tile_m=4,tile_n=4,max_k=2,workgroup=4"},
     4,
     {"", "tile_m=4,tile_n=16,max_k=1,workgroup=4", "tile_m=2,tile_n=4,max_k=2,workgroup=16"}},
    {"small", {"tile_m=2,tile_n=3"}, 2, {"", "tile_m=1,tile_n=8,workgroup=32", "tile_m=3,tile_n=2,workgroup=128"}},
    {"gemv",
     {"tile_m=2,tile_n=2", "tile_m=1,tile_n=1,lanes_k=4", "tile_m=1,tile_n=4,panels=2",
      "tile_m=1,tile_n=4,lanes_k=4,workgroup=16,shared_b=1"},
     8,
     {"tile_m=2,tile_n=4", "tile_m=1,tile_n=2,lanes_k=4", "tile_m=4,tile_n=1,panels=1", "tile_m=8,tile_n=8,panels=2",
      "tile_m=2,tile_n=1,lanes_k=32,workgroup=64", "tile_m=4,tile_n=2,broadcast=8",
      "tile_m=1,tile_n=1,lanes_k=16,workgroup=16,chunks=0", "tile_m=2,tile_n=1,lanes_k=8,workgroup=64,shared_b=1"}},
    {"register",
     {"tile_m=4,tile_n=4,step_k=2,workgroup=4,panels=2", "tile_m=4,tile_n=4,step_k=1,workgroup=4,panels=0",
      "tile_m=4,tile_n=4,step_k=2,workgroup=4,panels=1", "tile_m=4,tile_n=4,step_k=1,workgroup=4,panels=1,workgroup_y=2",
      "tile_m=8,tile_n=4,step_k=2,workgroup=4,panels=2,broadcast=4"},
     8,
     {"tile_m=4,tile_n=4,step_k=2,workgroup=4", "tile_m=8,tile_n=4,step_k=1,workgroup=8,panels=0",
      "tile_m=12,tile_n=8,step_k=4,workgroup=8,panels=1", "tile_m=4,tile_n=4,step_k=1,workgroup=8,panels=0,workgroup_y=4",
      "tile_m=8,tile_n=4,step_k=2,workgroup=8,panels=1,workgroup_y=8",
      "tile_m=12,tile_n=8,step_k=4,workgroup=8,panels=2,broadcast=8"}},
    {"blocked",
     {"block_m=16,block_n=16,block_k=8,tile_m=4,tile_n=4,step_k=2",
      "block_m=16,block_n=16,block_k=8,tile_m=4,tile_n=4,step_k=2,double_buffer=1,panels=1"},
     8,
     {"block_m=16,block_n=32,block_k=8,tile_m=4,tile_n=4", "block_m=32,block_n=16,block_k=16,tile_m=4,tile_n=8,panels=1"}},
    {"tiled", {"tile=8"}, 2, {"tile=2", "tile=4", "tile=8", "tile=16", "tile=32"}},
    {"naive", {"workgroup_x=4"}, 1, {"", "workgroup_x=32,workgroup_y=1", "workgroup_x=1,workgroup_y=16"}}};

}  // namespace

Sample sample_by_rule(const Kernel& defaults) {
  const auto can_run = [](const Kernel& kernel) {
    return why_not({.m = 1, .n = 1, .k = 1}, kernel, {.shared_bytes = 1 << 20, .image_buffer_bytes = 1 << 30}).empty();
  };
  Sample result{.quick = {}, .quick_share = 2, .all = {defaults}};
  Kernel least = defaults;
  for (const KernelParameter& parameter : parameters(defaults)) {
    // The least value that goes with the parameters before it.
    for (const int value : parameter.legal)
      if (const Kernel kernel = with(least, parameter.name, value); can_run(kernel)) {
        least = kernel;
        break;
      }
    const Kernel large = with(defaults, parameter.name, parameter.legal.back());
    if (can_run(large) && std::ranges::find(result.all, large) == result.all.end()) result.all.push_back(large);
  }
  result.quick.push_back(least);
  return result;
}

std::vector<Sample> samples() {
  std::vector<Sample> result;
  for (const Kernel& defaults : kernel_table()) {
    const Chosen* const family = std::ranges::find(chosen, name(defaults), &Chosen::family);
    if (family == std::end(chosen)) {
      result.push_back(sample_by_rule(defaults));
      continue;
    }
    const auto parsed = [&](const std::vector<const char*>& list) {
      std::vector<Kernel> kernels;
      for (const std::string_view text : list)
        kernels.push_back(text.empty() ? defaults : parse_kernel(std::string(family->family) + ":" + std::string(text)));
      return kernels;
    };
    result.push_back({parsed(family->quick), family->quick_share, parsed(family->all)});
  }
  return result;
}

std::vector<std::string_view> families_with_samples() {
  std::vector<std::string_view> result;
  for (const Chosen& each : chosen) result.push_back(each.family);
  return result;
}

}  // namespace glgemm::test
