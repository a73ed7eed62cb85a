// What a device and its driver can do, as data. Goes with inspect.hpp: nothing here is promised.
#pragma once

#include <array>
#include <cstdint>

#include <glgemm/device_class.hpp>
#include <glgemm/unpromised.hpp>
#include <glgemm/vendor.hpp>

namespace glgemm {

/// The language in which the driver takes programs: GLSL of OpenGL 4.3 to 4.6, of OpenGL ES 3.1 or of OpenGL ES 3.2.
enum class ShadingLanguage { glsl_430, essl_310, essl_320 };

/// What a device and its driver can do, as data: what an Engine found, or anything that a test makes up.
struct Limits {
  /// The most bytes one storage-buffer binding may have.
  std::int64_t storage_block_bytes = 16 * 1024 * 1024;
  /// What the offset of a binding must be a multiple of, in bytes.
  std::int64_t storage_offset_alignment = 256;
  /// The storage buffers that a program may have, and the bindings for them. OpenGL 4.3 has at least 8, OpenGL ES 3.1 at least 4.
  std::int64_t storage_blocks = 8;
  /// The most workgroups of one dispatch in x, y and z.
  std::array<std::int64_t, 3> groups{65535, 65535, 65535};
  /// The most workgroups of one dispatch altogether (llvmpipe multiplies them in an int).
  std::int64_t groups_product = INT32_MAX;
  /// The most invocations of one workgroup in x, y and z, and altogether.
  std::array<std::int64_t, 3> workgroup_size{1024, 1024, 64};
  std::int64_t workgroup_invocations = 1024;
  /// Bytes of shared memory for one workgroup.
  std::int64_t shared_bytes = 32 * 1024;
  /// The most iterations that an invocation may run, in all its loops together: some drivers then end its loops silently. 0: no
  /// limit. llvmpipe before Mesa 25.0 has 65535; a few thousand are left unused here for loops that a driver may add.
  std::int64_t loop_iterations = 0;
  /// Whether shaders can compute with doubles.
  bool f64 = true;
  /// The most bytes of a buffer that shaders can read as an image, and what its offset must be a multiple of; 0 bytes: not at
  /// all.
  std::int64_t image_buffer_bytes = 0;
  /// Shaders can use unpackHalf2x16. Mesa's nouveau links programs with it, but does not run them.
  bool unpacks_halves = true;
  /// The driver makes a load of 16 bytes from a storage buffer into four loads, and checks the bounds of each; from an image it
  /// is one load. Mesa's NVK does so.
  bool splits_storage_loads = false;
  /// fma() rounds once. On a CPU it is then one instruction, and a * b + c is two. Found out on a CPU alone.
  bool fuses_multiply_adds = false;
  /// The size of a subgroup (`gl_SubGroupSizeARB`), if its invocations get each other's numbers about as fast as their own; 0 if
  /// they do not, or if it is unknown. Found out on a CPU alone.
  std::int64_t subgroup_size = 0;
  /// The device computes on a CPU. The cost model then counts differently, see src/plan/cost_model.cpp.
  bool cpu = false;
  /// Workgroups that run at the same time, as far as known: a CPU's threads.
  std::int64_t concurrent_groups = 256;
  /// The maker and generation: what the planner knows of registers and rates beyond OpenGL's own limits.
  DeviceClass device_class = DeviceClass::unknown;
  ShadingLanguage language = ShadingLanguage::glsl_430;
  /// Whether products may run by cuBLAS.
  VendorLibrary vendor = VendorLibrary::not_asked;
  friend bool operator==(const Limits&, const Limits&) = default;
};

}  // namespace glgemm
