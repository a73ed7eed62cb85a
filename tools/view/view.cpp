// glgemm-view: a window in which a product runs in each frame, or a large one across many, on buffers of the application, and C
// is drawn straight from its buffer.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <iostream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <glad/gl.h>
#include <CLI/CLI.hpp>
#define GLFW_INCLUDE_NONE
#include <GLFW/glfw3.h>
#include <glgemm/glgemm.hpp>
#include <glgemm/plan.hpp>

#include "files/files.hpp"
#include "files/image.hpp"
#include "view/gl.hpp"
#include "view/scene.hpp"

namespace {

using namespace glgemm;
using namespace glgemm::tools;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t largest_n = 4096, largest_large_n = 16384;
constexpr std::chrono::nanoseconds min_budget = std::chrono::microseconds(125), max_budget = std::chrono::seconds(1);
constexpr Type types[] = {Type::f32, Type::f16, Type::bf16, Type::i32, Type::i8};
constexpr char escape = '\x1b';
constexpr std::string_view keys_text =
    "up, +    twice the size; of a large product: twice the budget\ndown, -  half of it\nk        the next kernel\n"
    "t        the next type of elements\nl        a large product across many frames, and back\n"
    "space    pause\nh        print this\nesc      quit\n";

using Milliseconds = std::chrono::duration<double, std::milli>;

double milliseconds(std::chrono::duration<double> time) {
  return 1e3 * time.count();
}

std::string text(const char* format, double value) {
  std::array<char, 32> result{};
  std::snprintf(result.data(), result.size(), format, value);
  return result.data();
}

struct Arguments {
  std::int64_t n = 256;
  std::string type = "f32";
  std::string kernel = "auto";
  std::int64_t large = 0;  ///< 0: a product in each frame
  double budget_ms = 4;
  int width = 962;
  int height = 900;
  std::optional<std::int64_t> frames;  ///< then it ends, and each frame is a fixed step of the phase
  std::string screenshot;
  std::string keys;
};

// ---- The window

std::string glfw_error;

/// A window with a current OpenGL context.
class Window {
 public:
  /// @throws std::runtime_error  no display, or no OpenGL 4.3
  Window(int width, int height) {
    glfwSetErrorCallback([](int, const char* message) { glfw_error = message; });
    if (!glfwInit()) throw std::runtime_error("no display to open a window on: " + glfw_error);
    glfwWindowHint(GLFW_CONTEXT_VERSION_MAJOR, 4);
    glfwWindowHint(GLFW_CONTEXT_VERSION_MINOR, 3);
    glfwWindowHint(GLFW_OPENGL_PROFILE, GLFW_OPENGL_CORE_PROFILE);
    std::string errors;
    for (const int api : {GLFW_NATIVE_CONTEXT_API, GLFW_EGL_CONTEXT_API}) {
      glfwWindowHint(GLFW_CONTEXT_CREATION_API, api);
      window_ = glfwCreateWindow(width, height, "glgemm-view", nullptr, nullptr);
      if (window_) break;
      errors += (errors.empty() ? "" : "; ") + glfw_error;
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
  ~Window() { glfwTerminate(); }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;
  GLFWwindow* get() const { return window_; }

 private:
  GLFWwindow* window_ = nullptr;
};

// ---- What is shown

struct Settings {
  std::int64_t n = 0;
  Type type = Type::f32;
  std::optional<Kernel> kernel;  ///< none: the planner's choice
  bool large = false;            ///< it runs across frames
};

/// A product, with all that it and its picture need in the context.
struct Product {
  /// Compiles what it needs.  @throws as make_scene, Engine::prepare and GlBuffer
  Product(Engine& engine, Settings wanted)
      : settings(std::move(wanted)),
        scene(make_scene(checked(engine, settings.n), settings.type)),
        waves(scene.waves),
        b(convert(scene_b(scene), settings.type)),
        a((settings.n * settings.n * element_bytes(settings.type) + 3) / 4 * 4),
        c((settings.n * settings.n * element_bytes(scene.c_type) + 3) / 4 * 4),
        animate({{GL_COMPUTE_SHADER, animate_shader}}, define(scene.type)),
        draw({{GL_VERTEX_SHADER, cover_shader}, {GL_FRAGMENT_SHADER, map_shader}}, define(scene.c_type)) {
    const auto view = [&](const GlBuffer& buffer, Type type) {
      return BufferView{.buffer = buffer.name(), .rows = settings.n, .columns = settings.n, .type = type};
    };
    gemm = {.a = view(a, scene.type), .b = view(b, scene.type), .c = view(c, scene.c_type)};
    options.kernel = settings.kernel;
    if (settings.large) fill(c);
    const Problem problem = Engine::problem(gemm);
    engine.prepare({&problem, 1}, options);
    plan = make_plan(problem, engine.limits(), options);
  }

  static std::int64_t checked(const Engine& engine, std::int64_t n) {
    if (4 * n * n > engine.limits().storage_block_bytes)
      throw Unsupported("n is " + std::to_string(n) + ": C has " + std::to_string(4 * n * n) +
                        " bytes, and this driver lets a shader read " + std::to_string(engine.limits().storage_block_bytes));
    return n;
  }
  /// With bits of which each type of real numbers makes a NaN, which has a colour of its own.
  static void fill(const GlBuffer& buffer) {
    const std::vector<unsigned char> ones(std::size_t{1} << 20, 0xff);
    GLint64 bytes = 0;
    glBindBuffer(GL_COPY_WRITE_BUFFER, buffer.name());
    glGetBufferParameteri64v(GL_COPY_WRITE_BUFFER, GL_BUFFER_SIZE, &bytes);
    for (std::int64_t begin = 0; begin < bytes; begin += std::ssize(ones))
      glBufferSubData(GL_COPY_WRITE_BUFFER, static_cast<GLintptr>(begin),
                      static_cast<GLsizeiptr>(std::min<std::int64_t>(std::ssize(ones), bytes - begin)), ones.data());
  }
  static std::string define(Type type) { return "#define TYPE_" + std::string(to_string(type)) + "\n"; }

  Settings settings;
  Scene scene;
  GlBuffer waves, b, a, c;
  GlProgram animate, draw;
  Gemm gemm;
  PlanOptions options;
  Plan plan;
};

/// The kernel's times, each read some frames after it was taken, so that nothing waits for the GPU.
class KernelTimes {
 public:
  explicit KernelTimes(Engine& engine) {
    for (auto& watch : watches_) watch = std::make_unique<Stopwatch>(engine);
  }
  void start() {
    if (started_ - read_ == watches_.size()) read();
    watch(started_).start();
  }
  void stop() { watch(started_++).stop(); }
  /// Reads those that were taken and not read yet; waits.
  void finish() {
    while (read_ < started_) read();
  }
  /// Forgets all.
  void clear() {
    started_ = read_ = 0;
    reset();
  }
  /// Begins a new mean.
  void reset() {
    sum_ = {};
    count_ = 0;
  }
  std::optional<std::chrono::duration<double>> mean() const {
    if (count_ == 0 || sum_.count() <= 0) return {};
    return sum_ / count_;
  }

 private:
  Stopwatch& watch(std::size_t i) { return *watches_[i % watches_.size()]; }
  void read() {
    sum_ += watch(read_++).elapsed();
    ++count_;
  }

  std::array<std::unique_ptr<Stopwatch>, 4> watches_;
  std::size_t started_ = 0, read_ = 0;
  std::chrono::duration<double> sum_{};
  int count_ = 0;
};

class Viewer {
 public:
  Viewer(const Settings& settings, std::int64_t large_n, std::chrono::nanoseconds budget)
      : engine_(glfwGetProcAddress),
        large_n_(large_n),
        budget_(budget),
        times_(std::make_unique<KernelTimes>(engine_)),
        product_(std::make_unique<Product>(engine_, settings)) {
    std::vector<std::uint32_t> colours;
    for (int i = 0; i < 256; ++i) colours.push_back(colour(i / 255.0));
    colours.push_back(out_of_range_colour);
    colours_ = std::make_unique<GlBuffer>(colours);
    glGenVertexArrays(1, &vertex_array_);
    glGenTextures(1, &texture_);
  }
  ~Viewer() {
    glDeleteVertexArrays(1, &vertex_array_);
    glDeleteTextures(1, &texture_);
    colours_.reset();
    job_.reset();
    product_.reset();
    times_.reset();
    try {
      engine_.release();
    } catch (const std::exception& error) {
      std::cerr << "glgemm-view: " << error.what() << '\n';
    }
  }
  Viewer(const Viewer&) = delete;
  Viewer& operator=(const Viewer&) = delete;

  /// A new A, and C = A B. Enqueues; of a large product, what the budget allows, and a new A when C is complete.
  void compute(std::uint32_t phase) {
    const Product& p = *product_;
    if (p.settings.large) {
      if (!job_) {
        animate(phase);
        job_.emplace(engine_.start(p.gemm, p.options));
      }
      job_->advance(budget_);
      progress_ = job_->progress();
      if (!job_->done()) return;
      job_.reset();
      ++completed_;
      return;
    }
    animate(phase);
    times_->start();
    engine_.gemm(p.gemm, p.options);
    times_->stop();
  }

  /// Writes A. Enqueues.
  void animate(std::uint32_t phase) {
    const Product& p = *product_;
    const std::int64_t n = p.settings.n, words = (n * n * element_bytes(p.settings.type) + 3) / 4;
    constexpr std::int64_t group = 64, groups_x = 1024;
    p.animate.use();
    glUniform1ui(p.animate.location("n"), static_cast<unsigned>(n));
    glUniform1ui(p.animate.location("unit"), static_cast<unsigned>((std::int64_t{1} << 32) / n));
    glUniform1ui(p.animate.location("phase"), phase);
    glUniform1ui(p.animate.location("invocations_x"), static_cast<unsigned>(group * groups_x));
    glUniform1f(p.animate.location("scale"), p.scene.scale);
    glBindBufferBase(GL_SHADER_STORAGE_BUFFER, 0, p.waves.name());
    glBindBufferBase(GL_SHADER_STORAGE_BUFFER, 1, p.a.name());
    glDispatchCompute(static_cast<unsigned>(groups_x), static_cast<unsigned>((words + group * groups_x - 1) / (group * groups_x)),
                      1);
  }

  /// Draws C into the current framebuffer. Enqueues.
  void draw(int width, int height) {
    const Product& p = *product_;
    const MapArea map = map_area(width, height, p.settings.n);
    glActiveTexture(GL_TEXTURE0);
    glBindTexture(GL_TEXTURE_2D, texture_);
    if (!surroundings_are_for(width, height)) {
      const Picture picture = surroundings(width, height, p.scene, heading(), caption);
      glPixelStorei(GL_UNPACK_ALIGNMENT, 1);
      glTexImage2D(GL_TEXTURE_2D, 0, GL_RGB8, width, height, 0, GL_RGB, GL_UNSIGNED_BYTE, picture.rgb.data());
      glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_NEAREST);
      glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_NEAREST);
      drawn_ = {width, height};
    }
    glMemoryBarrier(GL_SHADER_STORAGE_BARRIER_BIT);  // the product's writes to C, for the fragment shader
    p.draw.use();
    glUniform1i(p.draw.location("surroundings"), 0);
    glUniform1i(p.draw.location("height"), height);
    glUniform3i(p.draw.location("map"), map.x, map.y, map.side);
    glUniform1ui(p.draw.location("n"), static_cast<unsigned>(p.settings.n));
    glUniform1f(p.draw.location("range"), static_cast<float>(p.scene.range));
    glBindBufferBase(GL_SHADER_STORAGE_BUFFER, 0, p.c.name());
    glBindBufferBase(GL_SHADER_STORAGE_BUFFER, 1, colours_->name());
    glViewport(0, 0, width, height);
    glBindVertexArray(vertex_array_);
    glDrawArrays(GL_TRIANGLES, 0, 3);
  }

  /// The picture of a window of this size, which none need be. Waits.
  Picture screenshot(int width, int height) {
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
      draw(width, height);
      glPixelStorei(GL_PACK_ALIGNMENT, 1);
      glReadPixels(0, 0, width, height, GL_RGB, GL_UNSIGNED_BYTE, picture.rgb.data());
      const std::ptrdiff_t line = 3 * width;  // OpenGL's first line is the lowest
      for (int y = 0; y < height / 2; ++y)
        std::swap_ranges(picture.rgb.begin() + y * line, picture.rgb.begin() + (y + 1) * line,
                         picture.rgb.end() - (y + 1) * line);
    }
    glBindFramebuffer(GL_FRAMEBUFFER, 0);
    glDeleteFramebuffers(1, &framebuffer);
    glDeleteRenderbuffers(1, &colours);
    if (!complete)
      throw std::runtime_error("the driver cannot draw a picture of " + std::to_string(width) + "x" + std::to_string(height));
    return picture;
  }

  /// Another product; on failure the present one stays.
  void change(const Settings& settings) {
    product_ = std::make_unique<Product>(engine_, settings);
    job_.reset();
    progress_ = 0;
    drawn_ = {};
    times_->clear();
  }
  void bigger() {
    if (product_->settings.large)
      budget_ = std::min(2 * budget_, max_budget);
    else
      resize(2 * product_->settings.n);
  }
  void smaller() {
    if (product_->settings.large)
      budget_ = std::max(budget_ / 2, min_budget);
    else
      resize(product_->settings.n / 2);
  }
  void change_largeness() {
    Settings settings = product_->settings;
    settings.large = !settings.large;
    settings.n = std::exchange(large_n_, settings.n);
    change_if_possible(settings);
    if (product_->settings.large != settings.large) large_n_ = settings.n;
  }
  void next_type() {
    Settings settings = product_->settings;
    settings.type =
        types[(std::find(std::begin(types), std::end(types), settings.type) - std::begin(types) + 1) % std::ssize(types)];
    change_if_possible(settings);
  }
  /// The planner's choice comes after the last kernel of the table.
  void next_kernel() {
    Settings settings = product_->settings;
    const std::vector<Kernel>& table = kernel_table();
    auto next = table.begin();
    if (settings.kernel)
      next = std::find_if(table.begin(), table.end(), [&](const Kernel& k) { return name(k) == name(*settings.kernel); }) + 1;
    while (next != table.end() && !why_not(product_->plan.problem, *next, engine_.limits()).empty()) ++next;
    settings.kernel = next == table.end() ? std::optional<Kernel>{} : *next;
    change_if_possible(settings);
  }

  KernelTimes& times() { return *times_; }
  /// How many large products were computed to their end.
  std::int64_t completed() const { return completed_; }
  /// What is shown, and how fast; the mean of `frame` is the caller's.
  std::string figures(std::chrono::duration<double> frame) const {
    const auto n = static_cast<double>(product_->settings.n);
    std::string result = heading() + ": frame " + text("%.3g ms", milliseconds(frame));
    if (product_->settings.large)
      return result + " (" + text("%.3g", 1 / frame.count()) + " in a second), budget " + text("%.3g ms", milliseconds(budget_)) +
             ", " + text("%.0f", std::floor(100 * progress_)) + " % done";
    if (const auto kernel = times_->mean())
      result += ", kernel " + text("%.3g ms", milliseconds(*kernel)) + ", " + text("%.4g ", 2e-9 * n * n * n / kernel->count()) +
                (is_integer(product_->settings.type) ? "GOP/s" : "GFLOP/s");
    return result;
  }

 private:
  static constexpr const char* caption = "up, down: size   k: kernel   t: type   l: large   space: pause   h: help   esc: quit";

  std::string heading() const {
    const std::string n = std::to_string(product_->settings.n);
    return "C = A B, " + n + " x " + n + ", " + std::string(to_string(product_->settings.type)) + ", " +
           std::string(name(product_->plan.kernel)) + (product_->settings.kernel ? "" : " (auto)");
  }
  bool surroundings_are_for(int width, int height) const { return drawn_ == std::pair(width, height); }
  void resize(std::int64_t n) {
    if (n < 1 || n > largest_n) return;
    Settings settings = product_->settings;
    settings.n = n;
    change_if_possible(settings);
  }
  /// A kernel that cannot run it gives way to the planner's choice; what cannot be shown at all is said, and nothing changes.
  void change_if_possible(Settings settings) {
    try {
      try {
        change(settings);
      } catch (const Unsupported&) {
        if (!settings.kernel) throw;
        settings.kernel.reset();
        change(settings);
      }
    } catch (const std::exception& error) {
      std::cerr << "glgemm-view: " << error.what() << '\n';
    }
  }

  Engine engine_;
  std::int64_t large_n_;  ///< the size that the key for large products changes to, or back to
  std::chrono::nanoseconds budget_;
  double progress_ = 0;
  std::int64_t completed_ = 0;
  std::unique_ptr<KernelTimes> times_;
  std::unique_ptr<Product> product_;
  std::optional<Job> job_;
  std::unique_ptr<GlBuffer> colours_;
  unsigned vertex_array_ = 0;
  unsigned texture_ = 0;
  std::pair<int, int> drawn_;  ///< the size for which the texture holds the surroundings of the present product
};

// ---- The program

void on_key(GLFWwindow* window, int key, int, int action, int) {
  if (action == GLFW_RELEASE) return;
  constexpr std::pair<int, char> meanings[] = {
      {GLFW_KEY_UP, '+'}, {GLFW_KEY_KP_ADD, '+'}, {GLFW_KEY_DOWN, '-'}, {GLFW_KEY_KP_SUBTRACT, '-'}, {GLFW_KEY_ESCAPE, escape}};
  for (const auto& [code, meaning] : meanings)
    if (key == code) static_cast<std::string*>(glfwGetWindowUserPointer(window))->push_back(meaning);
}

void on_character(GLFWwindow* window, unsigned character) {
  if (std::string_view("+-kthl ").find(static_cast<char>(character)) != std::string_view::npos && character < 128)
    static_cast<std::string*>(glfwGetWindowUserPointer(window))->push_back(static_cast<char>(character));
}

void run(const Arguments& arguments) {
  const bool large = arguments.large > 0;
  Settings settings{.n = large ? arguments.large : arguments.n, .type = parse_type(arguments.type), .kernel = {}, .large = large};
  if (arguments.kernel != "auto") settings.kernel = parse_kernel(arguments.kernel);
  make_scene(1, settings.type);  // what is wrong with the type is said before a window opens
  std::optional<OutputFile> output;
  if (!arguments.screenshot.empty()) output.emplace(arguments.screenshot);
  const bool until_complete = large && output && !arguments.frames;
  const std::int64_t last_frame = arguments.frames.value_or(output && !large ? 1 : 0);

  const Window window(arguments.width, arguments.height);
  Viewer viewer(settings, large ? arguments.n : largest_n,
                std::chrono::duration_cast<std::chrono::nanoseconds>(Milliseconds(arguments.budget_ms)));
  std::string keys = arguments.keys;  // pressed and not yet obeyed
  glfwSetWindowUserPointer(window.get(), &keys);
  glfwSetKeyCallback(window.get(), on_key);
  glfwSetCharCallback(window.get(), on_character);
  glfwSwapInterval(last_frame || until_complete ? 0 : 1);

  std::uint32_t phase = 0;
  bool paused = false;
  const Clock::time_point begin = Clock::now();
  Clock::time_point before = begin, titled = begin;
  int frames_in_title = 0;
  for (std::int64_t frame = 1; !glfwWindowShouldClose(window.get()); ++frame) {
    glfwPollEvents();
    for (; !keys.empty(); keys.erase(0, 1)) {
      switch (keys.front()) {
        case '+':
          viewer.bigger();
          break;
        case '-':
          viewer.smaller();
          break;
        case 'k':
          viewer.next_kernel();
          break;
        case 't':
          viewer.next_type();
          break;
        case 'l':
          viewer.change_largeness();
          break;
        case ' ':
          paused = !paused;
          break;
        case 'h':
          std::cout << keys_text << std::flush;
          break;
        default:
          glfwSetWindowShouldClose(window.get(), GLFW_TRUE);
      }
    }
    int width = 0, height = 0;
    glfwGetFramebufferSize(window.get(), &width, &height);
    viewer.compute(phase);
    if (width > 0 && height > 0) viewer.draw(width, height);  // not while it is minimised
    glfwSwapBuffers(window.get());

    const Clock::time_point now = Clock::now();
    ++frames_in_title;
    if (now - titled > std::chrono::milliseconds(250)) {
      glfwSetWindowTitle(window.get(), viewer.figures((now - titled) / frames_in_title).c_str());
      viewer.times().reset();
      titled = now;
      frames_in_title = 0;
    }
    if (frame == last_frame || (until_complete && viewer.completed() > 0)) {
      if (output) {
        write_png(*output, viewer.screenshot(arguments.width, arguments.height));
        output->commit();
      }
      viewer.times().finish();
      std::cout << viewer.figures((now - begin) / frame) << std::endl;
      if (glGetError() != GL_NO_ERROR) throw std::runtime_error("OpenGL reports an error");
      return;
    }
    // 20 seconds for a turn, whatever the frame rate.
    if (!paused)
      phase += last_frame
                   ? phase_step
                   : static_cast<std::uint32_t>(0x1p32 / 20 * std::min(1.0, std::chrono::duration<double>(now - before).count()));
    before = now;
  }
}

int fail(const std::string& message) {
  std::cout.flush();
  std::cerr << "glgemm-view: " << message << std::endl;
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  setenv("ZINK_INLINE_UNIFORMS", "0", 0);  // zink on a CPU gives wrong products otherwise
  try {
    Arguments arguments;
    CLI::App app(
        "Shows a matrix product that runs in each frame, or a large one that runs across many, as a heat map drawn "
        "from the product's own buffer.",
        "glgemm-view");
    app.set_version_flag("--version", "glgemm-view " GLGEMM_VERSION_STRING, "Print the version and exit");
    app.set_help_flag("-h,--help", "Print this help and exit");
    app.add_option("-n,--size", arguments.n, "Rows and columns of the matrices at first")
        ->check(CLI::Range(std::int64_t{1}, largest_n))
        ->type_name("N")
        ->capture_default_str();
    auto* large = app.add_option("--large", arguments.large,
                                 "A product of this size that runs across frames: in each, so much of it as --budget allows; "
                                 "elements not computed yet have the colour of NaN")
                      ->expected(0, 1)
                      ->default_str(std::to_string(largest_n))
                      ->check(CLI::Range(std::int64_t{1}, largest_large_n))
                      ->type_name("[N=" + std::to_string(largest_n) + "]");
    app.add_option("--budget", arguments.budget_ms, "Time that a large product gets in each frame at first, in milliseconds")
        ->check(CLI::Range(milliseconds(min_budget), milliseconds(max_budget)))
        ->needs(large)
        ->type_name("MS")
        ->capture_default_str();
    app.add_option("--type", arguments.type, "Their elements at first: f32, f16, bf16, i32 or i8")
        ->type_name("TYPE")
        ->capture_default_str();
    app.add_option("--kernel", arguments.kernel, "The kernel at first, as in tiled:tile=16; auto: the best that can")
        ->type_name("NAME")
        ->capture_default_str();
    app.add_option("--width", arguments.width, "Of the window, in pixels")
        ->check(CLI::Range(64, 8192))
        ->type_name("W")
        ->capture_default_str();
    app.add_option("--height", arguments.height, "Of the window, in pixels")
        ->check(CLI::Range(64, 8192))
        ->type_name("H")
        ->capture_default_str();
    app.add_option("--frames", arguments.frames, "End after this many frames, equal steps apart, and print the figures")
        ->check(CLI::PositiveNumber)
        ->type_name("COUNT");
    app.add_option("--screenshot", arguments.screenshot,
                   "Write the last frame as .png; alone: the first, of a large product the one that completes it, and end")
        ->type_name("FILE");
    app.add_option("--keys", arguments.keys, "Press these keys first, as in '++t'")
        ->check([](const std::string& keys) {
          return keys.find_first_not_of("+-kthl ") == std::string::npos ? "" : "knows the keys + - k t l h and space";
        })
        ->type_name("KEYS");
    app.footer("Keys:\n" + std::string(keys_text));
    try {
      app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) return app.exit(error);
      return fail(std::string(error.what()) + " (--help explains)");
    }
    run(arguments);
    return 0;
  } catch (const std::bad_alloc&) {
    return fail("not enough memory");
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}
