// Options that several verbs have.
#include "arguments/options.hpp"

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <stdexcept>
#include <type_traits>

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include "system/program.hpp"

namespace glgemm::tools {

bool Option::is_given() const {
  return option_->count() > 0;
}
std::string Option::name() const {
  return option_->get_name();
}
Option Option::required() const {
  return Option(option_->required());
}
Option Option::hidden() const {
  return Option(option_->group(""));
}
Option Option::check(const ValueCheck& check) const {
  return Option(option_->check(check, ""));
}
Option Option::needs(Option other) const {
  return Option(option_->needs(other.option_));
}
Option Option::excludes(std::initializer_list<Option> others) const {
  for (const Option other : others) option_->excludes(other.option_);
  return *this;
}
Option Option::one_word_each() const {
  return Option(option_->allow_extra_args(false));
}
Option Option::metavariable(const char* text) const {
  return Option(option_->type_name(text));
}
Option Option::describe_further(const std::string& text) const {
  return Option(option_->description(option_->get_description() + text));
}

Verb::Verb(CLI::App& app, const char* name, const char* description) : app_(app.add_subcommand(name, description)) {}
Option Verb::flag(const char* name, bool& value, const char* description) {
  return Option(app_->add_flag(name, value, description));
}
Option Verb::option(const std::string& name) const {
  return Option(app_->get_option(name));
}
void Verb::begin_group(const char* heading) {
  app_->option_defaults()->group(heading);
}
void Verb::footer(const std::string& text) {
  app_->footer(text);
}
void Verb::on_run(const std::function<void()>& run) {
  app_->callback(run);
}
void Verb::hide() {
  app_->group("");
}

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> parts;
  for (bool more = true; more;) {
    const std::size_t end = text.find(',');
    parts.emplace_back(text.substr(0, end));
    more = end != std::string_view::npos;
    text.remove_prefix(more ? end + 1 : text.size());
  }
  return parts;
}

std::vector<std::string> split_kernels(std::string_view text) {
  std::vector<std::string> kernels;
  for (const std::string& part : split_list(text)) {
    const bool parameter = part.find('=') != std::string::npos && part.find(':') == std::string::npos;
    if (parameter && !kernels.empty())
      kernels.back() += "," + part;
    else
      kernels.push_back(part);
  }
  return kernels;
}

ShapeOptions add_shapes(Verb& verb, ShapeArguments& arguments) {
  ShapeOptions options{};
  const auto add_size = arguments.sizes.empty() ? add_option<std::string> : add_option_with_default<std::string>;
  options.size = add_size(verb, "--size", arguments.sizes, "N[,...]", "Square products of these sizes");
  options.shape =
      add_option(verb, "--shape", arguments.shapes, "M,N,K", "A product: C is M x N, and K the inner size; as often as wanted")
          .one_word_each()
          .excludes({options.size});
  options.shapes =
      add_option(verb, "--shapes", arguments.file, "FILE", "The products of a CSV file with the header m,n,k,trans_a,trans_b")
          .excludes({options.size, options.shape});
  for (const Option op : {add_op_a(verb, arguments.op_a), add_op_b(verb, arguments.op_b)})
    op.metavariable("n|t|c[,...]").excludes({options.shapes});
  return options;
}

std::vector<std::pair<Op, Op>> ops_of(const ShapeArguments& arguments) {
  std::vector<std::pair<Op, Op>> ops;
  for (const std::string& a : split_list(arguments.op_a))
    for (const std::string& b : split_list(arguments.op_b)) ops.emplace_back(parse_op(a, "--op-a"), parse_op(b, "--op-b"));
  return ops;
}

std::vector<Shape> shapes_of(const ShapeArguments& arguments) {
  std::vector<Shape> shapes;
  if (!arguments.file.empty()) {
    shapes = read_shapes(arguments.file);
    if (shapes.empty()) throw std::invalid_argument("'" + arguments.file + "' has no shapes");
    return shapes;
  }
  std::vector<Shape> sizes;
  for (const std::string& shape : arguments.shapes) sizes.push_back(parse_shape(shape, "--shape"));
  if (sizes.empty() && !arguments.sizes.empty()) sizes = parse_sizes(arguments.sizes, "--size");
  for (const Shape& size : sizes)
    for (const auto& [op_a, op_b] : ops_of(arguments)) shapes.push_back({size.m, size.n, size.k, op_a, op_b});
  return shapes;
}

template <class T>
Option add_option(Verb& verb, const char* names, T& value, const char* metavariable, const std::string& description) {
  return Option(verb.app().add_option(names, value, description)->type_name(metavariable));
}
template <class T>
Option add_option_with_default(Verb& verb, const char* names, T& value, const char* metavariable,
                               const std::string& description) {
  return Option(verb.app().add_option(names, value, description)->type_name(metavariable)->capture_default_str());
}
using Text = std::string;
template Option add_option(Verb&, const char*, Text&, const char*, const Text&);
template Option add_option(Verb&, const char*, int&, const char*, const Text&);
template Option add_option(Verb&, const char*, std::int64_t&, const char*, const Text&);
template Option add_option(Verb&, const char*, std::vector<Text>&, const char*, const Text&);
template Option add_option(Verb&, const char*, std::optional<Text>&, const char*, const Text&);
template Option add_option(Verb&, const char*, std::optional<int>&, const char*, const Text&);
template Option add_option(Verb&, const char*, std::optional<std::int64_t>&, const char*, const Text&);
template Option add_option(Verb&, const char*, std::optional<double>&, const char*, const Text&);
template Option add_option_with_default(Verb&, const char*, Text&, const char*, const Text&);
template Option add_option_with_default(Verb&, const char*, int&, const char*, const Text&);
template Option add_option_with_default(Verb&, const char*, std::int64_t&, const char*, const Text&);
template Option add_option_with_default(Verb&, const char*, std::uint64_t&, const char*, const Text&);
template Option add_option_with_default(Verb&, const char*, double&, const char*, const Text&);

template <class T>
ValueCheck in_range(T least, T most) {
  return [least, most](const std::string& value) {
    T number{};
    if (CLI::detail::lexical_cast(value, number) && number >= least && number <= most) return std::string();  // so no NaN
    return fmt::format("'{}' is not a {}number from {:.15g} to {:.15g}", value, std::is_integral_v<T> ? "whole " : "",
                       static_cast<double>(least), static_cast<double>(most));
  };
}
template ValueCheck in_range(int, int);
template ValueCheck in_range(std::int64_t, std::int64_t);
template ValueCheck in_range(double, double);

ValueCheck existing_file() {
  return [](const std::string& value) { return CLI::ExistingFile(value); };
}

ValueCheck one_of(const std::vector<std::string>& words) {
  return [words](const std::string& value) {
    if (std::find(words.begin(), words.end(), value) != words.end()) return std::string();
    std::string text = "'" + value + "' is not " + words.front();
    for (std::size_t i = 1; i < words.size(); ++i) text += (i + 1 < words.size() ? ", " : " or ") + words[i];
    return text;
  };
}

void exclude_all_but(Verb& verb, Option option, std::initializer_list<std::string_view> others) {
  for (CLI::Option* const other : verb.app().get_options())
    if (other->get_name() != option.name() && std::find(others.begin(), others.end(), other->get_name()) == others.end())
      option.excludes({Option(other)});
}

Option add_number(Verb& verb, const std::string& name, std::optional<std::int64_t>& number,
                  std::int64_t (*parse)(std::string_view text, std::string_view what), const char* metavariable,
                  const std::string& description) {
  const auto read = [&number, parse, name](const std::string& text) { number = parse(text, name); };
  return Option(verb.app().add_option_function<std::string>(name, read, description)->type_name(metavariable));
}

Option add_op_a(Verb& verb, std::string& op) {
  return add_option_with_default(verb, "--op-a", op, "n|t|c",
                                 "n: A as it is; t: stored transposed; c: its complex conjugate stored transposed");
}

Option add_op_b(Verb& verb, std::string& op) {
  return add_option_with_default(verb, "--op-b", op, "n|t|c", "The same for B");
}

Option add_types(Verb& verb, std::string& types) {
  return add_option_with_default(verb, "--type", types, "FORMAT[/FORMAT]",
                                 "The elements of A and B, or of A/B: " + type_names() +
                                     "; of one also a format of models' files, as in q4_0/f32 or q4_0 for short");
}

Option add_batch(Verb& verb, std::string& batch) {
  return add_option_with_default(verb, "--batch", batch, "COUNT", "Products of each shape, in one call");
}

Option add_kernel(Verb& verb, std::string& kernel) {
  return add_option_with_default(verb, "--kernel", kernel, "auto|KERNEL",
                                 "The kernel, with parameters if wanted, as in tiled:tile=16; auto: the planner's choice");
}

Option add_precision(Verb& verb, std::string& precision) {
  return add_option_with_default(
      verb, "--precision", precision, "fast|standard|extended|reproducible",
      "How exactly: standard; reproducible, the same bits on every driver; extended, nearly as if summed exactly; "
      "fast, f32 may be rounded to TF32 by a vendor's library");
}

Option add_vendor(Verb& verb, std::string& vendor) {
  return add_option_with_default(verb, "--vendor", vendor, "none|allowed|FILE",
                                 "Whether products may run by the library of the device's maker, NVIDIA's cuBLAS, which has "
                                 "matrix cores: none; allowed, the "
                                 "planner takes it where it is faster; or allowed, with the path of libcublas or of its folder");
}

EngineOptions with_vendor(EngineOptions options, const std::string& vendor) {
  if (vendor == "none") return options;
  options.vendor = Vendor::allowed;
  if (vendor != "allowed") options.vendor_library = vendor;
  options.log = [](std::string_view line) {
    if (line.find("cublas") != std::string_view::npos) std::cerr << "glgemm: note: " << line << '\n';
  };
  return options;
}

Option add_digits(Verb& verb, int& digits, const std::string& description) {
  return add_option(verb, "--digits", digits, "N", description).check(in_range(1, 17));
}

Option add_device(Verb& verb, std::string& device) {
  return add_option(verb, "--device", device, "DEVICE", "The device: its index or a part of its name (see 'glgemm devices')");
}

Option add_api(Verb& verb) {
  return Option(verb.app().add_option_function<std::string>(
                    "--api", [](const std::string& api) { set_variable("GLGEMM_API", api.c_str(), true); },
                    "OpenGL or OpenGL ES; without this option OpenGL, and OpenGL ES where there is no OpenGL 4.3"))
      .check(one_of({"gl", "es"}))
      .metavariable("gl|es");
}

Option JsonOutput::add_option(Verb& verb, const std::string& what, const char* name, const char* format) {
  return Option(
      verb.app()
          .add_option(name, path_,
                      fmt::format("Write {} as {} to FILE, or to the standard output where FILE is missing or '-'", what, format))
          ->type_name("[FILE]")
          ->expected(0, 1)
          ->default_str("-"));
}

std::ostream& JsonOutput::text() const {
  return to_standard_output() ? std::cerr : std::cout;
}

void JsonOutput::open() {
  if (!path_.empty() && !to_standard_output() && !file_) file_.emplace(path_);
}

void JsonOutput::write(const std::string& json, std::ostream& said) {
  if (to_standard_output()) std::cout << json;
  if (!file_) return;
  file_->write(json);
  file_->commit();
  file_.reset();
  said << "wrote " << path_ << '\n';
}

}  // namespace glgemm::tools
