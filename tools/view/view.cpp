// glgemm-view: a window in which one draws a digit, and a network reads it; each layer is drawn straight from its buffer.
#include <chrono>
#include <exception>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>

#include <CLI/CLI.hpp>
#include <glgemm/glgemm.hpp>

#include "arguments/help.hpp"
#include "arguments/options.hpp"
#include "files/files.hpp"
#include "system/program.hpp"
#include "view/digits.hpp"

namespace {

using namespace glgemm;
using namespace glgemm::tools;

struct Arguments {
  DigitsArguments digits;
  double budget_ms = 4;
  std::string screenshot, strokes;
};

void run(Arguments& arguments) {
  DigitsArguments& digits = arguments.digits;
  if (digits.keys.find_first_not_of(digits_keys) != std::string::npos)
    throw std::invalid_argument("--keys knows the keys 0 to 9, c s h and space");
  digits.digit = draw_strokes(arguments.strokes);
  digits.budget =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double, std::milli>(arguments.budget_ms));
  std::optional<OutputFile> output;
  if (!arguments.screenshot.empty()) output.emplace(arguments.screenshot);
  show_digits(digits, output);
}

void add_options(CLI::App& app, Arguments& arguments) {
  DigitsArguments& digits = arguments.digits;
  app.set_version_flag("--version", "glgemm-view " GLGEMM_VERSION_STRING, "Print the version and exit");
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.formatter_fn([](const CLI::App* self, const std::string& name, CLI::AppFormatMode) { return help_text(*self, name); });
  add_option(app, "--digit", digits.example, "0..9", "Begin with an example of this digit")->check(in_range(0, 9));
  add_option(app, "--draw", arguments.strokes, "STROKES",
             "Begin with these strokes: each a list of points in cells from the upper left corner, as in '2,1 6,1 3,7; 3,4 5,4'");
  add_option(app, "--weights", digits.weights, "FILE", "The network's weights: .safetensors")->check(CLI::ExistingFile);
  add_option_with_default(app, "--budget", arguments.budget_ms, "MS", "Time that a layer gets in each frame, in milliseconds")
      ->check(in_range(0.125, 1000.0));
  add_option_with_default(app, "--width", digits.width, "PIXELS", "Of the window")->check(in_range(64, 8192));
  add_option_with_default(app, "--height", digits.height, "PIXELS", "Of the window")->check(in_range(64, 8192));
  add_option(app, "--frames", digits.frames, "COUNT", "End after this many frames, and print the answer")
      ->check(CLI::PositiveNumber);
  add_option(app, "--screenshot", arguments.screenshot, "FILE",
             "Write the last frame as .png; alone: the one in which the digit is read, and end");
  add_option(app, "--keys", digits.keys, "KEYS", "Press these keys first, as in 'c8'");
  app.footer("Keys:\n" + std::string(digits_keys_text));
}

int fail(const std::string& message) {
  std::cout.flush();
  std::cerr << "glgemm-view: " << message << std::endl;
  return 2;
}

/// 0, if all that was printed is written.
int printed() {
  std::cout.flush();
  return std::cout ? 0 : fail("cannot write to the standard output");
}

}  // namespace

int main(int argc, char** argv) {
  set_variable("ZINK_INLINE_UNIFORMS", "0", false);  // zink on a CPU gives wrong products otherwise
  try {
    begin_program(argc, argv);
    Arguments arguments;
    CLI::App app("Draw a digit by mouse, and see a network read it: each layer's product from its own buffer, and the answer.",
                 "glgemm-view");
    add_options(app, arguments);
    try {
      app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
        app.exit(error);
        return printed();
      }
      return fail(explain(app, error));
    }
    run(arguments);
    return printed();
  } catch (const std::bad_alloc&) {
    return fail("not enough memory");
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}
