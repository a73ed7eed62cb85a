// What peers on OpenCL share: the device, the first or the one that GLGEMM_OPENCL_DEVICE names by its index or a part of its
// name.
#pragma once

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <string>

namespace glgemm::tools {

/// @throws std::runtime_error  with `what` and the status
void require(cl_int status, const std::string& what);

std::string device_text(cl_device_id device, cl_device_info what);

/// @throws std::runtime_error  there is no such device; the message has those that there are
cl_device_id choose_device();

/// Empty if the device has doubles, else a sentence.
std::string why_no_doubles(cl_device_id device);

}  // namespace glgemm::tools
