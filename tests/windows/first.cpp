// A program that has seen windows.h, with all its macros, before glgemm: a context, and a product in it.
#include <windows.h>

#include <cstdio>
#include <exception>
#include <stdexcept>

#include <glgemm/glgemm.hpp>
#include <glgemm/headless.hpp>

int main() {
  try {
    const glgemm::HeadlessContext context;
    glgemm::Engine engine(glgemm::HeadlessContext::get_proc_address);
    const glgemm::Matrix<float> c = engine.multiply({{1, 2}, {3, 4}}, {{5, 6}, {7, 8}});
    const bool right = c == glgemm::Matrix<float>{{19, 22}, {43, 50}};
    std::printf("%s: %s\n", engine.device().renderer.c_str(), right ? "right" : "WRONG");
    engine.release();
    try {
      glgemm::HeadlessOptions impossible;
      impossible.debug = impossible.no_error = true;
      glgemm::HeadlessContext{impossible};
    } catch (const std::invalid_argument& error) {  // thrown in one library, caught in another
      std::printf("%s\n", error.what());
      return right ? 0 : 1;
    }
    return 1;
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 2;
  }
}
