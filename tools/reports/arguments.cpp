// The command line of glgemm report.
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "arguments/options.hpp"
#include "peers/peers.hpp"
#include "product/shapes.hpp"
#include "reports/report.hpp"
#include "verbs.hpp"

namespace glgemm::tools {
namespace {

int report(const ReportOptions& arguments) {
  if (!arguments.sizes.empty()) parse_sizes(arguments.sizes, "--size");
  for (const auto* files : {&arguments.shapes, &arguments.gpu_shapes})
    for (const std::string& file : *files) read_shapes(file);
  if (arguments.peer != "auto" && arguments.peer != "none") parse_peers(arguments.peer);
  return run_report(arguments);
}

}  // namespace

void add_report(CLI::App& app, int& status) {
  const auto arguments = std::make_shared<ReportOptions>();
  CLI::App* verb = add_verb(app, "report", "Test, tune and measure glgemm on a device: report.json and report.md");
  add_option_with_default(*verb, "-o,--output", arguments->output, "FOLDER", "The folder for the files, and for the tuning table")
      ->take_last();
  verb->add_flag("--quick", arguments->quick, "Small sizes and few repeats, to see that all works");
  add_option(*verb, "--minutes", arguments->minutes, "MINUTES",
             "The time for all of it: what is worth most comes first, and what does not fit is left out (default: no limit)")
      ->check(in_range(0.01, 1e5));
  add_device(*verb, arguments->device);
  add_api(*verb);
  add_option(*verb, "--size", arguments->sizes, "N[,...]",
             "Square products of these sizes (default: 128 to 8192; to 1024 on software devices)");
  add_option(*verb, "--shapes", arguments->shapes, "FILE",
             "The products of a CSV file with the header m,n,k,trans_a,trans_b; as often as wanted");
  add_option(*verb, "--gpu-shapes", arguments->gpu_shapes, "FILE", "The same for GPUs, where no --shapes are given");
  add_option_with_default(*verb, "--peer", arguments->peer, ("auto|none|" + peers_text("|") + "[,...]").c_str(),
                          "Libraries to compare with; auto: those that work here");
  auto* no_tune = verb->add_flag("--no-tune", arguments->no_tune, "Tune nothing");
  add_option_with_default(*verb, "--tune-minutes", arguments->tune_minutes, "MINUTES",
                          "The time for tuning, which goes on where it was ended when it is run again")
      ->check(in_range(0.01, 1e5))
      ->excludes(no_tune);
  auto* checks = add_option(*verb, "--checks", arguments->checks, "FOLDER",
                            "The folder whose tests are run: a build's, or an unpacked bundle's")
                     ->take_last();
  verb->add_flag("--no-checks", arguments->no_checks, "Run no tests")->excludes(checks);
  add_option(*verb, "--cublas", arguments->cublas, "FILE", "The program that times cuBLAS: tools/reports/report_cublas.py")
      ->take_last();
  verb->footer(
      "Examples:\n"
      "  glgemm report --quick\n"
      "  glgemm report --minutes 5\n"
      "  glgemm report --device nvidia --output results --no-tune");
  verb->callback([arguments, &status] { status = report(*arguments); });
}

}  // namespace glgemm::tools
