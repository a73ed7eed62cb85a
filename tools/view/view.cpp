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

#include <CLI/CLI.hpp>
#include <glgemm/glgemm.hpp>
#include <glgemm/inspect.hpp>

#include "arguments/help.hpp"
#include "arguments/options.hpp"
#include "drawing/image.hpp"
#include "files/files.hpp"
#include "system/program.hpp"
#include "view/digits.hpp"
#include "view/viewer.hpp"
#include "view/window.hpp"
#ifdef GLGEMM_HAS_IMGUI
#include "view/overlay.hpp"
#endif

namespace {

using namespace glgemm;
using namespace glgemm::tools;
using Clock = std::chrono::steady_clock;

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
  std::optional<int> width, height;
  std::optional<std::int64_t> frames;  ///< then it ends, and each frame is a fixed step of the phase
  std::string screenshot;
  std::string keys;
  bool overlay = false;
  bool digits = false;
  std::optional<int> example;  ///< of the digits
  std::string strokes, weights;
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

/// @throws std::invalid_argument  a key is none of these
void check_keys(const std::string& keys, std::string_view known, const char* names) {
  if (keys.find_first_not_of(known) != std::string::npos)
    throw std::invalid_argument(std::string("--keys knows the keys ") + names);
}

std::chrono::nanoseconds budget_of(const Arguments& arguments) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Milliseconds(arguments.budget_ms));
}

void run_digits(const Arguments& arguments) {
  check_keys(arguments.keys, digits_keys, "0 to 9, c s h and space");
  DigitsArguments digits{.weights = arguments.weights,
                         .digit = draw_strokes(arguments.strokes),
                         .example = arguments.example,
                         .budget = budget_of(arguments),
                         .frames = arguments.frames,
                         .keys = arguments.keys};
  digits.width = arguments.width.value_or(digits.width);
  digits.height = arguments.height.value_or(digits.height);
  std::optional<OutputFile> output;
  if (!arguments.screenshot.empty()) output.emplace(arguments.screenshot);
  show_digits(digits, output);
}

void run(const Arguments& arguments) {
  check_keys(arguments.keys, known_keys, "+ - k t l o s h and space");
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
  const int height = arguments.height.value_or(900);
  const GlWindow window(width, height);
  Viewer viewer(glfwGetProcAddress, settings, large ? arguments.n : largest_n, budget_of(arguments));
  std::string keys = arguments.keys;  // pressed and not yet obeyed
  listen_to_keys(window.get(), keys);
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
      {escape_key, [&] { glfwSetWindowShouldClose(window.get(), GLFW_TRUE); }}};

  std::uint32_t phase = 0;
  const Clock::time_point begin = Clock::now();
  Clock::time_point before = begin, titled = begin, measured;
  int frames_in_title = 0;
  for (std::int64_t frame = 1; !glfwWindowShouldClose(window.get()); ++frame) {
    glfwPollEvents();
    for (; !keys.empty(); keys.erase(0, 1))
      if (const auto action = actions.find(keys.front()); action != actions.end()) action->second();
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
        write_png(*output, viewer.screenshot(width, height));
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
  add_option(app, "--width", arguments.width, "PIXELS",
             "Of the window; where this is missing, 1300 with --overlay and 1128 with --digits")
      ->check(in_range(64, 8192))
      ->default_str("962");
  add_option(app, "--height", arguments.height, "PIXELS", "Of the window; with --digits, 476 where this is missing")
      ->check(in_range(64, 8192))
      ->default_str("900");
  add_option(app, "--frames", arguments.frames, "COUNT", "End after this many frames, equal steps apart, and print the figures")
      ->check(CLI::PositiveNumber);
  add_option(app, "--screenshot", arguments.screenshot, "FILE",
             "Write the last frame as .png; alone: the first, of a large product the one that completes it, and end");
  app.add_flag("--overlay", arguments.overlay,
               "Begin with the panel: device and plan, times as curves, the error of C against its bound, and controls");
  add_option(app, "--keys", arguments.keys, "KEYS", "Press these keys first, as in '++t'");
  CLI::Option* digits = app.add_flag("--digits", arguments.digits,
                                     "Draw a digit by mouse, and see a network read it: each layer's product, and the answer");
  for (const char* other : {"--size", "--large", "--type", "--kernel", "--overlay"}) digits->excludes(app.get_option(other));
  add_option(app, "--digit", arguments.example, "0..9", "Begin with an example of this digit")
      ->check(in_range(0, 9))
      ->needs(digits);
  add_option(app, "--draw", arguments.strokes, "STROKES",
             "Begin with these strokes: each a list of points in cells from the upper left corner, as in '2,1 6,1 3,7; 3,4 5,4'")
      ->needs(digits);
  add_option(app, "--weights", arguments.weights, "FILE", "The network's weights: .safetensors")
      ->needs(digits)
      ->check(CLI::ExistingFile);
  app.footer("Keys:\n" + std::string(keys_text) + "With --digits:\n" + std::string(digits_keys_text));
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
    arguments.digits ? run_digits(arguments) : run(arguments);
    return 0;
  } catch (const std::bad_alloc&) {
    return fail("not enough memory");
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}
