// The window in which a digit is drawn and read.
#include "view/digits.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iostream>
#include <stdexcept>
#include <tuple>
#include <vector>

#include <fmt/core.h>
#include <glad/gl.h>
#define GLFW_INCLUDE_NONE
#include <GLFW/glfw3.h>

#include "drawing/image.hpp"
#include "files/formats.hpp"
#include "view/network.hpp"

namespace glgemm::tools {
namespace {

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

constexpr char escape_key = '\x1b';

/// From now on the keys that are pressed are appended to `keys`, which must live as long as the window: characters, and
/// escape_key.
void listen_to_keys(GLFWwindow* window, std::string& keys) {
  glfwSetWindowUserPointer(window, &keys);
  glfwSetKeyCallback(window, [](GLFWwindow* in, int key, int, int action, int) {
    if (action == GLFW_RELEASE) return;
    if (key == GLFW_KEY_ESCAPE) static_cast<std::string*>(glfwGetWindowUserPointer(in))->push_back(escape_key);
  });
  glfwSetCharCallback(window, [](GLFWwindow* in, unsigned character) {
    if (character < 128) static_cast<std::string*>(glfwGetWindowUserPointer(in))->push_back(static_cast<char>(character));
  });
}

/// One triangle that covers the window.
constexpr std::string_view cover_shader = R"(
void main() { gl_Position = vec4(gl_VertexID == 1 ? 3.0 : -1.0, gl_VertexID == 2 ? 3.0 : -1.0, 0.0, 1.0); }
)";

/// Draws a MapPanel of floats, read from their buffer, and where none of its cells lies the picture that the host has drawn.
constexpr std::string_view panel_shader = R"(
layout(std430, binding = 0) readonly buffer Elements { float elements[]; };
layout(std430, binding = 1) readonly buffer Colours { uint colours[257]; };  // the last one for NaN and infinity
uniform sampler2D surroundings;
uniform int height, cell, gap, columns, channels, size, line;
uniform ivec2 corner;
uniform vec2 range;
out vec4 pixel;

void main() {
  ivec2 at = ivec2(gl_FragCoord.x, height - 1 - int(gl_FragCoord.y));
  pixel = texelFetch(surroundings, at, 0);
  ivec2 inside = at - corner;
  int pitch = cell * size + gap;
  ivec2 map = inside / pitch, within = inside % pitch, position = within / cell;
  int channel = map.y * columns + map.x;
  if (any(lessThan(inside, ivec2(0))) || map.x >= columns || channel >= channels || any(greaterThanEqual(position, ivec2(size))) ||
      any(lessThan(within % cell, ivec2(line))))
    return;
  float value = elements[(position.y * size + position.x) * channels + channel];
  float share = clamp((value - range.x) / (range.y - range.x), 0.0, 1.0);
  uint colour = isnan(value) || isinf(value) ? 256u : uint(255.0 * share + 0.5);
  pixel = vec4(unpackUnorm4x8(colours[colour]).bgr, 1.0);
}
)";

/// colour() in 256 steps, and the colour of what has none.
std::vector<std::uint32_t> scale_of_colours() {
  std::vector<std::uint32_t> colours;
  for (int i = 0; i < 256; ++i) colours.push_back(colour(i / 255.0));
  colours.push_back(out_of_range_colour);
  return colours;
}

/// Makes a texture of the picture's colours, whose elements can be fetched.
void upload_texture(unsigned texture, const Picture& picture) {
  glActiveTexture(GL_TEXTURE0);
  glBindTexture(GL_TEXTURE_2D, texture);
  glPixelStorei(GL_UNPACK_ALIGNMENT, 1);
  glTexImage2D(GL_TEXTURE_2D, 0, GL_RGB8, picture.width, picture.height, 0, GL_RGB, GL_UNSIGNED_BYTE, picture.rgb.data());
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_NEAREST);
  glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_NEAREST);
}

/// What `draw` draws, on a framebuffer of this size that is made for it. Waits.  @throws std::runtime_error  it cannot be drawn
Picture take_picture(int width, int height, const std::function<void()>& draw) {
  unsigned framebuffer = 0, colours = 0;
  glGenFramebuffers(1, &framebuffer);
  glGenRenderbuffers(1, &colours);
  glBindRenderbuffer(GL_RENDERBUFFER, colours);
  glRenderbufferStorage(GL_RENDERBUFFER, GL_RGBA8, width, height);
  glBindFramebuffer(GL_FRAMEBUFFER, framebuffer);
  glFramebufferRenderbuffer(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_RENDERBUFFER, colours);
  const bool complete = glCheckFramebufferStatus(GL_FRAMEBUFFER) == GL_FRAMEBUFFER_COMPLETE;
  Picture picture{width, height,
                  std::vector<unsigned char>(3 * static_cast<std::size_t>(width) * static_cast<std::size_t>(height))};
  if (complete) {
    draw();
    glPixelStorei(GL_PACK_ALIGNMENT, 1);
    glReadPixels(0, 0, width, height, GL_RGB, GL_UNSIGNED_BYTE, picture.rgb.data());
    const std::ptrdiff_t line = 3 * width;  // OpenGL's first line is the lowest
    for (int y = 0; y < height / 2; ++y)
      std::swap_ranges(picture.rgb.begin() + y * line, picture.rgb.begin() + (y + 1) * line, picture.rgb.end() - (y + 1) * line);
  }
  glBindFramebuffer(GL_FRAMEBUFFER, 0);
  glDeleteFramebuffers(1, &framebuffer);
  glDeleteRenderbuffers(1, &colours);
  if (!complete) throw std::runtime_error(fmt::format("the driver cannot draw a picture of {}x{}", width, height));
  return picture;
}

/// Draws what the network holds, straight from its buffers.
class DigitCanvas {
 public:
  DigitCanvas()
      : colours_(scale_of_colours()),
        panel_({{GL_VERTEX_SHADER, cover_shader}, {GL_FRAGMENT_SHADER, panel_shader}}, "#version 430\n") {
    glGenVertexArrays(1, &vertex_array_);
    glGenTextures(1, &texture_);
  }
  ~DigitCanvas() {
    glDeleteVertexArrays(1, &vertex_array_);
    glDeleteTextures(1, &texture_);
  }
  DigitCanvas(const DigitCanvas&) = delete;
  DigitCanvas& operator=(const DigitCanvas&) = delete;

  void draw(const Network& network, const std::string& heading, const std::optional<Answer>& answer, int width, int height) {
    const std::tuple wanted(heading, answer.value_or(Answer()).shares, width, height);
    if (drawn_ != wanted) upload_texture(texture_, digit_surroundings(width, height, heading, answer));
    drawn_ = wanted;
    glActiveTexture(GL_TEXTURE0);
    glBindTexture(GL_TEXTURE_2D, texture_);
    glMemoryBarrier(GL_SHADER_STORAGE_BARRIER_BIT);  // the products' writes, for the fragment shader
    panel_.use();
    glUniform1i(panel_.location("surroundings"), 0);
    glUniform1i(panel_.location("height"), height);
    glBindBufferBase(GL_SHADER_STORAGE_BUFFER, 1, colours_.name());
    glViewport(0, 0, width, height);
    glBindVertexArray(vertex_array_);
    const DigitLayout all = digit_layout(width, height);
    draw_panel(network.input(), all.input);  // and the surroundings in all of the window
    glEnable(GL_SCISSOR_TEST);
    for (std::size_t layer = 0; layer < all.outputs.size(); ++layer) {
      const MapPanel& panel = all.outputs[layer];
      glScissor(panel.x, height - panel.y - panel.height(), panel.width(), panel.height());
      draw_panel(network.output(layer), panel);
    }
    glDisable(GL_SCISSOR_TEST);
  }

 private:
  void draw_panel(const GlBuffer& elements, const MapPanel& panel) {
    const std::pair<const char*, int> numbers[] = {{"cell", panel.cell},         {"gap", panel.gap},   {"columns", panel.columns},
                                                   {"channels", panel.channels}, {"size", panel.size}, {"line", panel.line}};
    for (const auto& [name, value] : numbers) glUniform1i(panel_.location(name), value);
    glUniform2i(panel_.location("corner"), panel.x, panel.y);
    glUniform2f(panel_.location("range"), panel.least, panel.most);
    glBindBufferBase(GL_SHADER_STORAGE_BUFFER, 0, elements.name());
    glDrawArrays(GL_TRIANGLES, 0, 3);
  }

  GlBuffer colours_;
  GlProgram panel_;
  unsigned vertex_array_ = 0, texture_ = 0;
  std::tuple<std::string, std::array<double, 10>, int, int> drawn_;  ///< what the texture holds
};

/// The digit, its network, and the answer.
class DigitViewer {
 public:
  DigitViewer(const ModelFile& weights, std::chrono::nanoseconds budget)
      : engine_(glfwGetProcAddress), network_(engine_, weights), budget_(budget) {}

  const Digit& digit() const { return digit_; }
  const Digit& example(int digit) const { return network_.example(digit); }
  /// Begins to read it.
  void read(const Digit& digit) {
    digit_ = digit;
    network_.begin(digit_, stepping_);
    if (stepping_) answer_.reset();  // else the one before stays until the next is there
    answered_ = false;
  }
  void step() {
    if (!stepping_ || network_.done()) {
      stepping_ = true;
      read(digit_);
    }
    network_.step();
  }
  void end_stepping() { stepping_ = false; }

  /// What the budget allows.
  void compute() {
    if (!stepping_) network_.advance(budget_);
    if (answered_ || !network_.done()) return;
    answered_ = true;
    answer_.reset();
    if (digit_ != Digit()) answer_ = answer_of(network_.scores());
  }
  /// Nothing is left to do until somebody draws.
  bool idle() const { return answered_ || stepping_; }
  void draw(int width, int height) { canvas_.draw(network_, text_of(digit_, answer_), answer_, width, height); }
  std::string figures() const {
    return fmt::format("{}, {} slice{}", text_of(digit_, answer_), network_.slices(), network_.slices() == 1 ? "" : "s");
  }

 private:
  Engine engine_;
  Network network_;
  DigitCanvas canvas_;
  std::chrono::nanoseconds budget_;
  Digit digit_{};
  std::optional<Answer> answer_;
  bool answered_ = false, stepping_ = false;
};

/// The pen that the mouse moves.
class Mouse {
 public:
  explicit Mouse(GLFWwindow* window) : window_(window) {
    glfwSetInputMode(window, GLFW_STICKY_MOUSE_BUTTONS, GLFW_TRUE);  // a click between two frames is one
  }
  /// The digit after what the mouse did since the last call.
  Digit moved(Digit digit, const MapPanel& paper, int width) {
    const bool left = glfwGetMouseButton(window_, GLFW_MOUSE_BUTTON_LEFT) == GLFW_PRESS;
    const bool right = glfwGetMouseButton(window_, GLFW_MOUSE_BUTTON_RIGHT) == GLFW_PRESS;
    if (!left && !right) {
      moves_ = false;
      return digit;
    }
    int window_width = 0, window_height = 0;
    double x = 0, y = 0;
    glfwGetWindowSize(window_, &window_width, &window_height);
    glfwGetCursorPos(window_, &x, &y);
    const double pixels = static_cast<double>(width) / std::max(window_width, 1);  // of the framebuffer, for one of the screen's
    const CellPoint now = cell_at(paper, pixels * x, pixels * y);
    move_pen(digit, moves_ ? before_ : now, now, left ? Pen::draws : Pen::erases);
    before_ = now;
    moves_ = true;
    return digit;
  }

 private:
  GLFWwindow* window_;
  CellPoint before_;  ///< where it was at the last call, if it moves
  bool moves_ = false;
};

}  // namespace

void show_digits(const DigitsArguments& arguments, std::optional<OutputFile>& output) {
  const ModelFile weights = arguments.weights.empty() ? built_in_weights() : open_model(arguments.weights);
  const GlWindow window(arguments.width, arguments.height);
  DigitViewer viewer(weights, arguments.budget);
  Mouse mouse(window.get());
  std::string keys = arguments.keys;  // pressed and not yet obeyed
  listen_to_keys(window.get(), keys);
  const bool until_answered = output && !arguments.frames;
  const std::int64_t last_frame = arguments.frames.value_or(0);
  glfwSwapInterval(last_frame || until_answered ? 0 : 1);
  viewer.read(arguments.example ? viewer.example(*arguments.example) : arguments.digit);

  const auto obey = [&](char key) {
    if (key >= '0' && key <= '9') viewer.read(viewer.example(key - '0'));
    if (key == 'c') viewer.read(Digit());
    if (key == 's') viewer.step();
    if (key == ' ') viewer.end_stepping();
    if (key == 'h') std::cout << digits_keys_text << std::flush;
    if (key == escape_key) glfwSetWindowShouldClose(window.get(), GLFW_TRUE);
  };
  for (std::int64_t frame = 1; !glfwWindowShouldClose(window.get()); ++frame) {
    if (viewer.idle() && keys.empty() && !last_frame && !until_answered)
      glfwWaitEventsTimeout(0.1);
    else
      glfwPollEvents();
    for (; !keys.empty(); keys.erase(0, 1)) obey(keys.front());
    int width = 0, height = 0;
    glfwGetFramebufferSize(window.get(), &width, &height);
    const Digit digit = mouse.moved(viewer.digit(), digit_layout(width, height).input, width);
    if (digit != viewer.digit()) viewer.read(digit);
    viewer.compute();
    if (width > 0 && height > 0) viewer.draw(width, height);  // not while it is minimised
    glfwSetWindowTitle(window.get(), viewer.figures().c_str());
    glfwSwapBuffers(window.get());
    if (frame != last_frame && !(until_answered && viewer.idle())) continue;
    if (output) {
      write_png(*output,
                take_picture(arguments.width, arguments.height, [&] { viewer.draw(arguments.width, arguments.height); }));
      output->commit();
    }
    std::cout << viewer.figures() << std::endl;
    if (glGetError() != GL_NO_ERROR) throw std::runtime_error("OpenGL reports an error");
    return;
  }
}

}  // namespace glgemm::tools
