// A program's run.
#include "arguments/program.hpp"

#include <algorithm>
#include <exception>
#include <iostream>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <glgemm/version.hpp>

#include "arguments/help.hpp"
#include "arguments/json.hpp"
#include "files/files.hpp"
#include "system/program.hpp"
#include "terminal/texts.hpp"

namespace glgemm::tools {
namespace {

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
  Verb verb(app, "help", "Explain a verb, or list them");
  verb.hide();
  add_option(verb, "VERB", *named, "VERB", "The verb");
  verb.on_run([&app, named] {
    if (named->empty()) {
      std::cout << help_text(app, app.get_name());
      return;
    }
    const std::vector<std::string> verbs = verb_names(app);
    if (std::find(verbs.begin(), verbs.end(), *named) == verbs.end()) throw std::invalid_argument(no_verb(app, *named));
    std::cout << help_text(*app.get_subcommand(*named), app.get_name() + " " + *named);
  });
}

int run(int argc, char** argv, const Program& program) {
  const std::string name = program.name;
  int status = 0;
  CLI::App app(program.description, name);
  // Before the verbs, which take it over.
  app.formatter_fn(
      [](const CLI::App* verb, const std::string& verb_name, CLI::AppFormatMode) { return help_text(*verb, verb_name); });
  app.set_version_flag("--version", name + " " GLGEMM_VERSION_STRING, "Print the version and exit");
  app.set_help_flag("-h,--help", "Print this help and exit");
  program.add(app, status);
  const bool has_verbs = !verb_names(app).empty();
  if (has_verbs) {
    app.require_subcommand(1);
    add_help(app);
  }
  app.footer(program.footer);  // after the verbs, which would take it over
  // "glgemm VERB", once the verb is known: while it is read, and while it runs.
  const auto fail = [&](const std::string& message) {
    const auto verbs = app.get_subcommands();
    std::cout.flush();
    std::cerr << name << (verbs.empty() ? "" : " " + verbs.front()->get_name()) << ": " << visible(message, "\n") << std::endl;
    return bad_input;
  };
  const auto printed = [&](int status_of_run) {
    std::cout.flush();
    return std::cout ? status_of_run : fail("cannot write to the standard output");
  };
  std::optional<LastWords> last_words;
  if (has_verbs) {
    if (argc > 1 && std::string_view(argv[1]) == "complete") return printed(print_completion(app, {argv + 2, argv + argc}));
    if (argc == 1) std::cerr << help_text(app, name) << '\n';
    const std::vector<std::string> verbs = verb_names(app);
    if (argc > 1 && std::find(verbs.begin(), verbs.end(), argv[1]) != verbs.end()) last_words.emplace(argv[1]);
  }
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

int run_program(int argc, char** argv, const Program& program) {
  set_variable("ZINK_INLINE_UNIFORMS", "0", false);  // zink on a CPU gives wrong products otherwise
  try {
    begin_program(argc, argv);
    keep_command(argc, argv);
    return run(argc, argv, program);
  } catch (...) {
    return bad_input;
  }
}

}  // namespace glgemm::tools
