// glgemm transpose: writes the transpose of a matrix from a file.
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include <glgemm/matrix.hpp>

#include "files/files.hpp"
#include "files/npy.hpp"
#include "verbs.hpp"

namespace glgemm::tools {
namespace {

struct Arguments {
  std::string input;
  std::string output;
};

void run(const Arguments& arguments) {
  const NpyMatrix a = read_matrix(arguments.input);
  for (const std::string& note : a.notes) std::cerr << "glgemm transpose: note: " << note << '\n';
  OutputFile output(arguments.output);
  std::visit(
      [&](const auto& values) {
        auto t = transpose(values);
        const std::int64_t rows = t.rows(), columns = t.columns();
        write_npy(output, std::move(t));
        output.commit();
        std::cout << arguments.output << ": " << rows << "x" << columns << '\n';
      },
      a.values);
}

}  // namespace

void add_transpose(CLI::App& app, int&) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* verb = app.add_subcommand("transpose", "Write the transpose of a matrix, in its own type");
  verb->add_option("A", arguments->input, "The matrix, a .npy file")->required()->type_name("FILE");
  verb->add_option("-o,--output", arguments->output, "Where to write the transpose, as .npy")->required()->type_name("FILE");
  verb->callback([arguments] { run(*arguments); });
}

}  // namespace glgemm::tools
