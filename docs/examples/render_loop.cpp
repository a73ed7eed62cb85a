// A product in each frame of an application, on its own buffers in its own context.
#include <glgemm/glgemm.hpp>
#include <glgemm/headless.hpp>
#include <span>

namespace {

// An application has its window from GLFW, SDL or Qt.
struct Window {
  glgemm::HeadlessContext context;
  int frames_left = 3;
  bool is_open() const { return frames_left > 0; }
  void draw() { --frames_left; }
};

void render(Window& window, glgemm::Engine& engine, unsigned weights, unsigned inputs, unsigned outputs) {
  const glgemm::Gemm layer{.a = {.buffer = weights, .rows = 256, .columns = 64},  // outputs = relu(weights x inputs)
                           .b = {.buffer = inputs, .rows = 64, .columns = 512},
                           .c = {.buffer = outputs, .rows = 256, .columns = 512},
                           .epilogue = {.activation = glgemm::Activation::relu()}};
  engine.prepare(layer);  // compiles now, so that no frame waits for it
  while (window.is_open()) {
    engine.gemm(layer);                     // enqueues, returns, and leaves OpenGL's state as it was
    engine.barrier(glgemm::Use::vertices);  // outputs are read as vertices next
    window.draw();
  }
}

}  // namespace

int main() {
  Window window;
  glgemm::Engine engine(glgemm::HeadlessContext::get_proc_address);  // or glfwGetProcAddress, SDL_GL_GetProcAddress, ...
  glgemm::Matrix<float> ones(256, 64), twos(64, 512);
  for (float& x : ones.elements()) x = 1;
  for (float& x : twos.elements()) x = 2;
  const glgemm::DeviceMatrix weights(engine, ones), inputs(engine, twos), outputs(engine, 256, 512);
  render(window, engine, weights.view().buffer, inputs.view().buffer, outputs.view().buffer);
  return outputs.download()(255, 511) == 128 ? 0 : 1;
}
