// The first product: host matrices in, a host matrix out.
#include <glgemm/glgemm.hpp>
#include <glgemm/headless.hpp>  // only where there is no context yet
#include <iostream>

int main() {
  glgemm::HeadlessContext context;                                   // or your own: GLFW's, SDL's, Qt's, EGL's
  glgemm::Engine engine(glgemm::HeadlessContext::get_proc_address);  // or glfwGetProcAddress, ...
  glgemm::Matrix<float> A{{1, 4}, {2, 5}, {3, 6}}, B{{7, 8, 9}, {10, 11, 12}};
  glgemm::Matrix C = engine.multiply(A, B);
  std::cout << C(2, 2) << '\n';  // 99
}
