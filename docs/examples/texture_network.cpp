// A convolutional network on a texture, in parts that fit into the application's frames: a moving scene, and beside it a drawing.
//
//   texture_network [FRAMES [IMAGE.ppm]]    ends after so many frames, once a drawing is complete; writes the last frame
#include <glad/gl.h>
#define GLFW_INCLUDE_NONE
#include <GLFW/glfw3.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <glgemm/glgemm.hpp>
#include <optional>
#include <stdexcept>
#include <vector>

using namespace std::chrono_literals;

namespace {

constexpr int size = 256;  // of the textures: width and height

// ---- The network draws with a pencil: white paper, less the differences of brightness between neighbours

unsigned make_buffer(const std::vector<float>& values) {
  unsigned buffer = 0;
  glGenBuffers(1, &buffer);
  glBindBuffer(GL_COPY_WRITE_BUFFER, buffer);
  glBufferData(GL_COPY_WRITE_BUFFER, static_cast<GLsizeiptr>(values.size() * sizeof(float)), values.data(), GL_DYNAMIC_DRAW);
  return buffer;
}

/// 8 filters of 3 x 3 pixels x 3 channels, one for each direction: how much brighter it is there.
std::vector<float> brighter() {
  std::vector<float> filters;
  for (int direction = 0; direction < 8; ++direction)
    for (int y = -1; y <= 1; ++y)
      for (int x = -1; x <= 1; ++x) {
        const double angle = direction * 3.14159265358979 / 4;
        const double weight = (x * std::cos(angle) + y * std::sin(angle)) / (x * x + y * y + 1);
        for (const double channel : {0.299, 0.587, 0.114}) filters.push_back(static_cast<float>(weight * channel));
      }
  return filters;
}

/// 3 filters of 3 x 3 pixels x 8 channels: red, green and blue lose the same.
std::vector<float> darken() {
  std::vector<float> filters;
  for (int channel = 0; channel < 3; ++channel)
    for (int y = -1; y <= 1; ++y)
      for (int x = -1; x <= 1; ++x) filters.insert(filters.end(), 8, -0.25f / static_cast<float>(1 << (x * x + y * y)));
  return filters;
}

glgemm::TensorView make_image(std::int64_t channels) {
  const std::vector<float> zeros(static_cast<std::size_t>(size * size * channels));
  return {.buffer = make_buffer(zeros), .size = {size, size}, .channels = channels};
}

class Pencil {
 public:
  explicit Pencil(glgemm::Engine& engine) : engine_(engine) {
    const glgemm::TensorView edges = make_image(8);
    layers_ = {{.input = input_,
                .filters = {.buffer = make_buffer(brighter()), .size = {3, 3}},
                .output = edges,
                .padding = glgemm::Padding::same_upper(),
                .activation = glgemm::Activation::relu()},
               {.input = edges,
                .filters = {.buffer = make_buffer(darken()), .size = {3, 3}},
                .output = output_,
                .padding = glgemm::Padding::same_upper(),
                .bias = glgemm::BiasView::for_each_output(make_buffer({1, 1, 1})),
                .activation = glgemm::Activation::relu()}};
    engine_.prepare(layers_);  // compiles now, so that no frame waits for it
  }

  /// Enqueues so much of a drawing as the budget allows; returns whether it is complete, and in the texture.
  bool draw(unsigned scene, unsigned drawing, std::chrono::nanoseconds budget) {
    if (layer_ == 0 && !job_) engine_.read_texture({.texture = scene}, input_);
    if (!job_) job_.emplace(engine_.start(layers_[layer_]));
    if (!job_->advance(budget)) return false;
    job_.reset();
    layer_ = (layer_ + 1) % layers_.size();
    if (layer_ > 0) return false;  // the next frame begins the next layer
    engine_.write_texture(output_, {.texture = drawing});
    return true;
  }

 private:
  glgemm::Engine& engine_;
  glgemm::TensorView input_ = make_image(3), output_ = make_image(3);
  std::vector<glgemm::Convolution> layers_;
  std::size_t layer_ = 0;
  std::optional<glgemm::Job> job_;
};

// ---- The application: a scene in a texture, and a window

/// A texture that is drawn into, and shown.
struct Target {
  unsigned texture = 0, framebuffer = 0;
  Target() {
    glGenTextures(1, &texture);
    glBindTexture(GL_TEXTURE_2D, texture);
    glTexStorage2D(GL_TEXTURE_2D, 1, GL_RGBA8, size, size);
    glGenFramebuffers(1, &framebuffer);
    glBindFramebuffer(GL_FRAMEBUFFER, framebuffer);
    glFramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, texture, 0);
    glClear(GL_COLOR_BUFFER_BIT);
  }
  void show(int x) const {
    glBindFramebuffer(GL_DRAW_FRAMEBUFFER, 0);
    glBindFramebuffer(GL_READ_FRAMEBUFFER, framebuffer);
    glBlitFramebuffer(0, 0, size, size, x, 0, x + size, size, GL_COLOR_BUFFER_BIT, GL_NEAREST);
  }
};

constexpr const char* cover_shader = R"(#version 430
void main() { gl_Position = vec4(gl_VertexID == 1 ? 3 : -1, gl_VertexID == 2 ? 3 : -1, 0, 1); }
)";

constexpr const char* scene_shader = R"(#version 430
uniform float time;
out vec4 pixel;
void main() {
  vec2 at = gl_FragCoord.xy / 128.0 - 1.0;
  vec3 colour = mix(vec3(0.95, 0.75, 0.55), vec3(0.35, 0.55, 0.85), 0.5 + 0.5 * at.y);
  if (at.y < -0.1) {
    vec2 floor_at = floor(vec2(at.x, 1.0) * 1.5 / (-0.1 - at.y + 0.25) + vec2(64.0, time));
    colour = mod(floor_at.x + floor_at.y, 2.0) < 1.0 ? vec3(0.25, 0.3, 0.35) : vec3(0.6, 0.62, 0.6);
  }
  for (int i = 0; i < 5; ++i) {
    float angle = time * 0.7 + 1.2566 * float(i), radius = 0.16 + 0.04 * float(i);
    vec2 from = (at - vec2(0.65 * cos(angle), 0.1 + 0.35 * sin(2.0 * angle))) / radius;
    float height = 1.0 - dot(from, from);
    if (height > 0.0) {
      float light = max(dot(vec3(from, sqrt(height)), vec3(-0.48, 0.6, 0.64)), 0.0);
      colour = (0.2 + 0.8 * light) * (0.6 + 0.4 * cos(vec3(0.0, 2.1, 4.2) + float(i)));
    }
  }
  pixel = vec4(colour, 1.0);
}
)";

unsigned make_program() {
  const unsigned program = glCreateProgram();
  for (const auto& [kind, text] : {std::pair(GL_VERTEX_SHADER, cover_shader), {GL_FRAGMENT_SHADER, scene_shader}}) {
    const unsigned shader = glCreateShader(static_cast<GLenum>(kind));
    glShaderSource(shader, 1, &text, nullptr);
    glCompileShader(shader);
    glAttachShader(program, shader);
  }
  glLinkProgram(program);
  return program;
}

/// Whether the window's right half is paper with lines on it.
bool is_drawing(const std::vector<unsigned char>& rgb) {
  int white = 0, dark = 0;
  for (int y = 8; y < size - 8; ++y)
    for (int x = size + 8; x < 2 * size - 8; ++x) {
      const unsigned char red = rgb[static_cast<std::size_t>(3 * (y * 2 * size + x))];
      white += red > 240;
      dark += red < 128;
    }
  return white > size * size / 3 && dark > size;
}

bool run(GLFWwindow* window, int frames, const char* image) {
  glgemm::Engine engine(glfwGetProcAddress);
  Pencil pencil(engine);
  const Target scene, drawing;
  const unsigned program = make_program();
  unsigned vertices = 0;
  glGenVertexArrays(1, &vertices);
  int drawings = 0;
  for (int frame = 1; !glfwWindowShouldClose(window); ++frame) {
    glfwPollEvents();
    glBindFramebuffer(GL_FRAMEBUFFER, scene.framebuffer);
    glViewport(0, 0, size, size);
    glUseProgram(program);
    glUniform1f(glGetUniformLocation(program, "time"), static_cast<float>(frames > 0 ? frame / 60. : glfwGetTime()));
    glBindVertexArray(vertices);
    glDrawArrays(GL_TRIANGLES, 0, 3);
    drawings += pencil.draw(scene.texture, drawing.texture, 4ms);
    scene.show(0);
    drawing.show(size);
    if (frames > 0 && frame >= frames && drawings > 0) break;
    glfwSwapBuffers(window);
  }
  std::vector<unsigned char> rgb(static_cast<std::size_t>(3 * 2 * size * size));
  glBindFramebuffer(GL_FRAMEBUFFER, 0);
  glPixelStorei(GL_PACK_ALIGNMENT, 1);
  glReadPixels(0, 0, 2 * size, size, GL_RGB, GL_UNSIGNED_BYTE, rgb.data());
  if (image) {
    std::FILE* file = std::fopen(image, "wb");
    if (!file) throw std::runtime_error("the picture cannot be written");
    std::fprintf(file, "P6\n%d %d\n255\n", 2 * size, size);
    for (int y = size - 1; y >= 0; --y) std::fwrite(&rgb[static_cast<std::size_t>(3 * 2 * size * y)], 3, 2 * size, file);
    std::fclose(file);
  }
  const bool right = glGetError() == GL_NO_ERROR && (frames == 0 || is_drawing(rgb));
  std::printf("%d drawings: %s\n", drawings, right ? "right" : "WRONG");
  return right;
}

}  // namespace

int main(int argc, char** argv) {
  const int frames = argc > 1 ? std::atoi(argv[1]) : 0;
  bool right = false;
  const char* message = "";
  if (glfwInit()) {
    glfwWindowHint(GLFW_CONTEXT_VERSION_MAJOR, 4);
    glfwWindowHint(GLFW_CONTEXT_VERSION_MINOR, 3);
    glfwWindowHint(GLFW_OPENGL_PROFILE, GLFW_OPENGL_CORE_PROFILE);
    glfwWindowHint(GLFW_RESIZABLE, GLFW_FALSE);
    if (GLFWwindow* window = glfwCreateWindow(2 * size, size, "a network on a texture", nullptr, nullptr)) {
      glfwMakeContextCurrent(window);
      try {
        right = gladLoadGL(glfwGetProcAddress) && run(window, frames, argc > 2 ? argv[2] : nullptr);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
      }
      glfwTerminate();
      return right ? 0 : 1;
    }
  }
  glfwGetError(&message);
  std::fprintf(stderr, "no window: %s\n", message);
  glfwTerminate();
  return 1;
}
