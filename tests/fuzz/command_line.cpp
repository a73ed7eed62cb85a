// The command line: whatever the words, options that the verbs share are values, or an error of one sentence; help, completion
// and what a misspelt word may have meant are found for any.
#include <sys/mman.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <glgemm/inspect.hpp>
#include <glgemm/quantization.hpp>
#include <stdexcept>

#include "arguments/help.hpp"
#include "arguments/options.hpp"
#include "fuzz/target.hpp"

using namespace glgemm;
using namespace glgemm::tools;

namespace {

struct Arguments {
  ShapeArguments shapes;
  std::string type = "f32", batch = "1", kernel = "auto", device, limit, alpha = "1";
  int steps = 0;
  double runs = 1;
  JsonOutput json;
};

/// A verb with the options that verbs share, in front of a second one.
void add_verbs(CLI::App& app, Arguments& x) {
  Verb verb(app, "multiply", "Multiplies");
  add_shapes(verb, x.shapes);
  add_types(verb, x.type);
  add_batch(verb, x.batch);
  add_kernel(verb, x.kernel);
  add_device(verb, x.device);
  add_option(verb, "--memory-limit", x.limit, "BYTES", "Bytes");
  add_option(verb, "--alpha", x.alpha, "NUMBER", "A factor");
  add_option(verb, "--steps", x.steps, "COUNT", "Steps").check(in_range(0, 1000));
  add_option_with_default(verb, "--runs", x.runs, "COUNT", "Runs").check(in_range(1.0, 1e15));
  x.json.add_option(verb, "results");
  Verb second(app, "verify", "Verifies");
  add_option(second, "--only", x.device, "TEXT", "Of these").check(one_of({"a", "b"}));
  app.require_subcommand(1);
}

void check(const Shape& shape) {
  fuzz::require(shape.m > 0 && shape.n > 0 && shape.k > 0, "a size that is not positive");
}

/// What a verb makes of the words.  @throws std::exception  as the parsers
void use(const Arguments& x) {
  for (const Shape& shape : shapes_of(x.shapes)) check(shape);
  fuzz::require(parse_size(x.batch, "--batch") > 0, "a batch that is not positive");
  fuzz::require(x.steps >= 0 && x.steps <= 1000 && x.runs >= 1, "a number out of its range");
  for (const std::string& types : split_kernels(x.type)) {
    const Formats formats = parse_formats(types);
    problem_of({1, 1, 1}, formats);  // they go together
    fuzz::require(parse_formats(to_string(formats)) == formats, "formats that do not read back: " + to_string(formats));
    parse_scalar(x.alpha, one_type(formats), "--alpha");
  }
  if (!x.limit.empty()) parse_bytes(x.limit, "--memory-limit");
  for (const std::string& name : split_kernels(x.kernel)) {
    const Kernel kernel = parse_kernel(name);
    fuzz::require(parse_kernel(to_string(kernel)) == kernel, "a kernel's name that does not read back: " + to_string(kernel));
  }
}

template <class Parse>
void parse(Parse parse) {
  try {
    parse();
  } catch (const std::invalid_argument& error) {
    fuzz::require(*error.what() != '\0', "an error without a message");
  }
}

/// One value of the command line, or the CSV file of shapes.
void use_value(std::string_view text) {
  static const int file = memfd_create("shapes.csv", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  fuzz::require(ftruncate(file, 0) == 0 && pwrite(file, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()),
                "no file in memory");
  try {
    for (const Shape& shape : read_shapes(path)) check(shape);
  } catch (const FileError&) {
  } catch (const std::invalid_argument&) {
  }
  parse([&] { fuzz::require(parse_size(text, "--size") > 0, "a size that is not positive"); });
  parse([&] { fuzz::require(parse_bytes(text, "--memory-limit") > 0, "a number of bytes that is not positive"); });
  parse([&] { parse_op(text, "--op-a"); });
  parse([&] {
    const Shape shape = parse_shape(text, "--shape");
    check(shape);
    const std::string name = to_string(shape);
    fuzz::require(!name.empty() && flops(shape) > 0, "a shape without a name, or without work");
  });
  parse([&] {
    for (const Shape& shape : parse_sizes(text, "--size")) check(shape);
  });
  parse([&] {
    const Quantization quantization = parse_quantization(text);
    fuzz::require(parse_quantization(to_string(quantization)) == quantization, "a quantisation that does not read back");
  });
  for (const Type type : all_types)
    parse([&] {
      const std::complex<double> x = parse_scalar(text, type, "--alpha");
      fuzz::require(is_complex(type) || x.imag() == 0, "a real type's scalar with an imaginary part");
    });
}

}  // namespace

/// The bytes are the words, one a line. Where they are one word, or begin as a file of shapes, they are also a value.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::string> words;
  for (std::string_view rest = fuzz::text(data, size); !rest.empty();) {
    const std::size_t end = rest.find('\n');
    words.emplace_back(rest.substr(0, end));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  if (words.size() <= 1 || words[0].starts_with("m,n,k")) use_value(fuzz::text(data, size));
  CLI::App app("Multiplies matrices", "glgemm");
  Arguments arguments;
  add_verbs(app, arguments);
  if (!words.empty()) complete(app, words);
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
    use(arguments);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
      fuzz::require(!help_text(app, "glgemm").empty(), "no help");
      return 0;
    }
    const std::string message = explain(app, error);
    fuzz::require(!message.empty(), "an error without a message");
    fuzz::require(std::count(message.begin(), message.end(), '\n') <= std::count(data, data + size, '\n'),
                  "an error of more than one line: " + message);
  } catch (const FileError&) {
  } catch (const std::invalid_argument& error) {
    fuzz::require(*error.what() != '\0', "an error without a message");
  }
  return 0;
}
