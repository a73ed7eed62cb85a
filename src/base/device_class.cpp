// The table of classes of devices, and the table of the names by which devices are recognised.
#include "base/device_class.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <numeric>
#include <string>

#include "base/text.hpp"

extern "C" const char GLGEMM_UNPROMISED = 0;

namespace glgemm {
namespace {

using enum DeviceClass;

// Sources:
//
//   NVIDIA    CUDA C++ Programming Guide, "Compute Capabilities": registers for each thread (63 on Fermi and small Keplers), and
//             results for each clock and multiprocessor; shared memory has 32 banks of 4 bytes. CUTLASS's f32
//             kernels take 128 registers: two groups of 256 threads on a multiprocessor.
//   AMD       The instruction set manuals of GCN 3, Vega, and RDNA to RDNA 4: 256 vector registers for an invocation. A SIMD has
//             256 for each of 64 lanes (GCN), of which 84 let three waves run, or 1024 for each of 32 (RDNA), of which 128 let
//             eight. Local data share: 128 bytes for each clock and compute unit of 64 lanes. RDNA 3 and 4 do two multiply-adds
//             a clock at best.
//   Intel     "The Compute Architecture of Intel Processor Graphics" Gen7.5, Gen8, Gen9 and Gen11, and the oneAPI GPU
//             Optimization Guide for later ones: 128 registers of 32 bytes (Xe2: 64 bytes) for a thread of 8, 16 or 32
//             invocations; shared local memory: 64 bytes for each clock and subslice of 64 lanes, 128 for later ones of 128.
//   Apple     Mesa's agx_compile.c: 256 registers of 16 bits for an invocation, of which 208 leave half of a core's 1024
//             invocations running. For shared memory no figure is published;
//             the table takes a core's data cache: 64 bytes for each clock (P. Turner's metal-benchmarks).
//   Adreno    Mesa's ir3 and freedreno_devices.py: 48 registers of four words, half as many in a wave of 128. For shared memory
//             no figure is published; the table takes Apple's.
//             Adreno 5xx: as many registers, the upper half of them with the shorter waves alone (ir3_compiler.c).
//   Mali      Mesa's compilers. Midgard: 16 registers of four words; 8 let two threads run, 4 let four. Bifrost and Valhall: 64
//             registers; 32 let twice as many threads run. Shared memory is cached memory.
//   Broadcom  "VideoCore IV 3D Architecture Reference Guide": subgroups of 16 invocations on 4 lanes of a QPU, which can add and
//             multiply at the same time; 8 QPUs on Raspberry Pi 4, 12 on 5. Mesa's v3d compiler: 64 registers with two threads,
//             16 with four. Shared memory as Mali's.
//   Memory    The makers' product pages: a usual device's bytes for each second over its f32 multiply-adds.
//   Doubles   The same manuals; 0.01 where the driver emulates them.
//
// Columns: the most registers and the good ones, bytes of shared memory and of memory for each multiply-add, doubles, compute
// units. The unknown device has what the least of the makers' desktop GPUs has.
constexpr auto table = std::to_array<DeviceTraits>({
    {{unknown, "unknown", "any other device"}, 96, 64, 1, 0.05, 0.5, 128},
    {{cpu, "cpu", "a driver that computes on a CPU: llvmpipe, zink on lavapipe"}, 16, 16, 1, 0.3, 0.5, 2},
    {{amd_gcn, "amd-gcn", "Radeon HD 7000, R7, R9, RX 400, RX 500 (GCN 1 to 4)"}, 256, 84, 2, 0.08, 0.06, 36},
    {{amd_vega, "amd-vega", "Radeon RX Vega, Radeon VII, Ryzen 2000G to 5000G (GCN 5)"}, 256, 84, 2, 0.08, 0.06, 56},
    {{amd_rdna1, "amd-rdna1", "Radeon RX 5000"}, 256, 128, 2, 0.09, 0.06, 40},
    {{amd_rdna2, "amd-rdna2", "Radeon RX 6000, Radeon 680M, Steam Deck"}, 256, 128, 2, 0.06, 0.06, 60},
    {{amd_rdna3, "amd-rdna3", "Radeon RX 7000, Radeon 700M and 800M"}, 256, 128, 1, 0.03, 0.03, 96},
    {{amd_rdna4, "amd-rdna4", "Radeon RX 9000"}, 256, 128, 1, 0.03, 0.03, 64},
    {{nvidia_kepler, "nvidia-kepler", "GeForce GTX 400 to 700 (Fermi, Kepler)"}, 63, 63, 0.67, 0.14, 0.04, 12},
    {{nvidia_maxwell, "nvidia-maxwell", "GeForce GTX 750, GTX 900"}, 255, 128, 1, 0.11, 0.03, 13},
    {{nvidia_pascal, "nvidia-pascal", "GeForce GTX 10, Tesla P4 to P100"}, 255, 128, 1, 0.07, 0.03, 20},
    {{nvidia_volta, "nvidia-volta", "Titan V, Tesla V100"}, 255, 128, 2, 0.11, 0.5, 80},
    {{nvidia_turing, "nvidia-turing", "GeForce GTX 16, RTX 20, Tesla T4"}, 255, 128, 2, 0.09, 0.03, 46},
    {{nvidia_ampere, "nvidia-ampere", "GeForce RTX 30, RTX A2000 to A6000, A10, A100"}, 255, 128, 1, 0.04, 0.016, 46},
    {{nvidia_ada, "nvidia-ada", "GeForce RTX 40, RTX Ada, L4, L40"}, 255, 128, 1, 0.025, 0.016, 76},
    {{nvidia_hopper, "nvidia-hopper", "H100, H200"}, 255, 128, 1, 0.13, 0.5, 132},
    {{nvidia_blackwell, "nvidia-blackwell", "GeForce RTX 50, RTX PRO, B200"}, 255, 128, 1, 0.035, 0.016, 84},
    {{intel_gen7, "intel-gen7", "HD Graphics 4000, Iris 5000 (Haswell)"}, 128, 64, 1, 0.12, 0.25, 2},
    {{intel_gen8, "intel-gen8", "HD Graphics 5000, Iris 6000 (Broadwell)"}, 128, 64, 1, 0.12, 0.25, 3},
    {{intel_gen9, "intel-gen9", "HD and UHD Graphics 500 and 600 (Skylake to Comet Lake)"}, 128, 64, 1, 0.15, 0.25, 3},
    {{intel_gen11, "intel-gen11", "Iris Plus (Ice Lake), UHD Graphics (Jasper Lake)"}, 128, 64, 1, 0.1, 0.01, 8},
    {{intel_gen12, "intel-gen12", "Iris Xe, UHD Graphics 700 (Tiger Lake to Raptor Lake)"}, 128, 64, 1, 0.06, 0.01, 6},
    {{intel_xe_hpg, "intel-xe-hpg", "Arc A (DG2), Core Ultra 1 and 200 (Meteor, Arrow Lake)"}, 128, 64, 1, 0.06, 0.01, 32},
    {{intel_xe2, "intel-xe2", "Arc B, Core Ultra 200V and 300 (Battlemage, Lunar Lake)"}, 128, 128, 1, 0.07, 0.06, 20},
    {{apple_m1, "apple-m1", "Apple M1 and M2, with Pro, Max and Ultra"}, 128, 104, 0.5, 0.05, 0.01, 8},
    {{adreno_5xx, "adreno-5xx", "Snapdragon 630 to 835 (Adreno 505 to 540)"}, 192, 96, 0.5, 0.11, 0.01, 4},
    {{adreno_6xx, "adreno-6xx", "Snapdragon 730 to 888, 8cx (Adreno 610 to 690)"}, 192, 96, 0.5, 0.06, 0.01, 3},
    {{adreno_7xx, "adreno-7xx", "Snapdragon 8 Gen 1 to 3, X Elite"}, 192, 96, 0.5, 0.05, 0.01, 6},
    {{adreno_8xx, "adreno-8xx", "Snapdragon 8 Elite (Adreno 830)"}, 192, 96, 0.5, 0.05, 0.01, 12},
    {{arm_midgard, "arm-midgard", "Mali-T600 to T880 (RK3288, RK3399)"}, 64, 32, 0.25, 0.2, 0.01, 4},
    {{arm_bifrost, "arm-bifrost", "Mali-G31 to G76 (RK3566, S905X3, S922X)"}, 64, 32, 0.25, 0.2, 0.01, 4},
    {{arm_valhall, "arm-valhall", "Mali-G57, G77 and later, Immortalis (RK3588, MT8192)"}, 64, 32, 0.25, 0.06, 0.01, 4},
    {{broadcom_v3d4, "broadcom-v3d4", "Raspberry Pi 4 (VideoCore VI)"}, 64, 32, 0.25, 0.8, 0.01, 8},
    {{broadcom_v3d7, "broadcom-v3d7", "Raspberry Pi 5 (VideoCore VII)"}, 64, 32, 0.25, 0.4, 0.01, 12},
});
static_assert([] {
  for (std::size_t i = 0; i < table.size(); ++i)
    if (table[i].info.device_class != static_cast<DeviceClass>(i)) return false;
  return table.back().info.device_class == broadcom_v3d7;
}());

/// Names by which a device is recognised: `maker` (if any) and one of `names`, which `|` keeps apart, both occur in
/// "GL_VENDOR GL_RENDERER", as whole words. `#` is a digit, a `*` at the end the rest of a word.
struct Name {
  DeviceClass device_class;
  std::string_view maker;
  std::string_view names;
};

// The first row that fits holds. What drivers on the CPU call themselves comes first. Names of chips come before names of
// products, since they say more: Mesa's drivers put them in brackets. Names of chips are from Mesa's include/pci_ids,
// src/amd/common/ac_gpu_info.c, src/freedreno/common/freedreno_devices.py and src/nouveau/headers. Names of products are the
// makers'.
constexpr auto names = std::to_array<Name>({
    {cpu, "", "llvmpipe|softpipe|swrast|swiftshader*"},

    {amd_gcn, "",
     "tahiti|pitcairn|verde|oland|hainan|bonaire|hawaii|kabini|kaveri|mullins|tonga|iceland|fiji|carrizo|stoney|polaris1#|vegam"},
    {amd_vega, "", "vega1#|vega20|raven*|renoir|arcturus|aldebaran|gfx9*"},
    {amd_rdna1, "", "navi1#|gfx101*"},
    {amd_rdna2, "",
     "navi2#|sienna_cichlid|navy_flounder|dimgrey_cavefish|beige_goby|vangogh|yellow_carp|rembrandt|raphael*|gfx103*"},
    {amd_rdna3, "", "navi3#|phoenix*|strix*|krackan*|gfx11*"},
    {amd_rdna4, "", "navi4#|gfx12*|radeon rx 90##*"},
    {amd_rdna3, "", "radeon rx 7###*|radeon pro w7###*|radeon 7##m|radeon 8##m|radeon 8##0s"},
    {amd_rdna2, "", "radeon rx 6###*|radeon pro w6###*|radeon 6##m|amd custom gpu 0###"},
    {amd_rdna1, "", "radeon rx 5###*|radeon pro w5###*"},
    {amd_vega, "", "radeon rx vega*|radeon vega|radeon pro vega|radeon vii|radeon pro vii"},
    {amd_gcn, "", "radeon rx 5##*|radeon rx 4##*|radeon pro wx|radeon r5|radeon r7|radeon r9|radeon hd 7###*|radeon hd 8###*"},
    {amd_vega, "", "radeonsi|radv"},
    {amd_vega, "ati technologies", "radeon"},

    {nvidia_kepler, "", "nvc*|nvd*|nve*|nvf*|nv10#"},
    {nvidia_maxwell, "", "nv11#|nv12#"},
    {nvidia_pascal, "", "nv13#"},
    {nvidia_volta, "", "nv14#"},
    {nvidia_turing, "", "nv16#"},
    {nvidia_ampere, "", "nv17#"},
    {nvidia_ada, "", "nv19#"},
    {nvidia_blackwell, "", "nv1b#"},
    {nvidia_kepler, "nvk", "gk1*|gk2*"},
    {nvidia_maxwell, "nvk", "gm1*|gm2*"},
    {nvidia_pascal, "nvk", "gp1*"},
    {nvidia_volta, "nvk", "gv1*"},
    {nvidia_turing, "nvk", "tu1*"},
    {nvidia_ampere, "nvk", "ga1*"},
    {nvidia_ada, "nvk", "ad1*"},
    {nvidia_hopper, "nvk", "gh1*"},
    {nvidia_blackwell, "nvk", "gb1*|gb2*"},
    {nvidia_blackwell, "nvidia", "blackwell"},
    {nvidia_ada, "nvidia", "ada"},
    {nvidia_blackwell, "", "geforce rtx 50##*"},
    {nvidia_blackwell, "nvidia", "b100|b200|gb200"},
    {nvidia_hopper, "nvidia", "h100*|h200*|gh200*"},
    {nvidia_ada, "", "geforce rtx 40##*"},
    {nvidia_ada, "nvidia", "l4|l40*"},
    {nvidia_ampere, "", "geforce rtx 30##*"},
    {nvidia_ampere, "nvidia", "rtx a###*|a2|a10*|a16|a30|a40|orin"},
    {nvidia_turing, "", "geforce rtx 20##*|geforce gtx 16##*|quadro rtx|titan rtx"},
    {nvidia_turing, "nvidia", "t#*"},
    {nvidia_volta, "", "titan v|tesla v100*|quadro gv100"},
    {nvidia_volta, "nvidia", "xavier"},
    {nvidia_maxwell, "", "geforce gtx titan x"},
    {nvidia_pascal, "", "geforce gtx 10##*|geforce gt 10##*|titan x*|tesla p#*|quadro p###*"},
    {nvidia_maxwell, "", "geforce gtx 9##*|geforce 9##m*|geforce gtx 75#|quadro m###*|tesla m#*"},
    {nvidia_kepler, "",
     "geforce gtx 4##*|geforce gtx 5##*|geforce gtx 6##*|geforce gtx 7##*|geforce gt 4##*|geforce gt 5##*|geforce gt 6##*|"
     "geforce gt 7##*|geforce gtx titan|quadro k###*|tesla k#*"},
    // The oldest generation for which NVK is made; without a name on a kernel that gives none.
    {nvidia_turing, "", "nvk"},
    {nvidia_maxwell, "", "nvidia"},

    {intel_gen7, "intel", "hsw|haswell"},
    {intel_gen8, "intel", "bdw|broadwell|chv|bsw"},
    {intel_gen9, "intel", "skl|kbl|cfl"},
    {intel_gen11, "intel", "icl|ehl|jsl"},
    {intel_gen12, "intel", "tgl|rkl|adl|rpl|dg1"},
    {intel_xe_hpg, "intel", "dg2|acm|mtl|arl"},
    {intel_xe2, "intel", "lnl|bmg|ptl|arc b###*|arc pro b##|arc 130v|arc 140v"},
    {intel_xe_hpg, "intel", "arc"},
    {intel_gen12, "intel", "iris xe|uhd graphics 7##"},
    {intel_gen9, "intel", "iris plus graphics 6##"},
    {intel_gen11, "intel", "iris plus graphics"},
    {intel_gen7, "intel", "hd graphics 4###|iris pro graphics 5###"},
    {intel_gen8, "intel", "hd graphics 5###|hd graphics 6###|iris graphics 6###"},
    {intel_gen9, "intel", "graphics"},

    {apple_m1, "", "apple m#|apple g13*"},

    {adreno_5xx, "", "fd5##|adreno 5##"},
    {adreno_7xx, "", "fd7##|adreno 7##|adreno x1*"},
    {adreno_8xx, "", "fd8##|adreno 8##|adreno x2*"},
    {adreno_6xx, "", "fd6##|adreno"},
    {arm_midgard, "", "mali t*"},
    {arm_bifrost, "", "mali g31|mali g51|mali g52|mali g71|mali g72|mali g76"},
    {arm_valhall, "", "mali|immortalis*"},
    {broadcom_v3d7, "", "v3d 7"},
    {broadcom_v3d4, "", "v3d|videocore*"},
});

/// A text as rows of `names` are compared with: in small letters, without trademarks, its words apart by one space, and one at
/// either end.
std::string words_of(std::string_view text) {
  std::string lower;
  for (const char c : text) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const std::string_view mark : {"(r)", "(tm)"})
    for (std::size_t at = 0; (at = lower.find(mark, at)) != std::string::npos;) lower.replace(at, mark.size(), 1, ' ');
  std::string words(1, ' ');
  for (const char c : lower + ' ')
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '_')
      words += c;
    else if (words.back() != ' ')
      words += ' ';
  return words;
}

bool begins_with(std::string_view words, std::string_view pattern) {
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '*') return true;
    if (i == words.size()) return false;
    const bool is_digit = words[i] >= '0' && words[i] <= '9';
    if (pattern[i] == '#' ? !is_digit : words[i] != pattern[i]) return false;
  }
  return words.size() > pattern.size() && words[pattern.size()] == ' ';
}

/// Whether the words contain one of the patterns, which `|` keeps apart. No pattern is always contained.
bool contains(std::string_view words, std::string_view patterns) {
  if (patterns.empty()) return true;
  while (!patterns.empty()) {
    const std::string_view pattern = patterns.substr(0, patterns.find('|'));
    for (std::size_t space = 0; space != std::string_view::npos; space = words.find(' ', space + 1))
      if (begins_with(words.substr(space + 1), pattern)) return true;
    patterns.remove_prefix(std::min(patterns.size(), pattern.size() + 1));
  }
  return false;
}

}  // namespace

const DeviceTraits& traits(DeviceClass device_class) noexcept {
  const auto index = static_cast<std::size_t>(device_class);
  return table[index < table.size() ? index : 0];
}

std::string_view to_string(DeviceClass device_class) noexcept {
  return traits(device_class).info.name;
}

std::span<const DeviceClassInfo> device_classes() noexcept {
  static constexpr auto infos = [] {
    std::array<DeviceClassInfo, table.size()> result{};
    std::transform(table.begin(), table.end(), result.begin(), [](const DeviceTraits& row) { return row.info; });
    return result;
  }();
  return infos;
}

DeviceClass parse_device_class(std::string_view name) {
  return find_named(device_classes(), name, &DeviceClassInfo::name, "class of devices", "classes").device_class;
}

DeviceClass device_class_of(std::string_view vendor, std::string_view renderer, const Limits& limits) {
  if (limits.cpu) return cpu;
  const std::string words = words_of(fmt::format("{} {}", vendor, renderer));
  const auto* const found = std::find_if(
      names.begin(), names.end(), [&](const Name& row) { return contains(words, row.maker) && contains(words, row.names); });
  return found == names.end() ? unknown : found->device_class;
}

Limits usual_limits(DeviceClass device_class) {
  constexpr std::int64_t mib = std::int64_t{1} << 20;
  const auto is_from = [&](DeviceClass first, DeviceClass last) { return is_between(device_class, first, last); };
  Limits limits;
  limits.device_class = device_class;
  limits.concurrent_groups = 2 * traits(device_class).compute_units;
  if (device_class == unknown) return limits;
  limits.workgroup_size = {1024, 1024, 1024};
  limits.storage_block_bytes = 128 * mib;
  limits.image_buffer_bytes = 2048 * mib;
  if (device_class == cpu) {
    limits.cpu = true;
    limits.storage_offset_alignment = 16;
    limits.concurrent_groups = traits(cpu).compute_units;  // a CPU runs one at a time on each
    limits.loop_iterations = 60000;
  } else if (is_from(amd_gcn, amd_rdna4)) {
    limits.storage_block_bytes = 2048 * mib;
    limits.storage_offset_alignment = 4;
    limits.shared_bytes = 64 * 1024;
    limits.groups[0] = 2147483646;
  } else if (is_from(nvidia_kepler, nvidia_blackwell)) {
    limits.storage_block_bytes = device_class < nvidia_turing ? 128 * mib : 2047 * mib;
    limits.storage_offset_alignment = 16;
    limits.shared_bytes = 48 * 1024;
    limits.groups[0] = 2147483646;
    limits.workgroup_size[2] = 64;
  } else if (is_from(intel_gen7, intel_xe2)) {
    limits.storage_block_bytes = device_class == intel_gen7 ? 128 * mib : device_class == intel_gen8 ? 1024 * mib : 2048 * mib;
    limits.storage_offset_alignment = 4;
    limits.shared_bytes = 64 * 1024;
  } else if (device_class == apple_m1) {
    limits.storage_offset_alignment = 4;
  } else if (is_from(adreno_6xx, adreno_8xx)) {
    limits.storage_offset_alignment = 64;
    limits.workgroup_size[2] = 64;
    limits.workgroup_invocations = device_class == adreno_8xx ? 1024 : 2048;
  } else {  // OpenGL ES 3.1
    const int invocations = device_class == adreno_5xx ? 512 : device_class == arm_midgard ? 128 : 256;
    limits.workgroup_invocations = invocations;
    if (device_class == adreno_5xx)
      limits.workgroup_size[2] = 64;
    else
      limits.workgroup_size = {invocations, invocations, invocations};
    limits.storage_offset_alignment = 4;
    limits.storage_blocks = device_class == adreno_5xx ? 12 : is_from(broadcom_v3d4, broadcom_v3d7) ? 16 : 8;
    limits.f64 = false;
    limits.image_buffer_bytes = 0;
    limits.language = ShadingLanguage::essl_310;
  }
  return limits;
}

Limits limits_as(DeviceClass device_class, const Limits& limits) {
  Limits result = limits;
  const Limits usual = usual_limits(device_class);
  result.device_class = device_class;
  result.cpu = usual.cpu;
  result.concurrent_groups = usual.concurrent_groups;
  result.fuses_multiply_adds = limits.fuses_multiply_adds && usual.cpu;  // found out on a CPU alone, as is the next
  result.subgroup_size = usual.cpu ? limits.subgroup_size : 0;
  result.storage_offset_alignment = std::lcm(limits.storage_offset_alignment, usual.storage_offset_alignment);
  for (const auto member : {&Limits::storage_block_bytes, &Limits::storage_blocks, &Limits::groups_product,
                            &Limits::workgroup_invocations, &Limits::shared_bytes, &Limits::image_buffer_bytes})
    result.*member = std::min(limits.*member, usual.*member);
  for (std::size_t axis = 0; axis < limits.groups.size(); ++axis) {
    result.groups[axis] = std::min(limits.groups[axis], usual.groups[axis]);
    result.workgroup_size[axis] = std::min(limits.workgroup_size[axis], usual.workgroup_size[axis]);
  }
  result.f64 = limits.f64 && usual.f64;
  return result;
}

}  // namespace glgemm
