// glgemm-view: a window in which a product runs in each frame, or a large one across many, on buffers of the application, and C
// is drawn straight from its buffer.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <iostream>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <glad/gl.h>
#include <CLI/CLI.hpp>
#define GLFW_INCLUDE_NONE
#include <GLFW/glfw3.h>
#include <glgemm/glgemm.hpp>
#include <glgemm/plan.hpp>

#include "arguments/help.hpp"
#include "arguments/options.hpp"
#include "drawing/image.hpp"
#include "files/files.hpp"
#include "system/program.hpp"
#include "view/viewer.hpp"
#ifdef GLGEMM_HAS_IMGUI
#include "view/overlay.hpp"
#endif

namespace {

using namespace glgemm;
using namespace glgemm::tools;
using Clock = std::chrono::steady_clock;

constexpr char escape = '\x1b';
constexpr std::string_view keys_text =
    "  up, +    twice the size; of a large product: twice the budget\n  down, -  half of it\n  k        the next kernel\n"
    "  t        the next type of elements\n  l        a large product across many frames, and back\n"
    "  o        the panel with the plan, times, errors and controls, and away with it\n"
    "  s        a large product's next slice alone; space goes on\n"
    "  space    pause\n  h        print this\n  esc      quit\n";
/// What --keys and the keyboard know.
constexpr std::string_view known_keys = "+-ktlosh ";

struct Arguments {
  std::int64_t n = 256;
  std::string type = "f32";
  std::string kernel = "auto";
  std::int64_t large = 0;  ///< 0: a product in each frame
  double budget_ms = 4;
  std::optional<int> width;
  int height = 900;
  std::optional<std::int64_t> frames;  ///< then it ends, and each frame is a fixed step of the phase
  std::string screenshot;
  std::string keys;
  bool overlay = false;
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

// ---- The program

#ifdef GLGEMM_HAS_IMGUI
constexpr bool has_overlay = true;
#else
constexpr bool has_overlay = false;
/// Stands for the panel, which is left out.
struct Overlay {
  static constexpr int reserved = 0;
  explicit Overlay(GLFWwindow*) {}
  void update(Viewer&, bool&) {}
  static void draw() {}
};
#endif
constexpr const char* no_overlay =
    "the panel is left out of this program: Dear ImGui (libimgui-dev) was not there when it was built";

void on_key(GLFWwindow* window, int key, int, int action, int) {
  if (action == GLFW_RELEASE) return;
  constexpr std::pair<int, char> meanings[] = {
      {GLFW_KEY_UP, '+'}, {GLFW_KEY_KP_ADD, '+'}, {GLFW_KEY_DOWN, '-'}, {GLFW_KEY_KP_SUBTRACT, '-'}, {GLFW_KEY_ESCAPE, escape}};
  for (const auto& [code, meaning] : meanings)
    if (key == code) static_cast<std::string*>(glfwGetWindowUserPointer(window))->push_back(meaning);
}

void on_character(GLFWwindow* window, unsigned character) {
  if (character < 128 && known_keys.find(static_cast<char>(character)) != std::string_view::npos)
    static_cast<std::string*>(glfwGetWindowUserPointer(window))->push_back(static_cast<char>(character));
}

void run(const Arguments& arguments) {
  const bool large = arguments.large > 0;
  Settings settings{.n = large ? arguments.large : arguments.n, .type = parse_type(arguments.type), .kernel = {}, .large = large};
  if (arguments.kernel != "auto") settings.kernel = parse_kernel(arguments.kernel);
  make_scene(1, settings.type);  // what is wrong with the type is said before a window opens
  if (arguments.overlay && !has_overlay) throw std::runtime_error(std::string("--overlay: ") + no_overlay);
  std::optional<OutputFile> output;
  if (!arguments.screenshot.empty()) output.emplace(arguments.screenshot);
  const bool until_complete = large && output && !arguments.frames;
  const std::int64_t last_frame = arguments.frames.value_or(output && !large ? 1 : 0);

  const int width = arguments.width.value_or(962 + (arguments.overlay ? Overlay::reserved : 0));
  const Window window(width, arguments.height);
  Viewer viewer(glfwGetProcAddress, settings, large ? arguments.n : largest_n,
                std::chrono::duration_cast<std::chrono::nanoseconds>(Milliseconds(arguments.budget_ms)));
  std::string keys = arguments.keys;  // pressed and not yet obeyed
  glfwSetWindowUserPointer(window.get(), &keys);
  glfwSetKeyCallback(window.get(), on_key);
  glfwSetCharCallback(window.get(), on_character);
  std::optional<Overlay> overlay;
  const auto change_overlay = [&] {
    if (overlay)
      overlay.reset();
    else if (has_overlay)
      overlay.emplace(window.get());
    else
      std::cerr << "glgemm-view: " << no_overlay << '\n';
    overlay ? viewer.set_on_top(Overlay::draw, Overlay::reserved) : viewer.set_on_top({}, 0);
  };
  if (arguments.overlay) change_overlay();
  glfwSwapInterval(last_frame || until_complete ? 0 : 1);

  bool paused = false;
  const std::map<char, std::function<void()>> actions{
      {'+', [&] { viewer.resize(true); }},
      {'-', [&] { viewer.resize(false); }},
      {'k', [&] { viewer.next_kernel(); }},
      {'t', [&] { viewer.next_type(); }},
      {'l', [&] { viewer.change_largeness(); }},
      {'o', change_overlay},
      {'s', [&] { viewer.step(); }},
      {' ', [&] { viewer.stepping() ? viewer.end_stepping() : static_cast<void>(paused = !paused); }},
      {'h', [] { std::cout << keys_text << std::flush; }},
      {escape, [&] { glfwSetWindowShouldClose(window.get(), GLFW_TRUE); }}};

  std::uint32_t phase = 0;
  const Clock::time_point begin = Clock::now();
  Clock::time_point before = begin, titled = begin, measured;
  int frames_in_title = 0;
  for (std::int64_t frame = 1; !glfwWindowShouldClose(window.get()); ++frame) {
    glfwPollEvents();
    for (; !keys.empty(); keys.erase(0, 1)) actions.at(keys.front())();
    int drawn_width = 0, drawn_height = 0;
    glfwGetFramebufferSize(window.get(), &drawn_width, &drawn_height);
    viewer.compute(phase);
    const bool last = frame == last_frame || (until_complete && viewer.completed() > 0);
    if (overlay) {
      if (last || viewer.settings().large || Clock::now() - measured > std::chrono::milliseconds(250)) {
        viewer.measure_errors();
        measured = Clock::now();
      }
      overlay->update(viewer, paused);
    }
    if (drawn_width > 0 && drawn_height > 0) viewer.draw(drawn_width, drawn_height);  // not while it is minimised
    glfwSwapBuffers(window.get());

    const Clock::time_point now = Clock::now();
    ++frames_in_title;
    if (now - titled > std::chrono::milliseconds(250)) {
      glfwSetWindowTitle(window.get(), viewer.figures((now - titled) / frames_in_title).c_str());
      viewer.times().reset();
      titled = now;
      frames_in_title = 0;
    }
    viewer.frame_times().add(milliseconds(now - before));
    if (last) {
      if (output) {
        write_png(*output, viewer.screenshot(width, arguments.height));
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

void add_options(CLI::App& app, Arguments& arguments) {
  app.set_version_flag("--version", "glgemm-view " GLGEMM_VERSION_STRING, "Print the version and exit");
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.formatter_fn([](const CLI::App* self, const std::string& name, CLI::AppFormatMode) { return help_text(*self, name); });
  add_option_with_default(app, "-n,--size", arguments.n, "N", "Rows and columns of the matrices at first")
      ->check(in_range(std::int64_t{1}, largest_n));
  auto* large = add_option(app, "--large", arguments.large, "[N]",
                           "A product of this size (4096 where N is missing) that runs across frames: in each, so much of it "
                           "as --budget allows; "
                           "elements not computed yet have the colour of NaN")
                    ->expected(0, 1)
                    ->default_str(std::to_string(largest_n))
                    ->check(in_range(std::int64_t{1}, largest_large_n));
  add_option_with_default(app, "--budget", arguments.budget_ms, "MS",
                          "Time that a large product gets in each frame at first, in milliseconds")
      ->check(in_range(milliseconds(min_budget), milliseconds(max_budget)))
      ->needs(large);
  add_option_with_default(app, "--type", arguments.type, "TYPE", "Their elements at first: f32, f16, bf16, i32 or i8");
  add_option_with_default(app, "--kernel", arguments.kernel, "auto|KERNEL",
                          "The kernel at first, as in tiled:tile=16; auto: the best that can");
  add_option(app, "--width", arguments.width, "PIXELS", "Of the window; with --overlay, 1300 where this is missing")
      ->check(in_range(64, 8192))
      ->default_str("962");
  add_option_with_default(app, "--height", arguments.height, "PIXELS", "Of the window")->check(in_range(64, 8192));
  add_option(app, "--frames", arguments.frames, "COUNT", "End after this many frames, equal steps apart, and print the figures")
      ->check(CLI::PositiveNumber);
  add_option(app, "--screenshot", arguments.screenshot, "FILE",
             "Write the last frame as .png; alone: the first, of a large product the one that completes it, and end");
  app.add_flag("--overlay", arguments.overlay,
               "Begin with the panel: device and plan, times as curves, the error of C against its bound, and controls");
  add_option(app, "--keys", arguments.keys, "KEYS", "Press these keys first, as in '++t'")->check([](const std::string& keys) {
    return keys.find_first_not_of(known_keys) == std::string::npos ? "" : "knows the keys + - k t l o s h and space";
  });
  app.footer("Keys:\n" + std::string(keys_text));
}

int fail(const std::string& message) {
  std::cout.flush();
  std::cerr << "glgemm-view: " << message << std::endl;
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  set_variable("ZINK_INLINE_UNIFORMS", "0", false);  // zink on a CPU gives wrong products otherwise
  try {
    Arguments arguments;
    CLI::App app(
        "Shows a matrix product that runs in each frame, or a large one that runs across many, as a heat map drawn "
        "from the product's own buffer.",
        "glgemm-view");
    add_options(app, arguments);
    try {
      app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) return app.exit(error);
      return fail(explain(app, error));
    }
    run(arguments);
    return 0;
  } catch (const std::bad_alloc&) {
    return fail("not enough memory");
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}
