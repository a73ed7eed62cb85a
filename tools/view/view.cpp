// glgemm-view: a window in which one draws a digit, and a network reads it; each layer is drawn straight from its buffer.
#include <chrono>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>

#include <glgemm/glgemm.hpp>

#include "arguments/options.hpp"
#include "arguments/program.hpp"
#include "files/files.hpp"
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

void add_options(Verb& program, Arguments& arguments) {
  DigitsArguments& digits = arguments.digits;
  add_option(program, "--digit", digits.example, "0..9", "Begin with an example of this digit").check(in_range(0, 9));
  add_option(program, "--draw", arguments.strokes, "STROKES",
             "Begin with these strokes: each a list of points in cells from the upper left corner, as in '2,1 6,1 3,7; 3,4 5,4'");
  add_option(program, "--weights", digits.weights, "FILE", "The network's weights: .safetensors").check(existing_file());
  add_option_with_default(program, "--budget", arguments.budget_ms, "MS", "Time that a layer gets in each frame, in milliseconds")
      .check(in_range(0.125, 1000.0));
  add_option_with_default(program, "--width", digits.width, "PIXELS", "Of the window").check(in_range(64, 8192));
  add_option_with_default(program, "--height", digits.height, "PIXELS", "Of the window").check(in_range(64, 8192));
  add_option(program, "--frames", digits.frames, "COUNT", "End after this many frames, and print the answer")
      .check(in_range(1, std::numeric_limits<int>::max()));
  add_option(program, "--screenshot", arguments.screenshot, "FILE",
             "Write the last frame as .png; alone: the one in which the digit is read, and end");
  add_option(program, "--keys", digits.keys, "KEYS", "Press these keys first, as in 'c8'");
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  return run_program(
      argc, argv,
      {.name = "glgemm-view",
       .description = "Draw a digit by mouse, and see a network read it: each layer's product from its own buffer, and the "
                      "answer.",
       .footer = "Keys:\n" + std::string(digits_keys_text),
       .add = [&](CLI::App& app, int&) {
         Verb program(app);
         add_options(program, arguments);
         program.on_run([&] { run(arguments); });
       }});
}
