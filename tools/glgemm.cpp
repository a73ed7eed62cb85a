// The glgemm tool: reads the command line and runs one verb.
#include <cstdlib>
#include <exception>
#include <iostream>
#include <new>
#include <string>

#include <CLI/CLI.hpp>
#include <glgemm/version.hpp>

#include "verbs.hpp"

namespace {

/// Nothing wrong: 0; a check that failed: 1; bad input, or a device or file that cannot be used: 2.
constexpr int bad_input = 2;

int run(int argc, char** argv) {
  int status = 0;
  CLI::App app("Multiplies matrices with OpenGL compute shaders.", "glgemm");
  app.set_version_flag("--version", "glgemm " GLGEMM_VERSION_STRING, "Print the version and exit");
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.require_subcommand(1);
  glgemm::tools::add_multiply(app, status);
  glgemm::tools::add_verify(app, status);
  glgemm::tools::add_transpose(app, status);
  glgemm::tools::add_bench(app, status);
  glgemm::tools::add_inspect(app, status);
  glgemm::tools::add_tune(app, status);
  glgemm::tools::add_devices(app, status);
  glgemm::tools::add_report(app, status);
  // After the verbs, which would take it over.
  app.footer(
      "'glgemm VERB --help' explains a verb. The variable GLGEMM_DEVICE chooses the device, by its index or a part of its name\n"
      "('glgemm devices' lists them). The exit status is 0; 1 if a check failed; 2 for input that cannot be used.");

  // "glgemm VERB", once the verb is known: while it is read, and while it runs.
  const auto fail = [&app](const std::string& message) {
    const auto verbs = app.get_subcommands();
    std::cout.flush();
    std::cerr << "glgemm" << (verbs.empty() ? "" : " " + verbs.front()->get_name()) << ": " << message << std::endl;
    return bad_input;
  };
  try {
    app.parse(argc, argv);
    std::cout.flush();
    if (!std::cout) return fail("cannot write to the standard output");
    return status;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) return app.exit(error);  // --help, --version
    if (!app.get_subcommands().empty()) return fail(std::string(error.what()) + " (--help explains)");
    const auto extras = app.remaining();
    return fail((extras.empty() ? "a verb is missing" : "'" + extras.front() + "' is not a verb") + " (--help lists them)");
  } catch (const std::bad_alloc&) {
    return fail("not enough memory");
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  setenv("ZINK_INLINE_UNIFORMS", "0", 0);  // zink on a CPU gives wrong products otherwise
  try {
    return run(argc, argv);
  } catch (...) {
    return bad_input;
  }
}
