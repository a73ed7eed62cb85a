// The glgemm tool: reads the command line and runs one verb.
#include <algorithm>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <glgemm/version.hpp>

#include "arguments/help.hpp"
#include "arguments/json.hpp"
#include "arguments/options.hpp"
#include "files/files.hpp"
#include "system/program.hpp"
#include "terminal/texts.hpp"
#include "verbs.hpp"

using namespace glgemm::tools;

namespace {

/// Nothing wrong: 0; a check that failed: 1; bad input, or a device or file that cannot be used: 2.
constexpr int bad_input = 2;

/// The hidden verb `complete`, for the shell: its arguments are another command line's words, which are not to be parsed.
int print_completion(const CLI::App& app, std::vector<std::string> words) {
  constexpr int names_of_files = 3;
  const Completion completion = complete(app, std::move(words));
  for (const std::string& word : completion.words) std::cout << word << '\n';
  return completion.files ? names_of_files : 0;
}

/// `glgemm help [VERB]`.
void add_help(CLI::App& app) {
  const auto named = std::make_shared<std::string>();
  CLI::App* const verb = add_verb(app, "help", "Explain a verb, or list them")->group("");
  add_option(*verb, "VERB", *named, "VERB", "The verb");
  verb->callback([&app, named] {
    if (named->empty()) {
      std::cout << help_text(app, "glgemm");
      return;
    }
    const std::vector<std::string> verbs = verb_names(app);
    if (std::find(verbs.begin(), verbs.end(), *named) == verbs.end()) throw std::invalid_argument(no_verb(app, *named));
    std::cout << help_text(*app.get_subcommand(*named), "glgemm " + *named);
  });
}

int run(int argc, char** argv) {
  int status = 0;
  CLI::App app("Multiplies matrices with OpenGL compute shaders.", "glgemm");
  // Before the verbs, which take it over.
  app.formatter_fn([](const CLI::App* verb, const std::string& name, CLI::AppFormatMode) { return help_text(*verb, name); });
  app.set_version_flag("--version", "glgemm " GLGEMM_VERSION_STRING, "Print the version and exit");
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.require_subcommand(1);
  for (const auto add : {add_multiply, add_verify, add_transpose, add_bench, add_inspect, add_tune, add_devices})
    add(app, status);
  add_help(app);
  // After the verbs, which would take it over.
  app.footer(
      "'glgemm help VERB', or 'glgemm VERB --help', explains a verb.\n"
      "\n"
      "Environment:\n"
      "  GLGEMM_DEVICE         the device where --device names none: its index or a\n"
      "                        part of its name ('glgemm devices' lists them)\n"
      "  GLGEMM_API            gl or es: OpenGL or OpenGL ES, where --api says neither\n"
      "  GLGEMM_TUNING         the tuning table; empty: the built-in one alone\n"
      "  GLGEMM_PROGRAM_CACHE  the folder for compiled programs; empty: none is kept\n"
      "\n"
      "Exit status: 0; 1 if a check failed; 2 for input, a device or a file that cannot be used.");
  // "glgemm VERB", once the verb is known: while it is read, and while it runs.
  const auto fail = [&app](const std::string& message) {
    const auto verbs = app.get_subcommands();
    std::cout.flush();
    std::cerr << "glgemm" << (verbs.empty() ? "" : " " + verbs.front()->get_name()) << ": " << visible(message, "\n")
              << std::endl;
    return bad_input;
  };
  const auto printed = [&fail](int status_of_verb) {
    std::cout.flush();
    return std::cout ? status_of_verb : fail("cannot write to the standard output");
  };
  if (argc > 1 && std::string_view(argv[1]) == "complete") return printed(print_completion(app, {argv + 2, argv + argc}));
  if (argc == 1) std::cerr << help_text(app, "glgemm") << '\n';
  std::optional<LastWords> last_words;
  const std::vector<std::string> verbs = verb_names(app);
  if (argc > 1 && std::find(verbs.begin(), verbs.end(), argv[1]) != verbs.end()) last_words.emplace(argv[1]);
  try {
    app.parse(argc, argv);
    return printed(status);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) return printed(app.exit(error));  // --help, --version
    return fail(explain(app, error));
  } catch (const std::bad_alloc&) {
    return fail("not enough memory");
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  set_variable("ZINK_INLINE_UNIFORMS", "0", false);  // zink on a CPU gives wrong products otherwise
  try {
    begin_program(argc, argv);
    keep_command(argc, argv);
    return run(argc, argv);
  } catch (...) {
    return bad_input;
  }
}
