// The glgemm tool: reads the command line and runs one verb.
#include "arguments/program.hpp"
#include "verbs.hpp"

using namespace glgemm::tools;

int main(int argc, char** argv) {
  return run_program(
      argc, argv,
      {.name = "glgemm",
       .description = "Multiplies matrices with OpenGL compute shaders.",
       .footer = "'glgemm help VERB', or 'glgemm VERB --help', explains a verb.\n"
                 "\n"
                 "Environment:\n"
                 "  GLGEMM_DEVICE         the device where --device names none: its index or a\n"
                 "                        part of its name ('glgemm devices' lists them)\n"
                 "  GLGEMM_API            gl or es: OpenGL or OpenGL ES, where --api says neither\n"
                 "  GLGEMM_TUNING         the tuning table; empty: the built-in one alone\n"
                 "  GLGEMM_PROGRAM_CACHE  the folder for compiled programs; empty: none is kept\n"
                 "\n"
                 "Exit status: 0; 1 if a check failed; 2 for input, a device or a file that cannot be used.",
       .add = [](CLI::App& app, int& status) {
         for (const auto add : {add_multiply, add_verify, add_transpose, add_bench, add_inspect, add_tune, add_devices})
           add(app, status);
       }});
}
