// glgemm multiply: the product of two matrices from files, checked and written to a file.
#include <algorithm>
#include <array>
#include <iostream>
#include <set>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <glgemm/headless.hpp>
#include <glgemm/job.hpp>
#include <glgemm/matrix.hpp>
#include <glgemm/stopwatch.hpp>
#include <glgemm/verify.hpp>

#include "multiply/multiply.hpp"

#include "drawing/image.hpp"
#include "files/files.hpp"
#include "files/formats.hpp"
#include "files/npy.hpp"
#include "product/product.hpp"
#include "product/shapes.hpp"
#include "terminal/progress.hpp"
#include "terminal/texts.hpp"

namespace glgemm::tools {
namespace {

using Arguments = MultiplyArguments;

std::string file_name(const std::string& path) {
  return to_text(to_path(path).filename());
}

/// The product as Engine::gemm computes it, with a bar on a terminal when it takes long.
void multiply_on(Engine& engine, const Gemm& product, const PlanOptions& options, Progress& progress, Report& report) {
  const auto begin = std::chrono::steady_clock::now();
  Job job = engine.start(product, options);
  report.kernel = job.kernel();
  Stopwatch stopwatch(engine);
  stopwatch.start();
  const TimeLeft left(0);
  // Each piece is waited for: the bar tells what is done, not what is enqueued. The first pieces are short, since a program that
  // has not been timed yet may be far slower than expected.
  std::chrono::milliseconds budget(5);
  while (!job.done()) {
    job.advance(budget);
    budget = std::min(2 * budget, std::chrono::milliseconds(500));
    job.fence().wait();
    if (std::chrono::steady_clock::now() - begin > std::chrono::seconds(1))
      progress.show(job.progress(), left.text(job.progress()));
  }
  stopwatch.stop();
  report.kernel_time = stopwatch.elapsed();
}

/// Integers that were multiplied in another type are of their own again.
template <class C>
void write_integers(MatrixOutput& output, const FileProduct& product, const Matrix<C>& c) {
  with_npy_type(product.result, [&]<class R>(R) {
    std::vector<R> elements(c.elements().size());
    std::transform(c.elements().begin(), c.elements().end(), elements.begin(), [](C value) {
      if constexpr (std::is_same_v<R, NpyBool>)
        return NpyBool{value != C(0)};
      else if constexpr (std::is_integral_v<R>)
        return static_cast<R>(value);
      else
        return R();  // no type of integers
    });
    output.write({product.result, product.shape(), elements.data()});
  });
}

/// C as its file has it.
void write_product(MatrixOutput& output, const FileProduct& product, const AnyMatrix& c) {
  if (!product.integers || type_in(product.result) == c.type())
    output.write({product.result, product.shape(), c.bytes().data()});
  else if (c.type() == Type::i32)
    write_integers(output, product, c.as<std::int32_t>());
  else
    write_integers(output, product, c.as<double>());
}

/// The files that multiply writes. All are opened before the work, so that none of it is in vain.
struct Outputs {
  explicit Outputs(const Arguments& arguments) : product(arguments.output, arguments.digits) {
    if (!arguments.image.empty()) image.emplace(arguments.image);
    if (!arguments.error_image.empty()) error_image.emplace(arguments.error_image);
    std::set<std::string> targets{product.file().target()};
    for (const auto* file : {&image, &error_image})
      if (*file && !targets.insert((*file)->target()).second)
        throw std::invalid_argument("two of -o, --image and --error-image name the same file");
  }

  MatrixOutput product;
  std::optional<OutputFile> image;
  std::optional<OutputFile> error_image;
};

int run(const Arguments& arguments, FileProduct& product) {
  const PlanOptions options = arguments.plan_options();
  std::vector<std::string> notes;
  HostProduct p = read_product(product, notes);
  if (product.stored) {
    notes.clear();  // on numbers that are for the check alone
    product.read_as_stored();
    p.stored_a = read_stored(product.a, product.stored->a, notes);
    p.stored_b = read_stored(product.b, product.stored->b, notes);
  }
  p.precision = options.precision;
  for (const std::string& text : notes) multiply_note(text);
  Outputs outputs(arguments);
  std::optional<LastWords> last_words(std::in_place, "multiply", quote(arguments.output) + " is not written");

  HeadlessOptions headless;
  headless.device = arguments.device;
  HeadlessContext context(headless);
  Engine engine(HeadlessContext::get_proc_address, arguments.engine_options());
  Report report;
  Progress progress(1);
  const auto begin = std::chrono::steady_clock::now();
  engine.prepare(std::array{p.gemm()}, options);
  const std::chrono::duration<double> compiling = std::chrono::steady_clock::now() - begin;
  const AnyMatrix c = tools::run(engine, p, options, report,
                                 [&](const Gemm& on_device) { multiply_on(engine, on_device, options, progress, report); });
  const std::string renderer = engine.device().renderer;
  engine.release();

  std::optional<Check> result;
  if (report.total_time > std::chrono::seconds(1) && arguments.check != "none") progress.show(1, "checking");
  if (arguments.check != "none") result = check(p, c, arguments.check == "full");
  progress.clear();
  const bool passed = !result || result->passed;

  // A failed product is not written, but the picture of its errors is what helps then.
  OutputFile& output = outputs.product.file();
  auto& [ignored, image, error_image] = outputs;
  if (error_image) write_png(*error_image, error_map(error_ratios(p, c), "Error of " + file_name(arguments.output)));
  if (passed) {
    if (image) write_png(*image, heat_map(as_float(c), file_name(arguments.output)));
    write_product(outputs.product, product, c);
    output.finish();
    if (image) image->finish();
  }
  last_words.reset();
  if (error_image) error_image->commit();
  if (passed) {
    if (image) image->commit();
    output.commit();
  }

  // What is said must not get into what is written.
  const bool piped =
      output.is_standard_output() || (image && image->is_standard_output()) || (error_image && error_image->is_standard_output());
  return print_done(
      piped ? std::cerr : std::cout, arguments, product,
      fmt::format("{} on {}: {}, with transfers {}; before, programs were compiled or loaded, and checked, in {}", report.kernel,
                  renderer, time_text(report.kernel_time), time_text(report.total_time), time_text(compiling)),
      result);
}

}  // namespace

int multiply(const Arguments& arguments) {
  if (arguments.distributed) return multiply_distributed(arguments);
  require_usable(arguments);
  FileProduct product(arguments);
  const bool drawn = !arguments.image.empty() || !arguments.error_image.empty();
  if ((product.m == 0 || product.n == 0) && drawn)
    throw std::invalid_argument(fmt::format("the product is {}x{} and has no elements to draw", product.m, product.n));

  const char* const asked = arguments.memory_limit_bytes          ? "--memory-limit"
                            : arguments.device_memory_limit_bytes ? "--device-memory-limit"
                            : arguments.accelerators              ? "--accelerators"
                            : arguments.resume                    ? "--resume"
                                                                  : nullptr;
  const double needed = 2 * product.bytes(), available = available_memory();
  const bool streamed = asked || needed > available;
  if (streamed) {
    const std::string why =
        asked ? fmt::format("{} streams the product", asked)
              : fmt::format("the product takes {} with its copies, more than the {} of main memory to be had, and is streamed",
                            bytes_text(needed), bytes_text(available));
    if (const std::string reason = why_not_streamed(arguments, product); !reason.empty())
      throw std::invalid_argument(why + ": " + reason);
  }
  product.settle_integers();
  for (const std::string& text : product.notes) multiply_note(text);
  if (streamed) return multiply_streamed(arguments, product);
  return run(arguments, product);
}

void require_usable(const MultiplyArguments& arguments) {
  arguments.plan_options();
  parse_output_path(arguments.output);
  const std::array<std::string, 3> inputs{arguments.a, arguments.b, arguments.c};
  require_one_pipe(inputs);
  if (arguments.header) require_csv(inputs);
  if (arguments.digits > 0) require_text(arguments.output);
  if (arguments.force) return;
  for (const auto& [option, output] : {std::pair("-o", &arguments.output), std::pair("--image", &arguments.image),
                                       std::pair("--error-image", &arguments.error_image)})
    if (!output->empty()) require_no_input(*output, option, inputs);
}

std::string why_not_streamed(const MultiplyArguments& arguments, const FileProduct& product) {
  for (const std::string& path : {arguments.a, arguments.b, product.c0 ? arguments.c : std::string(), arguments.output})
    if (!parse_matrix_path(path).is_seekable())
      return fmt::format("{}, and only .npy files can be read and written in parts",
                         path == "-" ? "'-' is a pipe" : quote(path) + " is not a .npy file");
  if (product.integers) return fmt::format("a product of {} can only be made in parts with --type", to_string(*product.integers));
  const char* const whole = arguments.batch                  ? "--batch"
                            : !arguments.image.empty()       ? "--image"
                            : !arguments.error_image.empty() ? "--error-image"
                            : arguments.check == "full"      ? "--check full"
                                                             : nullptr;
  return whole ? fmt::format("{} needs the whole matrices in memory", whole) : "";
}

int print_done(std::ostream& out, const MultiplyArguments& arguments, const FileProduct& product, const std::string& done,
               const std::optional<Check>& check, std::string_view why) {
  out << product_text(arguments, arguments.output, product) << '\n' << done << '\n';
  out << (check ? check->summary : fmt::format("not checked{}", why)) << std::endl;
  if (!check || check->passed) return 0;
  std::cerr << "glgemm multiply: the product fails its check, so " << quote(arguments.output) << " is not written\n";
  return 1;
}

void multiply_note(const std::string& text) {
  std::cerr << "glgemm multiply: note: " << visible(text) << '\n';
}

}  // namespace glgemm::tools
