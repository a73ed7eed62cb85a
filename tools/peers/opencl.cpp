#include "peers/opencl.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <stdexcept>
#include <vector>

namespace glgemm::tools {
namespace {

std::vector<cl_device_id> all_devices() {
  cl_uint count = 0;
  if (clGetPlatformIDs(0, nullptr, &count) != CL_SUCCESS) return {};
  std::vector<cl_platform_id> platforms(count);
  if (count > 0) require(clGetPlatformIDs(count, platforms.data(), nullptr), "clGetPlatformIDs");
  std::vector<cl_device_id> devices;
  for (const cl_platform_id platform : platforms) {
    if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS || count == 0) continue;
    const std::size_t before = devices.size();
    devices.resize(before + count);
    require(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, devices.data() + before, nullptr), "clGetDeviceIDs");
  }
  return devices;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

}  // namespace

void require(cl_int status, const std::string& what) {
  if (status != CL_SUCCESS) throw std::runtime_error(what + ": OpenCL error " + std::to_string(status));
}

std::string device_text(cl_device_id device, cl_device_info what) {
  std::size_t size = 0;
  require(clGetDeviceInfo(device, what, 0, nullptr, &size), "clGetDeviceInfo");
  std::string text(size, '\0');
  require(clGetDeviceInfo(device, what, size, text.data(), nullptr), "clGetDeviceInfo");
  while (!text.empty() && (text.back() == '\0' || text.back() == ' ')) text.pop_back();
  return text;
}

cl_device_id choose_device() {
  const std::vector<cl_device_id> devices = all_devices();
  if (devices.empty()) throw std::runtime_error("there is no OpenCL device; on a CPU the package pocl-opencl-icd gives one");
  const char* const variable = std::getenv("GLGEMM_OPENCL_DEVICE");
  const std::string wanted = variable ? variable : "";
  if (wanted.empty()) return devices.front();
  const bool index = std::all_of(wanted.begin(), wanted.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  std::string names;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const std::string name = device_text(devices[i], CL_DEVICE_NAME);
    if (index ? std::to_string(i) == wanted : lower(name).find(lower(wanted)) != std::string::npos) return devices[i];
    names += (i == 0 ? "" : ", ") + std::to_string(i) + " " + name;
  }
  throw std::runtime_error("no OpenCL device is '" + wanted + "'; there are: " + names);
}

std::string why_no_doubles(cl_device_id device) {
  const bool there = device_text(device, CL_DEVICE_EXTENSIONS).find("cl_khr_fp64") != std::string::npos;
  return there ? "" : "this OpenCL device has no doubles";
}

}  // namespace glgemm::tools
