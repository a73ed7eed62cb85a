// A product in a context of OpenGL ES, and what there is less of than in OpenGL.
#include <glgemm/glgemm.hpp>
#include <glgemm/headless.hpp>
#include <iostream>

int main() {
  glgemm::HeadlessContext context({.device = "", .api = glgemm::ContextApi::es});  // or your own: SDL's, EGL's, GLFW's
  glgemm::Engine engine(glgemm::HeadlessContext::get_proc_address);                // or eglGetProcAddress, ...
  const glgemm::DeviceInfo& device = engine.device();
  std::cout << device.version << ": " << (device.f64 ? "doubles" : "no doubles") << ", shaders reach "
            << device.storage_block_bytes << " bytes of a buffer, times are " << (device.device_clock ? "the device's" : "the host's")
            << '\n';

  const glgemm::Matrix C = engine.multiply({{1, 4}, {2, 5}, {3, 6}}, {{7, 8, 9}, {10, 11, 12}});
  bool refused = false;
  try {
    engine.multiply(glgemm::Matrix<double>{{1}}, glgemm::Matrix<double>{{2}});
  } catch (const glgemm::Unsupported& error) {  // "gemm: this driver has no doubles, and the product is f64"
    refused = true;
  }
  return C(2, 2) == 99 && refused ? 0 : 1;
}
