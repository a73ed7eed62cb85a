// A network draws a picture: in each frame it gets the place of each pixel and gives its colour. The picture is nowhere else.
//
//   neural_image WEIGHTS.safetensors [FRAMES [IMAGE.ppm]]    ends after so many frames, checks and writes the last one
#include <glad/gl.h>
#define GLFW_INCLUDE_NONE
#include <GLFW/glfw3.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <glgemm/glgemm.hpp>
#include <glgemm/model_file.hpp>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr int size = 256, pixels = size * size;  // of the window

template <class T>
unsigned make_buffer(const std::vector<T>& values) {
  unsigned buffer = 0;
  glGenBuffers(1, &buffer);
  glBindBuffer(GL_COPY_WRITE_BUFFER, buffer);
  glBufferData(GL_COPY_WRITE_BUFFER, static_cast<GLsizeiptr>(values.size() * sizeof(T)), values.data(), GL_STATIC_DRAW);
  return buffer;
}

/// The tensor's elements, behind those of the layers before it. Returns where they begin, in bytes.
template <class T>
std::int64_t append(std::vector<T>& to, const glgemm::ModelTensor& tensor) {
  const std::size_t begin = to.size();
  to.resize(begin + static_cast<std::size_t>(tensor.bytes) / sizeof(T));
  std::memcpy(to.data() + begin, tensor.data, static_cast<std::size_t>(tensor.bytes));
  return static_cast<std::int64_t>(begin * sizeof(T));
}

/// The weights of all layers in one buffer, in half precision, and their biases in another: so nothing is copied in a frame.
struct Network {
  std::vector<glgemm::half> weights;
  std::vector<float> biases;
  std::vector<glgemm::MlpLayer> layers;

  explicit Network(const glgemm::ModelFile& file) {
    const std::size_t count = file.tensors().size() / 2;
    for (std::size_t i = 0; i < count; ++i) {
      const glgemm::ModelTensor& tensor = file.tensor("layer." + std::to_string(i) + ".weight");
      layers.push_back({.weights = {.rows = tensor.shape.at(0), .columns = tensor.shape.at(1), .type = glgemm::Type::f16},
                        .activation = i + 1 < count ? glgemm::Activation::sine(1) : glgemm::Activation()});
      layers[i].weights.offset_bytes = append(weights, tensor);
      layers[i].bias = glgemm::BiasView::for_each_output(0, append(biases, file.tensor("layer." + std::to_string(i) + ".bias")));
    }
    const unsigned weights_buffer = make_buffer(weights), biases_buffer = make_buffer(biases);
    for (glgemm::MlpLayer& layer : layers) {
      layer.weights.buffer = weights_buffer;
      layer.bias = glgemm::BiasView::for_each_output(biases_buffer, layer.bias.offset_bytes());
    }
  }

  /// What it gives for a place, by a serial loop.
  std::vector<double> colour(std::vector<double> x) const {
    const glgemm::half* weight = weights.data();
    const float* bias = biases.data();
    for (const glgemm::MlpLayer& layer : layers) {
      std::vector<double> y;
      for (std::int64_t i = 0; i < layer.weights.rows; ++i) {
        double sum = static_cast<double>(*bias++);
        for (const double input : x) sum += static_cast<double>(static_cast<float>(*weight++)) * input;
        y.push_back(layer.activation.kind() == glgemm::ActivationKind::sine ? std::sin(sum) : sum);
      }
      x = y;
    }
    return x;
  }
};

constexpr const char* place_shader = R"(#version 430
layout(local_size_x = 64) in;
layout(std430, binding = 0) writeonly buffer Places { float places[]; };  // x of all pixels, then y: from -1 to 1
uniform int size;
uniform float scale;
void main() {
  int pixel = int(gl_GlobalInvocationID.x);
  vec2 at = (vec2(pixel % size, pixel / size) + 0.5) / float(size) * 2.0 - 1.0;
  at = mix(vec2(0.4, 0.1), at, scale);
  places[pixel] = at.x;
  places[pixel + size * size] = at.y;
}
)";
std::vector<double> place(int pixel, double scale) {
  const auto along = [&](int i, double centre) { return centre + ((i + 0.5) / size * 2 - 1 - centre) * scale; };
  return {along(pixel % size, 0.4), along(pixel / size, 0.1)};
}

constexpr const char* cover_shader = R"(#version 430
void main() { gl_Position = vec4(gl_VertexID == 1 ? 3 : -1, gl_VertexID == 2 ? 3 : -1, 0, 1); }
)";
constexpr const char* colour_shader = R"(#version 430
layout(std430, binding = 0) readonly buffer Colours { float colours[]; };  // red of all pixels, then green, then blue
uniform int size;
out vec4 colour;
void main() {
  int pixel = int(gl_FragCoord.y) * size + int(gl_FragCoord.x);
  colour = vec4(colours[pixel], colours[pixel + size * size], colours[pixel + 2 * size * size], 1.0);
}
)";

unsigned make_program(std::initializer_list<std::pair<GLenum, const char*>> stages) {
  const unsigned program = glCreateProgram();
  for (const auto& [kind, text] : stages) {
    const unsigned shader = glCreateShader(kind);
    glShaderSource(shader, 1, &text, nullptr);
    glCompileShader(shader);
    glAttachShader(program, shader);
  }
  glLinkProgram(program);
  glUseProgram(program);
  glUniform1i(glGetUniformLocation(program, "size"), size);
  return program;
}

bool run(GLFWwindow* window, const char* weights, int frames, const char* image) {
  glgemm::Engine engine(glfwGetProcAddress);
  const Network network{glgemm::ModelFile(weights)};
  const unsigned places = make_buffer(std::vector<float>(2 * pixels)), colours = make_buffer(std::vector<float>(3 * pixels));
  const unsigned to_places = make_program({{GL_COMPUTE_SHADER, place_shader}});
  const unsigned draw = make_program({{GL_VERTEX_SHADER, cover_shader}, {GL_FRAGMENT_SHADER, colour_shader}});
  unsigned vertices = 0;
  glGenVertexArrays(1, &vertices);
  glBindVertexArray(vertices);

  const glgemm::Mlp mlp{.layers = network.layers,
                        .input = {.buffer = places, .rows = 2, .columns = pixels},
                        .output = {.buffer = colours, .rows = 3, .columns = pixels}};
  engine.prepare(mlp);  // compiles now, so that no frame waits for it
  double scale = 1;
  for (int frame = 1; !glfwWindowShouldClose(window); ++frame) {
    glfwPollEvents();
    const double time = frames > 0 ? (frame - 1) / 60. : glfwGetTime();
    scale = std::exp(1.5 * (std::cos(0.5 * time) - 1));  // into the picture, and out again

    glUseProgram(to_places);
    glUniform1f(glGetUniformLocation(to_places, "scale"), static_cast<float>(scale));
    glBindBufferBase(GL_SHADER_STORAGE_BUFFER, 0, places);
    glDispatchCompute(pixels / 64, 1, 1);
    engine.run(mlp);                       // sees what the dispatch wrote
    engine.barrier(glgemm::Use::storage);  // the fragment shader reads the colours from a storage buffer
    glUseProgram(draw);
    glBindBufferBase(GL_SHADER_STORAGE_BUFFER, 0, colours);
    glDrawArrays(GL_TRIANGLES, 0, 3);

    if (frames > 0 && frame >= frames) break;
    glfwSwapBuffers(window);
  }
  if (frames == 0) return true;

  std::vector<unsigned char> rgb(3 * pixels);
  glPixelStorei(GL_PACK_ALIGNMENT, 1);
  glReadPixels(0, 0, size, size, GL_RGB, GL_UNSIGNED_BYTE, rgb.data());
  double worst = 0;
  for (int pixel = 0; pixel < pixels; pixel += 1009) {
    const std::vector<double> colour = network.colour(place(pixel, scale));
    for (std::size_t i = 0; i < 3; ++i)
      worst = std::max(worst, std::abs(rgb[3 * static_cast<std::size_t>(pixel) + i] - 255 * std::clamp(colour[i], 0., 1.)));
  }
  if (std::FILE* file = image ? std::fopen(image, "wb") : nullptr) {
    std::fprintf(file, "P6\n%d %d\n255\n", size, size);
    for (int y = size - 1; y >= 0; --y) std::fwrite(&rgb[static_cast<std::size_t>(3 * size * y)], 3, size, file);
    std::fclose(file);
  }
  const bool right = glGetError() == GL_NO_ERROR && worst < 1;
  std::printf("the worst of %d pixels is off by %.2f of 255: %s\n", pixels / 1009 + 1, worst, right ? "right" : "WRONG");
  return right;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return std::fputs("usage: neural_image WEIGHTS.safetensors [FRAMES [IMAGE.ppm]]\n", stderr), 2;
  GLFWwindow* window = nullptr;
  bool right = false;
  if (glfwInit()) {
    glfwWindowHint(GLFW_CONTEXT_VERSION_MAJOR, 4);
    glfwWindowHint(GLFW_CONTEXT_VERSION_MINOR, 3);
    glfwWindowHint(GLFW_OPENGL_PROFILE, GLFW_OPENGL_CORE_PROFILE);
    glfwWindowHint(GLFW_RESIZABLE, GLFW_FALSE);
    window = glfwCreateWindow(size, size, "a picture that a network draws", nullptr, nullptr);
  }
  if (window) {
    glfwMakeContextCurrent(window);
    try {
      right =
          gladLoadGL(glfwGetProcAddress) && run(window, argv[1], argc > 2 ? std::atoi(argv[2]) : 0, argc > 3 ? argv[3] : nullptr);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
    }
  } else {
    const char* message = "";
    glfwGetError(&message);
    std::fprintf(stderr, "no window: %s\n", message);
  }
  glfwTerminate();
  return right ? 0 : 1;
}
