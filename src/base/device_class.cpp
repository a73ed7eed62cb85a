// The table of classes of devices, and the table of the names by which devices are recognised.
#include "base/device_class.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <stdexcept>
#include <string>

namespace glgemm {
namespace {

using enum DeviceClass;

// Sources:
//
//   NVIDIA    CUDA C++ Programming Guide, "Compute Capabilities": registers for each thread (63 on Fermi and small Keplers), and
//             results for each clock and multiprocessor; shared memory has 32 banks of 4 bytes. 128 registers are those of
//             CUTLASS's f32 kernels: two groups of 256 threads on a multiprocessor.
//   AMD       The instruction set manuals of GCN 3, Vega, and RDNA to RDNA 4: 256 vector registers for an invocation. A SIMD has
//             256 for each of 64 lanes (GCN), of which 84 let three waves run, or 1024 for each of 32 (RDNA), of which 128 let
//             eight. Local data share: 128 bytes for each clock and compute unit of 64 lanes. RDNA 3 and 4 do two multiply-adds
//             a clock at best.
//   Intel     "The Compute Architecture of Intel Processor Graphics" Gen7.5, Gen8, Gen9 and Gen11, and the oneAPI GPU
//   Optimization
//             Guide for later ones: 128 registers of 32 bytes (Xe2: 64 bytes) for a thread of 8, 16 or 32 invocations; shared
//             local memory: 64 bytes for each clock and subslice of 64 lanes, 128 for later ones of 128.
//   Apple     Mesa's agx_compile.c: 256 registers of 16 bits for an invocation, of which 208 leave half of a core's 1024
//             invocations running. For shared memory no figure is published;
//             it is taken as that of a core's data cache, 64 bytes for each clock (P. Turner's metal-benchmarks).
//   Adreno    Mesa's ir3 and freedreno_devices.py: 48 registers of four words, half as many in a wave of 128. For shared memory
//             no figure is published; it is taken as that of Apple's.
//             Adreno 5xx: as many registers, the upper half of them with the shorter waves alone (ir3_compiler.c).
//   Mali      Mesa's compilers. Midgard: 16 registers of four words; 8 let two threads run, 4 let four. Bifrost and Valhall: 64
//             registers; 32 let twice as many threads run. Invocations in step: Arm's Mali GPU Datasheet (Midgard: none; Bifrost:
//             4 or 8; Valhall: 16). Shared memory is cached memory.
//   Broadcom  "VideoCore IV 3D Architecture Reference Guide": 16 invocations in step on 4 lanes of a QPU, which can add and
//             multiply at the same time; 8 QPUs on Raspberry Pi 4, 12 on 5. Mesa's v3d compiler: 64 registers with two threads,
//             16 with four. Shared memory as Mali's.
//   Memory    The makers' product pages: a usual device's bytes for each second over its f32 multiply-adds.
//   Doubles   The same manuals; 0.01 where the driver emulates them.
//
// Columns: the fewest and the most invocations in step, the most registers and the good ones, bytes of shared memory and of
// memory for each multiply-add, doubles, compute units. The unknown device has what the least of the makers' desktop GPUs has.
constexpr auto table = std::to_array<DeviceTraits>({
    {{unknown, "unknown", "any other device"}, 8, 64, 96, 64, 1, 0.05, 0.5, 128},
    {{cpu, "cpu", "a driver that computes on a CPU: llvmpipe, zink on lavapipe"}, 8, 16, 16, 16, 1, 0.3, 0.5, 2},
    {{amd_gcn, "amd-gcn", "Radeon HD 7000, R7, R9, RX 400, RX 500 (GCN 1 to 4)"}, 64, 64, 256, 84, 2, 0.08, 0.06, 36},
    {{amd_vega, "amd-vega", "Radeon RX Vega, Radeon VII, Ryzen 2000G to 5000G (GCN 5)"}, 64, 64, 256, 84, 2, 0.08, 0.06, 56},
    {{amd_rdna1, "amd-rdna1", "Radeon RX 5000"}, 32, 64, 256, 128, 2, 0.09, 0.06, 40},
    {{amd_rdna2, "amd-rdna2", "Radeon RX 6000, Radeon 680M, Steam Deck"}, 32, 64, 256, 128, 2, 0.06, 0.06, 60},
    {{amd_rdna3, "amd-rdna3", "Radeon RX 7000, Radeon 700M and 800M"}, 32, 64, 256, 128, 1, 0.03, 0.03, 96},
    {{amd_rdna4, "amd-rdna4", "Radeon RX 9000"}, 32, 64, 256, 128, 1, 0.03, 0.03, 64},
    {{nvidia_kepler, "nvidia-kepler", "GeForce GTX 400 to 700 (Fermi, Kepler)"}, 32, 32, 63, 63, 0.67, 0.14, 0.04, 12},
    {{nvidia_maxwell, "nvidia-maxwell", "GeForce GTX 750, GTX 900"}, 32, 32, 255, 128, 1, 0.11, 0.03, 13},
    {{nvidia_pascal, "nvidia-pascal", "GeForce GTX 10, Tesla P4 to P100"}, 32, 32, 255, 128, 1, 0.07, 0.03, 20},
    {{nvidia_volta, "nvidia-volta", "Titan V, Tesla V100"}, 32, 32, 255, 128, 2, 0.11, 0.5, 80},
    {{nvidia_turing, "nvidia-turing", "GeForce GTX 16, RTX 20, Tesla T4"}, 32, 32, 255, 128, 2, 0.09, 0.03, 46},
    {{nvidia_ampere, "nvidia-ampere", "GeForce RTX 30, RTX A2000 to A6000, A10, A100"}, 32, 32, 255, 128, 1, 0.04, 0.016, 46},
    {{nvidia_ada, "nvidia-ada", "GeForce RTX 40, RTX Ada, L4, L40"}, 32, 32, 255, 128, 1, 0.025, 0.016, 76},
    {{nvidia_hopper, "nvidia-hopper", "H100, H200"}, 32, 32, 255, 128, 1, 0.1, 0.5, 132},
    {{nvidia_blackwell, "nvidia-blackwell", "GeForce RTX 50, RTX PRO, B200"}, 32, 32, 255, 128, 1, 0.035, 0.016, 84},
    {{intel_gen7, "intel-gen7", "HD Graphics 4000, Iris 5000 (Haswell)"}, 8, 32, 128, 64, 1, 0.12, 0.25, 2},
    {{intel_gen8, "intel-gen8", "HD Graphics 5000, Iris 6000 (Broadwell)"}, 8, 32, 128, 64, 1, 0.12, 0.25, 3},
    {{intel_gen9, "intel-gen9", "HD and UHD Graphics 500 and 600 (Skylake to Comet Lake)"}, 8, 32, 128, 64, 1, 0.15, 0.25, 3},
    {{intel_gen11, "intel-gen11", "Iris Plus (Ice Lake), UHD Graphics (Jasper Lake)"}, 8, 32, 128, 64, 1, 0.1, 0.01, 8},
    {{intel_gen12, "intel-gen12", "Iris Xe, UHD Graphics 700 (Tiger Lake to Raptor Lake)"}, 8, 32, 128, 64, 1, 0.06, 0.01, 6},
    {{intel_xe_hpg, "intel-xe-hpg", "Arc A (DG2), Core Ultra 1 and 200 (Meteor, Arrow Lake)"}, 8, 32, 128, 64, 1, 0.06, 0.01, 32},
    {{intel_xe2, "intel-xe2", "Arc B, Core Ultra 200V and 300 (Battlemage, Lunar Lake)"}, 16, 32, 128, 128, 1, 0.07, 0.06, 20},
    {{apple_m1, "apple-m1", "Apple M1 and M2, with Pro, Max and Ultra"}, 32, 32, 128, 104, 0.5, 0.05, 0.01, 8},
    {{adreno_5xx, "adreno-5xx", "Snapdragon 630 to 835 (Adreno 505 to 540)"}, 32, 64, 192, 96, 0.5, 0.11, 0.01, 4},
    {{adreno_6xx, "adreno-6xx", "Snapdragon 730 to 888, 8cx (Adreno 610 to 690)"}, 64, 128, 192, 96, 0.5, 0.06, 0.01, 3},
    {{adreno_7xx, "adreno-7xx", "Snapdragon 8 Gen 1 to 3, X Elite"}, 64, 128, 192, 96, 0.5, 0.05, 0.01, 6},
    {{adreno_8xx, "adreno-8xx", "Snapdragon 8 Elite (Adreno 830)"}, 64, 64, 192, 96, 0.5, 0.05, 0.01, 12},
    {{arm_midgard, "arm-midgard", "Mali-T600 to T880 (RK3288, RK3399)"}, 1, 1, 64, 32, 0.25, 0.2, 0.01, 4},
    {{arm_bifrost, "arm-bifrost", "Mali-G31 to G76 (RK3566, S905X3, S922X)"}, 4, 8, 64, 32, 0.25, 0.2, 0.01, 4},
    {{arm_valhall, "arm-valhall", "Mali-G57, G77 and later, Immortalis (RK3588, MT8192)"}, 16, 16, 64, 32, 0.25, 0.06, 0.01, 4},
    {{broadcom_v3d4, "broadcom-v3d4", "Raspberry Pi 4 (VideoCore VI)"}, 16, 16, 64, 32, 0.25, 0.8, 0.01, 8},
    {{broadcom_v3d7, "broadcom-v3d7", "Raspberry Pi 5 (VideoCore VII)"}, 16, 16, 64, 32, 0.25, 0.4, 0.01, 12},
});
static_assert([] {
  for (std::size_t i = 0; i < table.size(); ++i)
    if (table[i].info.device_class != static_cast<DeviceClass>(i)) return false;
  return table.back().info.device_class == broadcom_v3d7;
}());

/// A name by which a device is recognised: `maker` (if any) and `name` both occur in "GL_VENDOR GL_RENDERER", as whole words. `#`
/// is a digit, a `*` at the end the rest of a word.
struct Name {
  std::string_view maker;
  std::string_view name;
  DeviceClass device_class;
};

// The first that fits holds. What drivers on the CPU call themselves comes first, then names of chips, which say more than those
// of products: Mesa's drivers put them in brackets. Names of chips are those of Mesa's include/pci_ids,
// src/amd/common/ac_gpu_info.c, src/freedreno/common/freedreno_devices.py and src/nouveau/headers; those of products are the
// makers'.
constexpr auto names = std::to_array<Name>({
    {"", "llvmpipe", cpu},
    {"", "softpipe", cpu},
    {"", "swrast", cpu},
    {"", "swiftshader*", cpu},

    {"", "tahiti", amd_gcn},
    {"", "pitcairn", amd_gcn},
    {"", "verde", amd_gcn},
    {"", "oland", amd_gcn},
    {"", "hainan", amd_gcn},
    {"", "bonaire", amd_gcn},
    {"", "hawaii", amd_gcn},
    {"", "kabini", amd_gcn},
    {"", "kaveri", amd_gcn},
    {"", "mullins", amd_gcn},
    {"", "tonga", amd_gcn},
    {"", "iceland", amd_gcn},
    {"", "fiji", amd_gcn},
    {"", "carrizo", amd_gcn},
    {"", "stoney", amd_gcn},
    {"", "polaris1#", amd_gcn},
    {"", "vegam", amd_gcn},
    {"", "vega1#", amd_vega},
    {"", "vega20", amd_vega},
    {"", "raven*", amd_vega},
    {"", "renoir", amd_vega},
    {"", "arcturus", amd_vega},
    {"", "aldebaran", amd_vega},
    {"", "gfx9*", amd_vega},
    {"", "navi1#", amd_rdna1},
    {"", "gfx101*", amd_rdna1},
    {"", "navi2#", amd_rdna2},
    {"", "sienna_cichlid", amd_rdna2},
    {"", "navy_flounder", amd_rdna2},
    {"", "dimgrey_cavefish", amd_rdna2},
    {"", "beige_goby", amd_rdna2},
    {"", "vangogh", amd_rdna2},
    {"", "yellow_carp", amd_rdna2},
    {"", "rembrandt", amd_rdna2},
    {"", "raphael*", amd_rdna2},
    {"", "gfx103*", amd_rdna2},
    {"", "navi3#", amd_rdna3},
    {"", "phoenix*", amd_rdna3},
    {"", "strix*", amd_rdna3},
    {"", "krackan*", amd_rdna3},
    {"", "gfx11*", amd_rdna3},
    {"", "navi4#", amd_rdna4},
    {"", "gfx12*", amd_rdna4},
    {"", "radeon rx 90##*", amd_rdna4},
    {"", "radeon rx 7###*", amd_rdna3},
    {"", "radeon pro w7###*", amd_rdna3},
    {"", "radeon 7##m", amd_rdna3},
    {"", "radeon 8##m", amd_rdna3},
    {"", "radeon 8##0s", amd_rdna3},
    {"", "radeon rx 6###*", amd_rdna2},
    {"", "radeon pro w6###*", amd_rdna2},
    {"", "radeon 6##m", amd_rdna2},
    {"", "amd custom gpu 0###", amd_rdna2},
    {"", "radeon rx 5###*", amd_rdna1},
    {"", "radeon pro w5###*", amd_rdna1},
    {"", "radeon rx vega*", amd_vega},
    {"", "radeon vega", amd_vega},
    {"", "radeon pro vega", amd_vega},
    {"", "radeon vii", amd_vega},
    {"", "radeon pro vii", amd_vega},
    {"", "radeon rx 5##*", amd_gcn},
    {"", "radeon rx 4##*", amd_gcn},
    {"", "radeon pro wx", amd_gcn},
    {"", "radeon r5", amd_gcn},
    {"", "radeon r7", amd_gcn},
    {"", "radeon r9", amd_gcn},
    {"", "radeon hd 7###*", amd_gcn},
    {"", "radeon hd 8###*", amd_gcn},
    {"", "radeonsi", amd_vega},
    {"", "radv", amd_vega},
    {"ati technologies", "radeon", amd_vega},

    {"", "nvc*", nvidia_kepler},
    {"", "nvd*", nvidia_kepler},
    {"", "nve*", nvidia_kepler},
    {"", "nvf*", nvidia_kepler},
    {"", "nv10#", nvidia_kepler},
    {"", "nv11#", nvidia_maxwell},
    {"", "nv12#", nvidia_maxwell},
    {"", "nv13#", nvidia_pascal},
    {"", "nv14#", nvidia_volta},
    {"", "nv16#", nvidia_turing},
    {"", "nv17#", nvidia_ampere},
    {"", "nv19#", nvidia_ada},
    {"", "nv1b#", nvidia_blackwell},
    {"nvk", "gk1*", nvidia_kepler},
    {"nvk", "gk2*", nvidia_kepler},
    {"nvk", "gm1*", nvidia_maxwell},
    {"nvk", "gm2*", nvidia_maxwell},
    {"nvk", "gp1*", nvidia_pascal},
    {"nvk", "gv1*", nvidia_volta},
    {"nvk", "tu1*", nvidia_turing},
    {"nvk", "ga1*", nvidia_ampere},
    {"nvk", "ad1*", nvidia_ada},
    {"nvk", "gh1*", nvidia_hopper},
    {"nvk", "gb1*", nvidia_blackwell},
    {"nvk", "gb2*", nvidia_blackwell},
    {"nvidia", "blackwell", nvidia_blackwell},
    {"nvidia", "ada", nvidia_ada},
    {"", "geforce rtx 50##*", nvidia_blackwell},
    {"nvidia", "b100", nvidia_blackwell},
    {"nvidia", "b200", nvidia_blackwell},
    {"nvidia", "gb200", nvidia_blackwell},
    {"nvidia", "h100*", nvidia_hopper},
    {"nvidia", "h200*", nvidia_hopper},
    {"nvidia", "gh200*", nvidia_hopper},
    {"", "geforce rtx 40##*", nvidia_ada},
    {"nvidia", "l4", nvidia_ada},
    {"nvidia", "l40*", nvidia_ada},
    {"", "geforce rtx 30##*", nvidia_ampere},
    {"nvidia", "rtx a###*", nvidia_ampere},
    {"nvidia", "a2", nvidia_ampere},
    {"nvidia", "a10*", nvidia_ampere},
    {"nvidia", "a16", nvidia_ampere},
    {"nvidia", "a30", nvidia_ampere},
    {"nvidia", "a40", nvidia_ampere},
    {"nvidia", "orin", nvidia_ampere},
    {"", "geforce rtx 20##*", nvidia_turing},
    {"", "geforce gtx 16##*", nvidia_turing},
    {"", "quadro rtx", nvidia_turing},
    {"", "titan rtx", nvidia_turing},
    {"nvidia", "t#*", nvidia_turing},
    {"", "titan v", nvidia_volta},
    {"", "tesla v100*", nvidia_volta},
    {"", "quadro gv100", nvidia_volta},
    {"nvidia", "xavier", nvidia_volta},
    {"", "geforce gtx titan x", nvidia_maxwell},
    {"", "geforce gtx 10##*", nvidia_pascal},
    {"", "geforce gt 10##*", nvidia_pascal},
    {"", "titan x*", nvidia_pascal},
    {"", "tesla p#*", nvidia_pascal},
    {"", "quadro p###*", nvidia_pascal},
    {"", "geforce gtx 9##*", nvidia_maxwell},
    {"", "geforce 9##m*", nvidia_maxwell},
    {"", "geforce gtx 75#", nvidia_maxwell},
    {"", "quadro m###*", nvidia_maxwell},
    {"", "tesla m#*", nvidia_maxwell},
    {"", "geforce gtx 4##*", nvidia_kepler},
    {"", "geforce gtx 5##*", nvidia_kepler},
    {"", "geforce gtx 6##*", nvidia_kepler},
    {"", "geforce gtx 7##*", nvidia_kepler},
    {"", "geforce gt 4##*", nvidia_kepler},
    {"", "geforce gt 5##*", nvidia_kepler},
    {"", "geforce gt 6##*", nvidia_kepler},
    {"", "geforce gt 7##*", nvidia_kepler},
    {"", "geforce gtx titan", nvidia_kepler},
    {"", "quadro k###*", nvidia_kepler},
    {"", "tesla k#*", nvidia_kepler},
    {"", "nvk", nvidia_turing},  // the oldest generation for which NVK is made; without a name on a kernel that gives none
    {"", "nvidia", nvidia_maxwell},

    {"intel", "hsw", intel_gen7},
    {"intel", "haswell", intel_gen7},
    {"intel", "bdw", intel_gen8},
    {"intel", "broadwell", intel_gen8},
    {"intel", "chv", intel_gen8},
    {"intel", "bsw", intel_gen8},
    {"intel", "skl", intel_gen9},
    {"intel", "kbl", intel_gen9},
    {"intel", "cfl", intel_gen9},
    {"intel", "icl", intel_gen11},
    {"intel", "ehl", intel_gen11},
    {"intel", "jsl", intel_gen11},
    {"intel", "tgl", intel_gen12},
    {"intel", "rkl", intel_gen12},
    {"intel", "adl", intel_gen12},
    {"intel", "rpl", intel_gen12},
    {"intel", "dg1", intel_gen12},
    {"intel", "dg2", intel_xe_hpg},
    {"intel", "acm", intel_xe_hpg},
    {"intel", "mtl", intel_xe_hpg},
    {"intel", "arl", intel_xe_hpg},
    {"intel", "lnl", intel_xe2},
    {"intel", "bmg", intel_xe2},
    {"intel", "ptl", intel_xe2},
    {"intel", "arc b###*", intel_xe2},
    {"intel", "arc pro b##", intel_xe2},
    {"intel", "arc 130v", intel_xe2},
    {"intel", "arc 140v", intel_xe2},
    {"intel", "arc", intel_xe_hpg},
    {"intel", "iris xe", intel_gen12},
    {"intel", "uhd graphics 7##", intel_gen12},
    {"intel", "iris plus graphics 6##", intel_gen9},
    {"intel", "iris plus graphics", intel_gen11},
    {"intel", "hd graphics 4###", intel_gen7},
    {"intel", "iris pro graphics 5###", intel_gen7},
    {"intel", "hd graphics 5###", intel_gen8},
    {"intel", "hd graphics 6###", intel_gen8},
    {"intel", "iris graphics 6###", intel_gen8},
    {"intel", "graphics", intel_gen9},

    {"", "apple m#", apple_m1},
    {"", "apple g13*", apple_m1},
    {"", "fd5##", adreno_5xx},
    {"", "fd6##", adreno_6xx},
    {"", "fd7##", adreno_7xx},
    {"", "fd8##", adreno_8xx},
    {"", "adreno 5##", adreno_5xx},
    {"", "adreno 7##", adreno_7xx},
    {"", "adreno x1*", adreno_7xx},
    {"", "adreno 8##", adreno_8xx},
    {"", "adreno x2*", adreno_8xx},
    {"", "adreno", adreno_6xx},
    {"", "mali t*", arm_midgard},
    {"", "mali g31", arm_bifrost},
    {"", "mali g51", arm_bifrost},
    {"", "mali g52", arm_bifrost},
    {"", "mali g71", arm_bifrost},
    {"", "mali g72", arm_bifrost},
    {"", "mali g76", arm_bifrost},
    {"", "mali", arm_valhall},
    {"", "immortalis*", arm_valhall},
    {"", "v3d 7", broadcom_v3d7},
    {"", "v3d", broadcom_v3d4},
    {"", "videocore*", broadcom_v3d4},
});

/// A text as rows of `names` are compared with: in small letters, without trademarks, its words apart by one space, and one at
/// either end.
std::string words_of(std::string_view text) {
  std::string lower;
  for (const char c : text) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const std::string_view mark : {"(r)", "(tm)"})
    for (std::size_t at = 0; (at = lower.find(mark, at)) != std::string::npos;) lower.replace(at, mark.size(), " ");
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

bool contains(std::string_view words, std::string_view pattern) {
  if (pattern.empty()) return true;
  for (std::size_t space = 0; space != std::string_view::npos; space = words.find(' ', space + 1))
    if (begins_with(words.substr(space + 1), pattern)) return true;
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
  std::string names;
  for (const DeviceClassInfo& info : device_classes()) {
    if (info.name == name) return info.device_class;
    names += (names.empty() ? "" : ", ") + std::string(info.name);
  }
  throw std::invalid_argument("unknown class of devices \"" + std::string(name) + "\"; known classes: " + names);
}

DeviceClass device_class_of(std::string_view vendor, std::string_view renderer, const Limits& limits) {
  if (limits.cpu) return cpu;
  const std::string words = words_of(std::string(vendor) + ' ' + std::string(renderer));
  const auto* const found = std::find_if(
      names.begin(), names.end(), [&](const Name& row) { return contains(words, row.maker) && contains(words, row.name); });
  return found == names.end() ? unknown : found->device_class;
}

Limits usual_limits(DeviceClass device_class) {
  constexpr std::int64_t mib = std::int64_t{1} << 20;
  const auto between = [&](DeviceClass first, DeviceClass last) { return first <= device_class && device_class <= last; };
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
  } else if (between(amd_gcn, amd_rdna4)) {
    limits.storage_block_bytes = 2048 * mib;
    limits.storage_offset_alignment = 4;
    limits.shared_bytes = 64 * 1024;
    limits.groups[0] = 2147483646;
  } else if (between(nvidia_kepler, nvidia_blackwell)) {
    limits.storage_block_bytes = device_class < nvidia_turing ? 128 * mib : 2047 * mib;
    limits.storage_offset_alignment = 16;
    limits.shared_bytes = 48 * 1024;
    limits.groups[0] = 2147483646;
    limits.workgroup_size[2] = 64;
  } else if (between(intel_gen7, intel_xe2)) {
    limits.storage_block_bytes = device_class == intel_gen7 ? 128 * mib : device_class == intel_gen8 ? 1024 * mib : 2048 * mib;
    limits.storage_offset_alignment = 4;
    limits.shared_bytes = 64 * 1024;
  } else if (device_class == apple_m1) {
    limits.storage_offset_alignment = 4;
  } else if (between(adreno_6xx, adreno_8xx)) {
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
    limits.storage_blocks = device_class == adreno_5xx ? 12 : between(broadcom_v3d4, broadcom_v3d7) ? 16 : 8;
    limits.f64 = false;
    limits.image_buffer_bytes = 0;
    limits.language = ShadingLanguage::essl_310;
  }
  return limits;
}

}  // namespace glgemm
