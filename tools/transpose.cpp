// glgemm transpose: writes the transpose of a matrix from a file.
#include <array>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <glgemm/matrix.hpp>

#include "arguments/options.hpp"
#include "files/files.hpp"
#include "files/formats.hpp"
#include "files/npy.hpp"
#include "terminal/texts.hpp"
#include "verbs.hpp"

namespace glgemm::tools {
namespace {

struct TransposeArguments {
  std::string input;
  std::string output;
  bool force = false;
  bool header = false;
  int digits = 0;
};

void run(const TransposeArguments& arguments) {
  if (!arguments.force) require_no_input(arguments.output, "-o", std::array{arguments.input});
  if (arguments.header) require_csv(std::array{arguments.input});
  if (arguments.digits > 0) require_text(arguments.output);
  const NpyFile a(open_matrix(arguments.input, arguments.header));
  if (!a.note().empty()) std::cerr << "glgemm transpose: note: " << visible(a.note()) << '\n';
  const std::int64_t rows = a.header().rows, columns = a.header().columns;
  NpyType type = a.header().type;
  if (type.beyond_numpy) npy_type(*type.beyond_numpy, arguments.output);
  type.big_endian = npy_type(Type::f32, {}).big_endian && type.bytes > 1;  // as it is read
  MatrixOutput output(arguments.output, arguments.digits);
  // A's columns one after the other are the transpose's rows.
  std::vector<std::byte> elements(static_cast<std::size_t>(rows * columns * type.bytes));
  a.read_stored({0, 0, rows, columns}, elements.data(), Layout::column_major);
  a.file().require_unchanged();
  output.write({type, {columns, rows}, elements.data()});
  output.file().commit();
  (output.file().is_standard_output() ? std::cerr : std::cout)
      << visible(arguments.output) << ": " << columns << "x" << rows << '\n';
}

}  // namespace

void add_transpose(CLI::App& app, int&) {
  auto arguments = std::make_shared<TransposeArguments>();
  Verb verb(app, "transpose", "Write the transpose of a matrix, in its own type");
  verb.footer("Files are as for multiply.");
  add_option(verb, "A", arguments->input, "FILE", "The matrix, a .npy file or another (see multiply)").required();
  add_option(verb, "-o,--output", arguments->output, "FILE", "Where to write the transpose; a file that exists is replaced")
      .required();
  verb.flag("--force", arguments->force, "Let the output replace the input");
  verb.flag("--header", arguments->header, "Leave out the first line of a .csv file that is read: titles");
  add_digits(verb, arguments->digits);
  verb.on_run([arguments] { run(*arguments); });
}

}  // namespace glgemm::tools
