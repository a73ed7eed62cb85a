// The window of glgemm-view.
#pragma once

#include <stdexcept>
#include <string>

#include <glad/gl.h>
#define GLFW_INCLUDE_NONE
#include <GLFW/glfw3.h>

namespace glgemm::tools {

/// A window with a current OpenGL context.
class GlWindow {
 public:
  /// @throws std::runtime_error  no display, or no OpenGL 4.3
  GlWindow(int width, int height) {
    glfwSetErrorCallback([](int, const char* message) { error_ = message; });
    if (!glfwInit()) throw std::runtime_error("no display to open a window on: " + error_);
    glfwWindowHint(GLFW_CONTEXT_VERSION_MAJOR, 4);
    glfwWindowHint(GLFW_CONTEXT_VERSION_MINOR, 3);
    glfwWindowHint(GLFW_OPENGL_PROFILE, GLFW_OPENGL_CORE_PROFILE);
    std::string errors;
    for (const int api : {GLFW_NATIVE_CONTEXT_API, GLFW_EGL_CONTEXT_API}) {
      glfwWindowHint(GLFW_CONTEXT_CREATION_API, api);
      window_ = glfwCreateWindow(width, height, "glgemm-view", nullptr, nullptr);
      if (window_) break;
      errors += (errors.empty() ? "" : "; ") + error_;
    }
    if (!window_) {
      glfwTerminate();
      throw std::runtime_error("no window with OpenGL 4.3: " + errors);
    }
    glfwMakeContextCurrent(window_);
    if (!gladLoadGL(glfwGetProcAddress)) {
      glfwTerminate();
      throw std::runtime_error("OpenGL's functions cannot be found");
    }
  }
  ~GlWindow() { glfwTerminate(); }
  GlWindow(const GlWindow&) = delete;
  GlWindow& operator=(const GlWindow&) = delete;
  GLFWwindow* get() const { return window_; }

 private:
  static inline std::string error_;
  GLFWwindow* window_ = nullptr;
};

inline constexpr char escape_key = '\x1b';

/// From now on the keys that are pressed are appended to `keys`, which must live as long as the window: characters, and
/// escape_key.
inline void listen_to_keys(GLFWwindow* window, std::string& keys) {
  glfwSetWindowUserPointer(window, &keys);
  glfwSetKeyCallback(window, [](GLFWwindow* in, int key, int, int action, int) {
    if (action == GLFW_RELEASE) return;
    if (key == GLFW_KEY_ESCAPE) static_cast<std::string*>(glfwGetWindowUserPointer(in))->push_back(escape_key);
  });
  glfwSetCharCallback(window, [](GLFWwindow* in, unsigned character) {
    if (character < 128) static_cast<std::string*>(glfwGetWindowUserPointer(in))->push_back(static_cast<char>(character));
  });
}

}  // namespace glgemm::tools
