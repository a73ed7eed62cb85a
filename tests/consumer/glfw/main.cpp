// Multiplies two matrices in buffers of its own, in the context of a window of its own, and checks the product.
#include <array>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

#define GLFW_INCLUDE_GLEXT
#include <GLFW/glfw3.h>
#include <glgemm/glgemm.hpp>

namespace {

/// An application has a loader of some kind; this one needs six functions.
template <class F>
F find(const char* name) {
  const auto function = reinterpret_cast<F>(glfwGetProcAddress(name));
  if (!function) throw std::runtime_error(std::string("OpenGL has no ") + name);
  return function;
}

bool multiply() {
  const auto generate = find<PFNGLGENBUFFERSPROC>("glGenBuffers");
  const auto bind = find<PFNGLBINDBUFFERPROC>("glBindBuffer");
  const auto fill = find<PFNGLBUFFERDATAPROC>("glBufferData");
  const auto read = find<PFNGLGETBUFFERSUBDATAPROC>("glGetBufferSubData");
  const auto barrier = find<PFNGLMEMORYBARRIERPROC>("glMemoryBarrier");
  const auto error = find<decltype(&glGetError)>("glGetError");

  const std::array<float, 6> a{1, 4, 2, 5, 3, 6}, b{7, 8, 9, 10, 11, 12};
  std::array<float, 9> c{};
  std::array<GLuint, 3> buffers{};
  generate(3, buffers.data());
  const auto upload = [&](GLuint buffer, const auto& data) {
    bind(GL_ARRAY_BUFFER, buffer);
    fill(GL_ARRAY_BUFFER, sizeof(data), data.data(), GL_STATIC_DRAW);
  };
  upload(buffers[0], a);
  upload(buffers[1], b);
  upload(buffers[2], c);

  glgemm::Engine engine(glfwGetProcAddress);
  engine.gemm({.a = {.buffer = buffers[0], .rows = 3, .columns = 2},
               .b = {.buffer = buffers[1], .rows = 2, .columns = 3},
               .c = {.buffer = buffers[2], .rows = 3, .columns = 3}});
  barrier(GL_BUFFER_UPDATE_BARRIER_BIT);
  read(GL_ARRAY_BUFFER, 0, sizeof(c), c.data());  // still bound: the product has left the state as it was
  const std::string renderer = engine.device().renderer;
  engine.release();

  const bool right = c == std::array<float, 9>{47, 52, 57, 64, 71, 78, 81, 90, 99} && error() == GL_NO_ERROR;
  std::printf("glgemm %s in a window on %s: %s\n", GLGEMM_VERSION_STRING, renderer.c_str(), right ? "right" : "WRONG");
  return right;
}

}  // namespace

int main() {
  const char* message = "";
  int status = 1;
  if (glfwInit()) {
    glfwWindowHint(GLFW_CONTEXT_VERSION_MAJOR, 4);
    glfwWindowHint(GLFW_CONTEXT_VERSION_MINOR, 3);
    glfwWindowHint(GLFW_OPENGL_PROFILE, GLFW_OPENGL_CORE_PROFILE);
    if (GLFWwindow* window = glfwCreateWindow(320, 240, "consumer", nullptr, nullptr)) {
      glfwMakeContextCurrent(window);
      try {
        status = multiply() ? 0 : 1;
      } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
      }
      glfwTerminate();
      return status;
    }
  }
  glfwGetError(&message);
  std::fprintf(stderr, "no device: %s\n", message);
  glfwTerminate();
  return status;
}
