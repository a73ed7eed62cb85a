// The command line of glgemm tune.
#include <algorithm>
#include <array>
#include <ctime>
#include <iostream>
#include <memory>
#include <stdexcept>

#include <fmt/core.h>

#include "arguments/options.hpp"
#include "files/files.hpp"
#include "system/program.hpp"
#include "tune/tune.hpp"
#include "verbs.hpp"

namespace glgemm::tools {

namespace {

/// The classes of the built-in problems.
constexpr std::array<std::string_view, 6> class_names{"square", "tall", "wide", "deep", "gemv", "batched"};

struct Size {
  std::int64_t m, n, k, batch = 1;
  bool for_gpus = false;
};

/// The built-in problems of a class.  @throws std::invalid_argument  another name
std::vector<Size> class_sizes(std::string_view name) {
  if (name == "square")
    return {{32, 32, 32},
            {64, 64, 64},
            {128, 128, 128},
            {256, 256, 256},
            {512, 512, 512},
            {1024, 1024, 1024},
            {2048, 2048, 2048},
            {4096, 4096, 4096, 1, true},
            {8192, 8192, 8192, 1, true}};
  if (name == "tall") return {{4096, 32, 512}, {4096, 128, 1024}, {16384, 64, 512, 1, true}, {65536, 128, 1024, 1, true}};
  if (name == "wide") return {{32, 4096, 512}, {128, 4096, 1024}, {64, 16384, 512, 1, true}, {128, 65536, 1024, 1, true}};
  if (name == "deep")
    return {{32, 32, 65536}, {64, 64, 16384},           {128, 128, 8192},
            {512, 4, 65536}, {512, 4, 500000, 1, true}, {512, 512, 16384, 1, true}};
  if (name == "batched")
    return {{4, 4, 4, 10000},  {8, 8, 8, 4096},     {16, 16, 16, 2048},        {32, 32, 32, 1024},
            {64, 64, 64, 256}, {128, 128, 128, 64}, {256, 256, 256, 64, true}, {1, 1024, 1024, 16, true}};
  if (name != "gemv")
    throw std::invalid_argument("--class: '" + std::string(name) + "' is none of square, tall, wide, deep, gemv and batched");
  std::vector<Size> sizes;
  for (const std::int64_t n : {1, 2, 4, 8, 16})
    for (const std::int64_t size : {1024, 4096}) sizes.insert(sizes.end(), {{size, n, size}, {n, size, size}});
  return sizes;
}

struct Arguments {
  ShapeArguments shapes;
  std::string classes;
  std::string types = "f32";
  std::string batch = "1";
  std::string kernels;
  std::string check_table;
  JsonOutput json;
  TuneOptions options;
};

int check_table(const std::string& path) {
  InputFile{path};  // what cannot be read at all is bad input
  std::vector<std::string> notes;
  const TuningTable table = TuningTable::read(path, notes);
  for (const std::string& note : notes) std::cout << note << '\n';
  std::cout << "'" << path << "' has " << table.entries().size()
            << (table.entries().size() == 1 ? " valid entry" : " valid entries") << '\n';
  return notes.empty() ? 0 : 1;
}

/// @throws std::invalid_argument, FileError  a list that cannot be read
void read_problems(const Arguments& arguments, bool batch_given, TuneOptions& options) {
  const std::int64_t batch = parse_size(arguments.batch, "--batch");
  const std::vector<Shape> shapes = shapes_of(arguments.shapes);
  if (batch_given && shapes.empty()) throw std::invalid_argument("--batch goes with --shape, --size or --shapes");
  for (const std::string& type : split_kernels(arguments.types)) {
    const Formats formats = parse_formats(type);
    std::vector<TuneProblem> problems;
    for (const Shape& shape : shapes) problems.push_back({std::string(given_class), shape, formats, batch});
    if (shapes.empty())
      for (const auto& [op_a, op_b] : ops_of(arguments.shapes))
        for (const std::string& name : split_list(arguments.classes))
          for (const Size& size : class_sizes(name))
            problems.push_back({name, {size.m, size.n, size.k, op_a, op_b}, formats, size.batch, size.for_gpus});
    for (const TuneProblem& problem : problems) {
      problem_of(problem);  // its sizes can be counted, and its formats go together
      if (std::ranges::find(options.problems, problem) == options.problems.end()) options.problems.push_back(problem);
    }
  }
}

int tune(Arguments& arguments, bool batch_given) {
  if (!arguments.check_table.empty()) return check_table(arguments.check_table);
  TuneOptions& options = arguments.options;
  read_problems(arguments, batch_given, options);
  if (!arguments.kernels.empty())
    for (const std::string& kernel : split_kernels(arguments.kernels)) {
      const Kernel parsed = parse_kernel(kernel);
      options.kernels.push_back(kernel.find(':') == std::string::npos ? kernel : to_string(parsed));
    }
  if (options.output.empty()) {
    options.output = TuningTable::user_path();
    if (options.output.empty())
      throw std::invalid_argument(
          fmt::format("GLGEMM_TUNING and {} name no place for the table: --output does", user_folder_variables));
    make_folders(to_text(to_path(whole_path(options.output)).parent_path()));  // a failure shows when the file is written
  }
  arguments.json.open();
  const TuneResult result = run_tune(options, arguments.json.text());
  arguments.json.write(result.json);
  return result.status;
}

Option add_problems(Verb& verb, Arguments& arguments) {
  const ShapeOptions shapes = add_shapes(verb, arguments.shapes);
  std::string names;
  for (const std::string_view name : class_names) {
    names += (names.empty() ? "" : "|") + std::string(name);
    arguments.classes += (arguments.classes.empty() ? "" : ",") + std::string(name);
  }
  add_option(verb, "--class", arguments.classes, (names + "[,...]").c_str(),
             "Where no product is named: built-in ones of these classes (default: all)")
      .excludes({shapes.shape, shapes.size, shapes.shapes});
  add_types(verb, arguments.types).metavariable("FORMAT[/FORMAT][,...]");
  return add_batch(verb, arguments.batch);
}

void add_search(Verb& verb, Arguments& arguments) {
  SearchOptions& search = arguments.options.search;
  add_option(
      verb, "--kernel", arguments.kernels, "KERNEL[,...]",
      "Families, or kernels with their parameters: the best of these goes into the table, even if the planner knows a better "
      "one (default: all)");
  verb.flag("--exhaustive", search.exhaustive, "Try every candidate");
  add_option_with_default(verb, "--candidates", search.candidates, "COUNT", "At most so many for each product")
      .check(in_range(1, 1000000));
  add_option_with_default(verb, "--patience", search.patience, "COUNT", "Stop when so many in a row have not won")
      .check(in_range(1, 1000000));
  add_option_with_default(verb, "--time-limit", arguments.options.time_limit, "SECONDS",
                          "For each candidate, after which it counts as one that hangs")
      .check(in_range(0.1, 1e6));
  add_option_with_default(verb, "--seed", search.seed, "NUMBER", "Of the search, and of the matrices");
}

void add_table(Verb& verb, Arguments& arguments) {
  add_device(verb, arguments.options.device);
  add_api(verb);
  add_vendor(verb, arguments.options.vendor);
  add_option(verb, "-o,--output", arguments.options.output, "FILE",
             "The table, which is added to (default: GLGEMM_TUNING, else glgemm/tuning.json in the user's cache folder)");
  verb.flag("--missing", arguments.options.missing,
            "Leave out the products that the table has for this device, as after a run that was interrupted");
  arguments.json.add_option(verb, "what was found, and how the planner's own choices compare,");
  add_option(verb, "--check-table", arguments.check_table, "FILE",
             "Read a table, say what is wrong with it, and do nothing else");
}

}  // namespace

void add_tune(CLI::App& app, int& status) {
  const auto arguments = std::make_shared<Arguments>();
  Verb verb(app, "tune", "Find the fastest kernels of this device and keep them in a table");
  verb.begin_group("Products");
  const Option batch = add_problems(verb, *arguments);
  verb.begin_group("Search");
  add_search(verb, *arguments);
  verb.begin_group("Device and table");
  add_table(verb, *arguments);
  verb.footer(
      "Examples:\n"
      "  glgemm tune --missing\n"
      "  glgemm tune --shape 4096,1,4096 --type f32,q4_0/f32\n"
      "  glgemm tune --class gemv,deep --output table.json");
  verb.on_run([arguments, batch, &status] { status = tune(*arguments, batch.is_given()); });

  const auto device = std::make_shared<std::string>(), vendor = std::make_shared<std::string>("none");
  Verb worker(app, "tune-worker", "What 'glgemm tune' runs its candidates in");
  worker.hide();
  add_device(worker, *device);
  add_vendor(worker, *vendor);
  worker.on_run([device, vendor, &status] {
    serve_tuner(*device, *vendor);
    status = 0;
  });
}

}  // namespace glgemm::tools
