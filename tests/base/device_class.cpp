// The classes of devices, by the names that drivers give.
#include <doctest/doctest.h>

#include <set>
#include <stdexcept>
#include <string>

#include <glgemm/device_class.hpp>

#include "base/device_class.hpp"
#include "base/processor.hpp"

using namespace glgemm;

namespace {

struct Named {
  const char* vendor;
  const char* renderer;
  DeviceClass device_class;
};

using enum DeviceClass;

const Named devices[] = {
    // Mesa 26.2's drivers. NVK gives the chip's name if the kernel does. Without the name, the GPU is taken for one of the oldest
    // generation that NVK is made for.
    {"AMD", "AMD Radeon HD 7800 Series (radeonsi, pitcairn, ACO, DRM 3.54, 6.12.0-amd64)", amd_gcn},
    {"AMD", "AMD Radeon R7 200 Series (radeonsi, bonaire, ACO, DRM 3.54, 6.12.0-amd64)", amd_gcn},
    {"AMD", "AMD Radeon RX 580 Series (radeonsi, polaris10, ACO, DRM 3.54, 6.12.0-amd64)", amd_gcn},
    {"AMD", "AMD Radeon RX Vega (radeonsi, vega10, ACO, DRM 3.54, 6.12.0-amd64)", amd_vega},
    {"AMD", "AMD Radeon Pro VII (radeonsi, vega20, ACO, DRM 3.54, 6.12.0-amd64)", amd_vega},
    {"AMD", "AMD Intel(R) Xeon(R) Processor (radeonsi, renoir, ACO, DRM 3.54, 6.12.0-amd64)", amd_vega},
    {"AMD", "AMD Radeon RX 5700 XT (radeonsi, navi10, ACO, DRM 3.54, 6.12.0-amd64)", amd_rdna1},
    {"AMD", "AMD Radeon RX 6800 (radeonsi, navi21, ACO, DRM 3.54, 6.12.0-amd64)", amd_rdna2},
    {"AMD", "AMD Custom GPU 0405 (radeonsi, vangogh, ACO, DRM 3.54, 6.12.0-amd64)", amd_rdna2},
    {"AMD", "AMD Radeon RX 7900 XTX (radeonsi, navi31, ACO, DRM 3.54, 6.12.0-amd64)", amd_rdna3},
    {"AMD", "AMD Radeon RX 7600 (radeonsi, navi33, ACO, DRM 3.54, 6.12.0-amd64)", amd_rdna3},
    {"AMD", "AMD Intel(R) Xeon(R) Processor (radeonsi, phoenix, ACO, DRM 3.54, 6.12.0-amd64)", amd_rdna3},
    {"AMD", "AMD Radeon 890M Graphics (radeonsi, strix1, ACO, DRM 3.54, 6.12.0-amd64)", amd_rdna3},
    {"AMD", "AMD Radeon RX 9070 XT (radeonsi, gfx1201, ACO, DRM 3.54, 6.12.0-amd64)", amd_rdna4},
    {"Mesa", "NVF0", nvidia_kepler},
    {"Mesa", "NV124", nvidia_maxwell},
    {"Mesa", "NV134", nvidia_pascal},
    {"Mesa", "NV140", nvidia_volta},
    {"Mesa", "zink Vulkan 1.3(NVK  (MESA_NVK))", nvidia_turing},
    {"Mesa", "zink Vulkan 1.4(NVK  (MESA_NVK))", nvidia_turing},
    {"Mesa", "Apple M1 (G13G A0)", apple_m1},
    {"freedreno", "FD530", adreno_5xx},
    {"freedreno", "FD618", adreno_6xx},
    {"freedreno", "FD630", adreno_6xx},
    {"freedreno", "FD660", adreno_6xx},
    {"freedreno", "FD730", adreno_7xx},
    {"freedreno", "FD740", adreno_7xx},
    {"freedreno", "FD750", adreno_7xx},
    {"freedreno", "Adreno (TM) 830", adreno_8xx},
    {"Broadcom", "V3D 4.2.14.0", broadcom_v3d4},
    {"Broadcom", "V3D 7.1.7.0", broadcom_v3d7},
    {"Mesa", "Mali-T760 MC4 (Panfrost)", arm_midgard},
    {"Mesa", "Mali-T860 MC4 (Panfrost)", arm_midgard},
    {"Mesa", "Mali-G31 MC4 (Panfrost)", arm_bifrost},
    {"Mesa", "Mali-G52 MC4 (Panfrost)", arm_bifrost},
    {"Mesa", "Mali-G72 MC4 (Panfrost)", arm_bifrost},
    {"Mesa", "Mali-G57 MC4 (Panfrost)", arm_valhall},
    {"Mesa", "Mali-G310 MC4 (Panfrost)", arm_valhall},
    {"Mesa", "Mali-G610 MC4 (Panfrost)", arm_valhall},
    {"Mesa", "llvmpipe (LLVM 22.1.8, 256 bits)", cpu},
    {"Intel", "Mesa Intel(R) HD Graphics (HSW GT3)", intel_gen7},
    {"Intel", "Mesa Intel(R) HD Graphics (BDW GT3)", intel_gen8},
    {"Intel", "Mesa Intel(R) HD Graphics 530 (SKL GT2)", intel_gen9},
    {"Intel", "Mesa Intel(R) Iris(R) Plus Graphics (ICL GT2)", intel_gen11},
    {"Intel", "Mesa Intel(R) Iris(R) Xe Graphics (TGL GT2)", intel_gen12},
    {"Intel", "Mesa Intel(R) UHD Graphics 770 (ADL-S GT1)", intel_gen12},
    {"Intel", "Mesa Intel(R) Arc(tm) A770M Graphics (DG2)", intel_xe_hpg},
    {"Intel", "Mesa Intel(R) Graphics (MTL)", intel_xe_hpg},
    {"Intel", "Mesa Intel(R) Graphics (LNL)", intel_xe2},
    {"Intel", "Mesa Intel(R) Graphics (BMG G21)", intel_xe2},
    // The makers' own drivers.
    {"NVIDIA Corporation", "NVIDIA GeForce RTX 3070/PCIe/SSE2", nvidia_ampere},
    {"NVIDIA Corporation", "NVIDIA GeForce RTX 4090 Laptop GPU/PCIe/SSE2", nvidia_ada},
    {"NVIDIA Corporation", "NVIDIA GeForce RTX 5090/PCIe/SSE2", nvidia_blackwell},
    {"NVIDIA Corporation", "NVIDIA GeForce RTX 2080 Ti/PCIe/SSE2", nvidia_turing},
    {"NVIDIA Corporation", "NVIDIA GeForce GTX 1660 SUPER/PCIe/SSE2", nvidia_turing},
    {"NVIDIA Corporation", "GeForce GTX 1080/PCIe/SSE2", nvidia_pascal},
    {"NVIDIA Corporation", "GeForce GTX 970M/PCIe/SSE2", nvidia_maxwell},
    {"NVIDIA Corporation", "GeForce GTX TITAN X/PCIe/SSE2", nvidia_maxwell},
    {"NVIDIA Corporation", "NVIDIA TITAN X (Pascal)/PCIe/SSE2", nvidia_pascal},
    {"NVIDIA Corporation", "TITAN V/PCIe/SSE2", nvidia_volta},
    {"NVIDIA Corporation", "Quadro K2000/PCIe/SSE2", nvidia_kepler},
    {"NVIDIA Corporation", "Quadro RTX 6000/PCIe/SSE2", nvidia_turing},
    {"NVIDIA Corporation", "NVIDIA RTX A6000/PCIe/SSE2", nvidia_ampere},
    {"NVIDIA Corporation", "NVIDIA RTX 6000 Ada Generation/PCIe/SSE2", nvidia_ada},
    {"NVIDIA Corporation", "NVIDIA RTX PRO 6000 Blackwell Workstation Edition/PCIe/SSE2", nvidia_blackwell},
    {"NVIDIA Corporation", "NVIDIA A100-SXM4-40GB/PCIe/SSE2", nvidia_ampere},
    {"NVIDIA Corporation", "NVIDIA H100 80GB HBM3/PCIe/SSE2", nvidia_hopper},
    {"NVIDIA Corporation", "Tesla T4/PCIe/SSE2", nvidia_turing},
    {"NVIDIA Corporation", "NVIDIA Graphics Device/PCIe/SSE2", nvidia_maxwell},
    {"ATI Technologies Inc.", "AMD Radeon RX 7900 XTX", amd_rdna3},
    {"ATI Technologies Inc.", "AMD Radeon RX 9070 XT", amd_rdna4},
    {"ATI Technologies Inc.", "AMD Radeon RX 6700 XT", amd_rdna2},
    {"ATI Technologies Inc.", "AMD Radeon RX 5500M", amd_rdna1},
    {"ATI Technologies Inc.", "Radeon RX 580 Series", amd_gcn},
    {"ATI Technologies Inc.", "Radeon (TM) RX 480 Graphics", amd_gcn},
    {"ATI Technologies Inc.", "AMD Radeon(TM) 780M Graphics", amd_rdna3},
    {"ATI Technologies Inc.", "AMD Radeon(TM) Vega 8 Graphics", amd_vega},
    {"ATI Technologies Inc.", "AMD Radeon(TM) Graphics", amd_vega},
    {"Intel", "Intel(R) UHD Graphics 770", intel_gen12},
    {"Intel", "Intel(R) UHD Graphics 630", intel_gen9},
    {"Intel", "Intel(R) HD Graphics 4600", intel_gen7},
    {"Intel", "Intel(R) HD Graphics 5500", intel_gen8},
    {"Intel", "Intel(R) Iris(R) Plus Graphics 655", intel_gen9},
    {"Intel", "Intel(R) Iris(R) Xe Graphics", intel_gen12},
    {"Intel", "Intel(R) Arc(TM) A770 Graphics", intel_xe_hpg},
    {"Intel", "Intel(R) Arc(TM) B580 Graphics", intel_xe2},
    {"Intel", "Intel(R) Arc(TM) 140V GPU (16GB)", intel_xe2},
    {"Apple", "Apple M2 Max", apple_m1},
    {"Qualcomm", "Adreno (TM) 740", adreno_7xx},
    {"Qualcomm", "Adreno (TM) 540", adreno_5xx},
    {"ARM", "Mali-G610", arm_valhall},
    {"ARM", "Mali-T880", arm_midgard},
    {"ARM", "Mali-G76", arm_bifrost},
    {"ARM", "Immortalis-G715", arm_valhall},
    // Other versions of Mesa.
    {"AMD", "AMD Radeon RX 6800 XT (SIENNA_CICHLID, DRM 3.42.0, 5.15.0, LLVM 12.0.0)", amd_rdna2},
    {"AMD", "AMD Ryzen 7 7840U w/ Radeon 780M Graphics (radeonsi, gfx1103_r1, LLVM 17.0.6, DRM 3.57)", amd_rdna3},
    {"Intel", "Mesa Intel(R) UHD Graphics 620 (KBL GT2)", intel_gen9},
    {"Intel Open Source Technology Center", "Mesa DRI Intel(R) HD Graphics 5500 (Broadwell GT2)", intel_gen8},
    {"Broadcom", "V3D 7.1.10.2", broadcom_v3d7},
    {"Broadcom", "V3D 4.2", broadcom_v3d4},
    // Drivers on drivers.
    {"Mesa", "zink Vulkan 1.4(NVIDIA GeForce RTX 3070 (NVK GA104))", nvidia_ampere},
    {"Mesa", "zink Vulkan 1.3(NVIDIA GeForce GTX 1080 (NVIDIA_PROPRIETARY))", nvidia_pascal},
    {"Mesa", "zink Vulkan 1.4(AMD Radeon RX 7900 XTX (RADV NAVI31))", amd_rdna3},
    {"Mesa", "zink Vulkan 1.3(Intel(R) Arc(tm) A770M Graphics (DG2) (INTEL_OPEN_SOURCE_MESA))", intel_xe_hpg},
    {"Mesa", "zink Vulkan 1.3(Turnip Adreno (TM) 660 (MESA_TURNIP))", adreno_6xx},
    {"Mesa", "zink Vulkan 1.3(llvmpipe (LLVM 15.0.6, 256 bits) (MESA_LLVMPIPE))", cpu},
    {"Microsoft Corporation", "D3D12 (NVIDIA GeForce RTX 2070)", nvidia_turing},
    {"Mesa", "virgl (AMD Radeon RX 6600 (radeonsi, navi23, LLVM 15.0.7))", amd_rdna2},
    // What no row knows.
    {"", "", unknown},
    {"VMware, Inc.", "SVGA3D; build: RELEASE;  LLVM;", unknown},
    {"Someone", "A1000 maliciously marched 3070 times", unknown},
    {"Moore Threads", "MTT S80", unknown},
    {"AMD", "AMD CYPRESS (DRM 2.50.0)", unknown},
    {"nouveau", "NV43", unknown},
    {"x", "((((,,,///", unknown},
    {"x", "\xff\xfe(R)(TM)\x01", unknown},
};

}  // namespace

TEST_CASE("device classes: names of devices, from Mesa, from the makers, and of no one") {
  for (const Named& device : devices) {
    CAPTURE(std::string(device.vendor));
    CAPTURE(std::string(device.renderer));
    CHECK(to_string(device_class_of(device.vendor, device.renderer, {})) == to_string(device.device_class));
    CHECK(device_class_of(device.vendor, device.renderer, {.cpu = true}) == cpu);
  }
}

TEST_CASE("device classes: each has a name, traits that can be, and usual limits") {
  std::set<std::string_view> class_names;
  for (const DeviceClassInfo& info : device_classes()) {
    CAPTURE(info.name);
    CHECK(parse_device_class(info.name) == info.device_class);
    CHECK(to_string(info.device_class) == info.name);
    CHECK(class_names.insert(info.name).second);
    CHECK_FALSE(info.devices.empty());
    const Limits limits = usual_limits(info.device_class);
    CHECK(limits.device_class == info.device_class);
    CHECK(limits.cpu == (info.device_class == cpu));
    CHECK(limits.workgroup_invocations >= (info.device_class == arm_midgard ? 128 : 256));
    CHECK(limits.storage_block_bytes >= Limits{}.storage_block_bytes);
    const DeviceTraits& row = traits(limits);
    CHECK(row.info.device_class == info.device_class);
    CHECK(row.registers <= row.max_registers);
    CHECK(row.max_registers >= 16);
    CHECK(row.shared_bytes > 0);
    CHECK(row.memory_bytes > 0);
    CHECK(row.f64_rate > 0);
    CHECK(row.compute_units > 0);
  }
  Limits here = usual_limits(cpu);
  here.groups = {70000, 1000, 70000};
  here.subgroup_size = 8;
  here.fuses_multiply_adds = true;
  const Limits hopper = usual_limits(nvidia_hopper), as_hopper = limits_as(nvidia_hopper, here);
  CHECK(as_hopper.device_class == nvidia_hopper);
  CHECK(!as_hopper.cpu);
  CHECK(as_hopper.concurrent_groups == hopper.concurrent_groups);
  CHECK(as_hopper.subgroup_size == 0);
  CHECK(!as_hopper.fuses_multiply_adds);
  CHECK(as_hopper.loop_iterations == here.loop_iterations);  // what this device cannot do, its plans must not ask for
  CHECK(as_hopper.storage_block_bytes == std::min(here.storage_block_bytes, hopper.storage_block_bytes));
  CHECK(as_hopper.groups == std::array<std::int64_t, 3>{70000, 1000, 65535});
  CHECK(limits_as(cpu, here) == [&] {
    Limits same = here;
    same.groups = {65535, 1000, 65535};
    return same;
  }());
  CHECK(traits(Limits{.cpu = true, .device_class = amd_vega}).info.device_class == cpu);
  CHECK_THROWS_WITH_AS(parse_device_class("nvidia-amper"), doctest::Contains("unknown class of devices \"nvidia-amper\""),
                       std::invalid_argument);
}

TEST_CASE("processors: by vendor, family and model") {
  CHECK(processor_name("AuthenticAMD", 0x19, 0x11) == "amd-zen4");
  CHECK(processor_name("AuthenticAMD", 0x19, 0x01) == "amd-zen3");
  CHECK(processor_name("AuthenticAMD", 0x19, 0x21) == "amd-zen3");
  CHECK(processor_name("AuthenticAMD", 0x19, 0x61) == "amd-zen4");
  CHECK(processor_name("AuthenticAMD", 0x17, 0x31) == "amd-zen2");
  CHECK(processor_name("AuthenticAMD", 0x1a, 0x02) == "amd-zen5");
  CHECK(processor_name("GenuineIntel", 6, 0x55) == "intel-skylake-x");
  CHECK(processor_name("GenuineIntel", 6, 0x6a) == "intel-ice-lake");
  CHECK(processor_name("GenuineIntel", 6, 0x8f) == "intel-sapphire-rapids");
  CHECK(processor_name("GenuineIntel", 6, 0x0f) == "");
  CHECK(processor_name("GenuineIntel", 15, 0x8f) == "");
  CHECK(processor_name("AuthenticAMD", 6, 0x8f) == "");
  CHECK(processor_name("", 0, 0) == "");
  CHECK(processor_name() == processor_name());
}
