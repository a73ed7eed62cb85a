// Draws from C's buffer: a product turns points, and OpenGL draws them from where the product has put them.
#include <glad/gl.h>

#include <array>
#include <glgemm/glgemm.hpp>
#include <glgemm/headless.hpp>
#include <vector>

namespace {

constexpr int size = 64;      // of the frame: width and height
constexpr int points = 1000;  // each of four floats, as a vertex has them

void draw(glgemm::Engine& engine, unsigned from, unsigned turn, unsigned turned, unsigned program, unsigned vertices) {
  engine.gemm({.a = {.buffer = from, .rows = points, .columns = 4},  // turned = from x turn: a row is a point
               .b = {.buffer = turn, .rows = 4, .columns = 4},
               .c = {.buffer = turned, .rows = points, .columns = 4}});
  engine.barrier(glgemm::Use::vertices);  // vertices are what C is next
  glUseProgram(program);
  glBindVertexArray(vertices);  // its attribute 0 reads `turned`
  glDrawArrays(GL_POINTS, 0, points);
}

template <std::size_t count>
unsigned make_buffer(const std::array<float, count>& values) {
  unsigned buffer = 0;
  glGenBuffers(1, &buffer);
  glBindBuffer(GL_ARRAY_BUFFER, buffer);
  glBufferData(GL_ARRAY_BUFFER, sizeof values, values.data(), GL_DYNAMIC_DRAW);
  return buffer;
}

unsigned make_program() {
  const unsigned program = glCreateProgram();
  const auto add = [program](GLenum stage, const char* text) {
    const unsigned shader = glCreateShader(stage);
    glShaderSource(shader, 1, &text, nullptr);
    glCompileShader(shader);
    glAttachShader(program, shader);
    glDeleteShader(shader);
  };
  add(GL_VERTEX_SHADER, "#version 430\nlayout(location = 0) in vec4 point;\nvoid main() { gl_Position = point; }\n");
  add(GL_FRAGMENT_SHADER, "#version 430\nout vec4 colour;\nvoid main() { colour = vec4(1); }\n");
  glLinkProgram(program);
  return program;
}

}  // namespace

int main() {
  const glgemm::HeadlessContext context;
  if (gladLoadGL(glgemm::HeadlessContext::get_proc_address) == 0) return 1;
  glgemm::Engine engine(glgemm::HeadlessContext::get_proc_address);

  unsigned framebuffer = 0, pixels = 0, vertices = 0;
  glGenFramebuffers(1, &framebuffer);
  glBindFramebuffer(GL_FRAMEBUFFER, framebuffer);
  glGenRenderbuffers(1, &pixels);
  glBindRenderbuffer(GL_RENDERBUFFER, pixels);
  glRenderbufferStorage(GL_RENDERBUFFER, GL_RGBA8, size, size);
  glFramebufferRenderbuffer(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_RENDERBUFFER, pixels);
  glViewport(0, 0, size, size);

  std::array<float, 4 * points> right{};  // from the middle to the right edge, along the middles of pixels
  for (std::size_t i = 0; i < points; ++i) {
    right[4 * i] = static_cast<float>(i) / points;
    right[4 * i + 1] = -1.f / size;
    right[4 * i + 3] = 1;
  }
  const unsigned from = make_buffer(right), turned = make_buffer(std::array<float, 4 * points>{});
  const unsigned turn = make_buffer(std::array<float, 16>{0, 1, 0, 0, -1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1});  // right becomes up
  glGenVertexArrays(1, &vertices);
  glBindVertexArray(vertices);
  glBindBuffer(GL_ARRAY_BUFFER, turned);
  glVertexAttribPointer(0, 4, GL_FLOAT, GL_FALSE, 0, nullptr);
  glEnableVertexAttribArray(0);

  draw(engine, from, turn, turned, make_program(), vertices);

  std::vector<unsigned> frame(size * size);
  glReadPixels(0, 0, size, size, GL_RGBA, GL_UNSIGNED_BYTE, frame.data());
  const auto white = [&frame](std::size_t x, std::size_t y) { return frame[y * size + x] == 0xFFFFFFFF; };
  return white(32, 50) && !white(50, 32) && glGetError() == GL_NO_ERROR ? 0 : 1;
}
