// What kind of device computes: the maker of a GPU and its generation. Any thread. No OpenGL.
// Goes with inspect.hpp: nothing here is promised.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include <glgemm/export.hpp>
#include <glgemm/language.hpp>
#include <glgemm/unpromised.hpp>

namespace glgemm {

struct Limits;

/// The maker and generation of a device. Devices of one class have the same instruction set, registers and shared memory, or
/// nearly so, and the planner treats them alike. `device_classes` lists the classes with their devices.
enum class DeviceClass {
  unknown,  ///< the planner then takes kernels that every compiler keeps in registers
  cpu,      ///< a driver that computes on a CPU
  amd_gcn,
  amd_vega,
  amd_rdna1,
  amd_rdna2,
  amd_rdna3,
  amd_rdna4,
  nvidia_kepler,
  nvidia_maxwell,
  nvidia_pascal,
  nvidia_volta,
  nvidia_turing,
  nvidia_ampere,
  nvidia_ada,
  nvidia_hopper,
  nvidia_blackwell,
  intel_gen7,
  intel_gen8,
  intel_gen9,
  intel_gen11,
  intel_gen12,
  intel_xe_hpg,
  intel_xe2,
  apple_m1,
  adreno_5xx,
  adreno_6xx,
  adreno_7xx,
  adreno_8xx,
  arm_midgard,
  arm_bifrost,
  arm_valhall,
  broadcom_v3d4,
  broadcom_v3d7,
};

/// "nvidia-ampere" and so on, as on the command line.
GLGEMM_EXPORT std::string_view to_string(DeviceClass device_class) noexcept;
/// Reads what `to_string` writes.
/// @throws std::invalid_argument  there is no such class; the message lists the known ones
GLGEMM_EXPORT DeviceClass parse_device_class(std::string_view name);

/// Finds the class of a device from GL_VENDOR, GL_RENDERER and its limits. It knows the names that Mesa's drivers and the makers'
/// own give. Where a driver runs on another one (zink, D3D12, virgl), it finds the class of the device below. A device of a known
/// maker whose name is not known gets a class whose kernels suit that maker's other devices; any other device is `unknown`.
GLGEMM_EXPORT DeviceClass device_class_of(std::string_view vendor, std::string_view renderer, const Limits& limits);

/// A class, for lists.
struct DeviceClassInfo {
  DeviceClass device_class;
  std::string_view name;     ///< as of `to_string`
  std::string_view devices;  ///< "GeForce RTX 30, RTX A, ..."
};
/// All classes, each at the index that is its value.
GLGEMM_EXPORT std::span<const DeviceClassInfo> device_classes() noexcept;

/// The limits that a usual device of the class has with Mesa's driver: what to plan for where no such device is at hand.
GLGEMM_EXPORT Limits usual_limits(DeviceClass device_class);

}  // namespace glgemm
