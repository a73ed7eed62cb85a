// glgemm multiply: the product of two matrices from files, checked and written to a file.
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

#include <glgemm/engine.hpp>
#include <glgemm/headless.hpp>
#include <glgemm/matrix.hpp>
#include <glgemm/plan.hpp>
#include <glgemm/verify.hpp>

#include "files.hpp"
#include "image.hpp"
#include "npy.hpp"
#include "verbs.hpp"

namespace glgemm::tools {
namespace {

struct Arguments {
  std::string a;
  std::string b;
  std::string output;
  std::string image;
  std::string error_image;
  std::string check = "probe";
  std::string kernel = "auto";
  std::string device;
};

Matrix<float> read(const std::string& path) {
  NpyMatrix matrix = read_matrix(path);
  for (const std::string& note : matrix.notes) std::cerr << "glgemm multiply: note: " << note << '\n';
  return std::move(matrix.values);
}

std::string size_text(std::int64_t rows, std::int64_t columns) {
  return std::to_string(rows) + "x" + std::to_string(columns);
}

std::string file_name(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

std::string milliseconds(std::chrono::nanoseconds time) {
  std::ostringstream text;
  text << std::setprecision(4) << std::chrono::duration<double, std::milli>(time).count() << " ms";
  return text.str();
}

/// Small files can stand for a product that no memory holds (k may be 0), and some systems grant memory that they do not have.
void require_memory(std::int64_t m, std::int64_t n) {
  const double bytes = 4.0 * static_cast<double>(m) * static_cast<double>(n);
  const double memory = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  if (bytes > memory) {
    std::ostringstream text;
    text << "C would be " << size_text(m, n) << ", " << std::setprecision(3) << bytes / 1e9 << " GB, and this machine has "
         << memory / 1e9 << " GB of memory";
    throw std::invalid_argument(text.str());
  }
}

int run(const Arguments& arguments) {
  PlanOptions options;
  if (arguments.kernel != "auto") options.kernel = parse_kernel(arguments.kernel);

  const Matrix<float> a = read(arguments.a);
  const Matrix<float> b = read(arguments.b);
  const std::string sizes = "'" + arguments.a + "' is " + size_text(a.rows(), a.columns()) + " and '" + arguments.b + "' is " +
                            size_text(b.rows(), b.columns());
  if (a.columns() != b.rows())
    throw std::invalid_argument(sizes + ": the inner sizes " + std::to_string(a.columns()) + " and " + std::to_string(b.rows()) +
                                " differ");
  require_memory(a.rows(), b.columns());
  if ((a.rows() == 0 || b.columns() == 0) && !(arguments.image.empty() && arguments.error_image.empty()))
    throw std::invalid_argument(sizes + ": the product has no elements to draw");

  // All outputs are opened before the work, so that none of it is in vain.
  OutputFile output(arguments.output);
  std::optional<OutputFile> image;
  std::optional<OutputFile> error_image;
  if (!arguments.image.empty()) image.emplace(arguments.image);
  if (!arguments.error_image.empty()) error_image.emplace(arguments.error_image);
  if ((image && image->target() == output.target()) || (error_image && error_image->target() == output.target()) ||
      (image && error_image && image->target() == error_image->target()))
    throw std::invalid_argument("two of -o, --image and --error-image name the same file");

  HeadlessOptions headless;
  headless.device = arguments.device;
  HeadlessContext context(headless);
  Engine engine(HeadlessContext::get_proc_address);
  Report report;
  const Matrix<float> c = engine.multiply(a, b, options, &report);
  const std::string renderer = engine.device().renderer;
  engine.release();

  std::optional<Check> check;
  if (arguments.check == "probe") check = check_probe(a, b, c);
  if (arguments.check == "full") check = check_full(a, b, c);
  const bool passed = !check || check->passed;

  // A failed product is not written, but the picture of its errors is what helps then.
  if (error_image) write_png(*error_image, error_map(error_ratios(a, b, c), "Error of " + file_name(arguments.output)));
  if (passed) {
    write_npy(output, c);
    if (image) write_png(*image, heat_map(c, file_name(arguments.output)));
    output.finish();
    if (image) image->finish();
  }
  if (error_image) error_image->commit();
  if (passed) {
    if (image) image->commit();
    output.commit();
  }

  std::cout << arguments.output << " = " << arguments.a << " * " << arguments.b << ": " << size_text(c.rows(), c.columns())
            << " = " << size_text(a.rows(), a.columns()) << " * " << size_text(b.rows(), b.columns()) << '\n'
            << to_string(report.plan.kernel) << " on " << renderer << ": " << milliseconds(report.kernel_time)
            << ", with transfers " << milliseconds(report.total_time) << '\n'
            << (check ? check->summary : "not checked") << '\n';
  if (passed) return 0;
  std::cout.flush();
  std::cerr << "glgemm multiply: the product fails its check, so '" << arguments.output << "' is not written\n";
  return 1;
}

}  // namespace

void add_multiply(CLI::App& app, int& status) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* verb = app.add_subcommand("multiply", "Multiply two matrices from .npy files");
  verb->add_option("A", arguments->a, "The left factor, a .npy file: float32, or float64, which is rounded to float32")
      ->required()
      ->type_name("FILE");
  verb->add_option("B", arguments->b, "The right factor, likewise")->required()->type_name("FILE");
  verb->add_option("-o,--output", arguments->output, "Where to write the product, as .npy (float32)")
      ->required()
      ->type_name("FILE");
  verb->add_option("--image", arguments->image, "Draw the product as a heat map, as .png")->type_name("FILE");
  verb->add_option("--error-image", arguments->error_image,
                   "Draw the error of each element against its bound, as .png (computes the whole product on the CPU too)")
      ->type_name("FILE");
  verb->add_option("--check", arguments->check,
                   "Check the product before it is written: none; probe, a sample of it; full, all of it on the CPU too")
      ->check(CLI::IsMember({"none", "probe", "full"}))
      ->type_name("HOW")
      ->capture_default_str();
  verb->add_option("--kernel", arguments->kernel,
                   "The kernel, with its parameters if wanted, as in tiled:tile=16; auto: the best that can")
      ->type_name("NAME")
      ->capture_default_str();
  verb->add_option("--device", arguments->device, "The device: its index or a part of its name (see 'glgemm devices')")
      ->type_name("DEVICE");
  verb->callback([arguments, &status] { status = run(*arguments); });
}

}  // namespace glgemm::tools
