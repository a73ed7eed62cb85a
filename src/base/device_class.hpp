// What is known of each class of device beyond OpenGL's limits.
#pragma once

#include <glgemm/limits.hpp>

namespace glgemm {

/// A row of the table of classes in device_class.cpp, which names the source of each number.
struct DeviceTraits {
  DeviceClassInfo info;
  /// Registers of 32 bits that an invocation of the smallest subgroup can have; beyond them the compiler spills.
  int max_registers;
  /// Registers with which enough invocations run at a time to hide the latency of loads. A fast kernel needs no more.
  int registers;
  /// How many bytes of shared memory a compute unit can read in the time of one f32 multiply-add, for each that it does at a
  /// time: 1 where 128 lanes read 128 bytes a clock.
  double shared_bytes;
  /// How many bytes of the device's memory a compute unit can read in that time, for each multiply-add.
  double memory_bytes;
  /// Multiply-adds of doubles for each of floats.
  double f64_rate;
  /// Compute units (NVIDIA: SM; AMD: CU; Intel: subslice, dual subslice or Xe core; Apple: core; Adreno: SP; Mali: core;
  /// Broadcom: QPU) of a usual device.
  int compute_units;
};

/// Whether a class is one of those from `first` to `last`, in the order of DeviceClass.
constexpr bool is_between(DeviceClass device, DeviceClass first, DeviceClass last) noexcept {
  return first <= device && device <= last;
}

inline bool is_nvidia(const Limits& limits) noexcept {
  return is_between(limits.device_class, DeviceClass::nvidia_kepler, DeviceClass::nvidia_blackwell);
}

/// A driver emulates doubles that are this slow: each operation takes hundreds of instructions.
inline constexpr double emulated_f64_rate = 0.01;

const DeviceTraits& traits(DeviceClass device_class) noexcept;
/// The traits of a device: DeviceClass::cpu's traits if it has `cpu`, else its class's.
inline const DeviceTraits& traits(const Limits& limits) noexcept {
  return traits(limits.cpu ? DeviceClass::cpu : limits.device_class);
}

/// The limits of a device of that class, as far as another device, which has `limits`, can run what is planned for them: of each
/// limit the narrower one. An engine takes them where the variable GLGEMM_PLAN_AS names a class.
Limits limits_as(DeviceClass device_class, const Limits& limits);

/// The invocations of a workgroup, 128 at most, so that each can have all registers; with Midgard's 128, each has half of them.
inline int roomy_invocations(const Limits& limits) noexcept {
  return limits.workgroup_invocations <= 128 ? 64 : 128;
}

/// Whether shared memory is cached memory like any other, so that blocks in it gain nothing: Mali, Broadcom.
inline bool shares_through_memory(const Limits& limits) noexcept {
  return !limits.cpu && traits(limits).shared_bytes <= 0.25;
}

}  // namespace glgemm
