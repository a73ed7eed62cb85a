// Random streamed products, planned for devices of every class, and what must hold of their plans. No OpenGL.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <glgemm/device_class.hpp>
#include <glgemm/kernel.hpp>

namespace glgemm::test {

/// How many products came to what.
struct StreamChecks {
  std::int64_t planned = 0, refused = 0, unsupported = 0;
};

/// The kernels of all samples.
const std::vector<Kernel>& sampled_kernels();

/// Plans the streamed product that the seed draws, for a device of the class: of any shape, types and formats, within 100 bytes
/// to 1 MiB; by the kernel, or, without one, by one that the seed draws or the planner's. What is wrong with the plan, or with
/// the refusal; empty if nothing is.
std::string fault_of_stream_plan(DeviceClass device_class, const Kernel* kernel, std::uint64_t seed, StreamChecks& checks);

}  // namespace glgemm::test
